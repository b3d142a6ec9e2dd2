#include "target/target.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/first_error.h"
#include "base/shipped.h"
#include "target/valid.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr size_t kDeepest = 16;  // bases of bases

std::string string_of(const Expr *e) {
  auto *s = as<Str>(e);
  return s ? std::string(s->value) : "";
}
int64_t int_of(const Expr *e, int64_t otherwise) {
  auto *i = as<Int>(e);
  return i ? i->value : otherwise;
}

TargetLine line_of(const Build &b, const Feature &f) {
  TargetLine l{std::string(b.text(f.name)), string_of(attr(b, f.attrs, "kind")), f.attrs};
  l.bytes = int_of(attr(b, f.attrs, "bytes"), -1), l.count = int_of(attr(b, f.attrs, "count"), -1);
  l.align = int_of(attr(b, f.attrs, "align"), -1), l.max = int_of(attr(b, f.attrs, "max"), -1);
  return l;
}

// FILE:LINE:COL: message
std::string placed(const Source &source, uint32_t at, std::string_view message) {
  if (at == kNowhere) return fmt::format("{}: {}", source.name, message);
  auto p = source.place(at);
  return fmt::format("{}:{}:{}: {}", source.name, p.line, p.column, message);
}

// Texts stay where names and strings of the module point into them.
std::optional<Module> read_text(Build &b, Source text, std::string *error) {
  static std::deque<Source> kept;
  const Source &source = kept.emplace_back(std::move(text));
  Module m;
  Diag diag("target", &source);
  if (!source.error.empty()) {
    *error = source.name + ": " + source.error;
    return {};
  }
  if (!read(b, source, m, diag)) {
    *error = first_error(diag);
    return {};
  }
  for (const Item *i : m.items) {
    auto *t = as<Target>(i);
    auto fault = t ? fault_of(b, *t) : std::nullopt;
    if (!fault) continue;
    *error = placed(source, fault->at, fault->message);
    return {};
  }
  return m;
}

std::vector<const Target *> targets_of(const Module &m) {
  std::vector<const Target *> out;
  for (const Item *i : m.items)
    if (auto *t = as<Target>(i)) out.push_back(t);
  return out;
}

class Find {
 public:
  Find(Build &b, const Module *m, std::string *error) : b_(b), m_(m), error_(error) {}

  std::optional<TargetInfo> run(std::string_view name) {
    if (!add(name, 0)) return {};
    return std::move(info_);
  }

 private:
  bool add(std::string_view name, size_t depth) {
    if (depth == kDeepest) return fail(fmt::format("target {}: more than {} bases, one of another", name, kDeepest));
    if (name.find('/') != name.npos || name.ends_with(".mlc")) {
      auto text = read_text(b_, Source::open(std::string(name)), error_);
      if (!text) return false;
      auto all = targets_of(*text);
      if (all.size() != 1) return fail(fmt::format("{}: expected one target, found {}", name, all.size()));
      bool based = attr(b_, all[0]->notes.attrs, "base");  // whose text may have what is used
      for (const Feature &f : all[0]->features)
        if (f.kind == Feature::Use && !based && !text->find(f.name) && !(m_ && m_->find(f.name)))
          return fail(fmt::format("{}: use @{}: there is no such intrinsic", name, b_.text(f.name)));
      return take(*all[0], *text, depth);
    }
    if (name.starts_with("@")) name.remove_prefix(1);
    if (m_)
      if (auto *t = as<Target>(m_->find(b_.sym(name)))) {  // it may be a part of a shipped one, with what is used of it
        if (auto fault = fault_of(b_, *t)) return fail(fmt::format("target {}: {}", name, fault->message));
        auto all = shipped_targets();
        part_ = std::find(all.begin(), all.end(), name) != all.end();
        if (!take(*t, Module{}, depth)) return false;
        m_ = nullptr;
        return !part_ || add(name, depth + 1);
      }
    for (const ShippedText &s : texts_of_targets()) {
      if (s.name != name) continue;
      auto text = read_text(b_, Source::from_string(fmt::format("{}.mlc", name), s.text), error_);
      if (!text) return false;
      return take(*targets_of(*text).at(0), *text, depth);
    }
    std::vector<std::string> known = shipped_targets();
    std::string list;
    for (const std::string &s : known) list += (list.empty() ? "" : ", ") + s;
    return fail(fmt::format("there is no target {}; mlc has {}, and takes a FILE.mlc", name, list));
  }

  bool take(const Target &t, const Module &text, size_t depth) {
    if (info_.name.empty()) info_.name = b_.text(t.name);
    for (const Attr &a : t.notes.attrs) {
      std::string_view key = b_.text(a.key);
      if (key == "features") {
        if (auto *l = as<List>(a.value))
          for (const Expr *e : l->items)
            if (std::string f = string_of(e); !f.empty() && !info_.has_feature(f)) info_.features.push_back(f);
      } else if (!attr(b_, b_.list(info_.attrs), key)) {
        info_.attrs.push_back(a);
      }
    }
    if (info_.kind.empty()) info_.kind = string_of(attr(b_, t.notes.attrs, "kind"));
    for (const Feature &f : t.features) {
      if (f.kind == Feature::Use) {
        if (std::find(info_.uses.begin(), info_.uses.end(), f.name) == info_.uses.end()) info_.uses.push_back(f.name);
      } else if (auto &lines = f.kind == Feature::Memory ? info_.memories : info_.threads;
                 std::none_of(lines.begin(), lines.end(), [&](const TargetLine &l) { return l.name == b_.text(f.name); })) {
        lines.push_back(line_of(b_, f));
      }
    }
    std::string base = string_of(attr(b_, t.notes.attrs, "base"));
    if (depth == 0) info_.base = base;
    if (!base.empty() && !add(base, depth + 1)) return false;
    for (const Item *i : text.items) info_.text.add(i);
    if (!info_.kind.empty() || depth || part_) return true;
    return fail(fmt::format("target {}: attr kind is missing: cpu, cuda or accelerator", info_.name));
  }

  bool fail(std::string message) { return *error_ = std::move(message), false; }

  Build &b_;
  const Module *m_;
  std::string *error_;
  bool part_ = false;  // what it says of kind is said by the shipped target of its name
  TargetInfo info_;
};

const TargetLine *find_line(const std::vector<TargetLine> &all, std::string_view name) {
  for (const TargetLine &l : all)
    if (l.name == name) return &l;
  return nullptr;
}

const Expr *find_attr(const Build &b, const std::vector<Attr> &all, std::string_view key) {
  for (const Attr &a : all)
    if (b.text(a.key) == key) return a.value;
  return nullptr;
}

}  // namespace

int64_t TargetInfo::number(const Build &b, std::string_view key, int64_t otherwise) const {
  return int_of(find_attr(b, attrs, key), otherwise);
}
double TargetInfo::real(const Build &b, std::string_view key, double otherwise) const {
  const Expr *e = find_attr(b, attrs, key);
  if (auto *f = as<Float>(e)) return f->value;
  return e ? double(int_of(e, int64_t(otherwise))) : otherwise;
}
std::string TargetInfo::string(const Build &b, std::string_view key, std::string_view otherwise) const {
  const Expr *e = find_attr(b, attrs, key);
  return e ? string_of(e) : std::string(otherwise);
}
const TargetLine *TargetInfo::memory(std::string_view name) const { return find_line(memories, name); }
const TargetLine *TargetInfo::thread(std::string_view name) const { return find_line(threads, name); }
bool TargetInfo::has_feature(std::string_view f) const {
  return std::find(features.begin(), features.end(), f) != features.end();
}

std::optional<TargetInfo> find_target(Build &b, const Module *m, std::string_view name, std::string *error) {
  return Find(b, m, error).run(name);
}

std::vector<std::string> shipped_targets() {
  std::vector<std::string> out;
  for (const ShippedText &s : texts_of_targets()) out.emplace_back(s.name);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace mlc
