#include "base/diag.h"

#include <algorithm>

namespace mlc {

static constexpr size_t kMost = 20;
static constexpr size_t kWidth = 160;  // of a source line, cut around the place

void Diag::add(uint32_t at, bool error, std::string message) {
  errors_ += error;
  entries_.push_back({at, error, std::move(message)});
}

static void print_line(FILE *out, std::string_view line, uint32_t column) {
  size_t from = column > kWidth / 2 && line.size() > kWidth ? column - kWidth / 2 : 0;
  std::string shown(line.substr(from, kWidth));
  for (char &c : shown)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = ' ';
  fprintf(out, "  %s\n  %*s^\n", shown.c_str(), int(column - 1 - from), "");
}

void Diag::print(FILE *out) {
  for (const std::string &r : remarks_) fprintf(out, "mlc-%s: note: %s\n", tool_.c_str(), r.c_str());
  remarks_.clear();
  // A note stays behind its error; errors go by place.
  std::vector<std::pair<uint32_t, size_t>> order;
  for (size_t i = 0; i < entries_.size(); i++)
    if (entries_[i].error || order.empty()) order.push_back({entries_[i].at, i});
  std::stable_sort(order.begin(), order.end(), [](auto &a, auto &b) { return a.first < b.first; });
  size_t shown = 0;
  std::string_view last;
  for (auto [at, first] : order) {
    if (entries_[first].message == last && shown) continue;
    if (shown++ == kMost) {
      fprintf(out, "mlc-%s: %zu errors, the first %zu shown\n", tool_.c_str(), errors_, kMost);
      break;
    }
    last = entries_[first].message;
    for (size_t i = first; i < entries_.size() && (i == first || !entries_[i].error); i++) {
      const Entry &e = entries_[i];
      const char *what = e.error ? "error" : "note";
      const char *name = source_ ? source_->name_of(e.at == 0xffffffff ? 0 : e.at).c_str() : "mlc";
      if (e.at == 0xffffffff || !source_) {
        fprintf(out, "%s: %s: %s [mlc-%s]\n", name, what, e.message.c_str(), tool_.c_str());
        continue;
      }
      auto p = source_->place(e.at);
      fprintf(out, "%s:%u:%u: %s: %s [mlc-%s]\n", name, p.line, p.column, what, e.message.c_str(), tool_.c_str());
      print_line(out, source_->line_of(e.at), p.column);
    }
  }
  entries_.clear();
  errors_ = 0;
}

std::vector<std::string> Diag::messages() const {
  std::vector<std::string> out;
  for (const Entry &e : entries_) out.push_back(e.message);
  return out;
}

}  // namespace mlc
