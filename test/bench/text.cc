// How fast text is read (parsed and built) and printed, against the bare scan of its tokens, on one buffer of 50 MB in
// one run: text_bench CASE...   The buffer repeats the programs of the cases; each copy has names of its own.
#include <fmt/core.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ir/build.h"
#include "text/text.h"

namespace {

constexpr size_t kBytes = 50'000'000;
constexpr int kRounds = 5;
constexpr double kReadAtLeast = 0.25, kPrintAtLeast = 0.5;  // of the scan's speed

// A case's input: what stands before its first `## ` section.
std::string input_of(const char *path) {
  std::ifstream file(path);
  std::string line, text;
  while (std::getline(file, line) && line.rfind("## ", 0) != 0) text += line + '\n';
  return text;
}

// @f -> @f_7, @'a b' -> @'a b_7', outside strings and comments.
std::string renamed(const std::string &text, int copy) {
  std::string out, suffix = fmt::format("_{}", copy);
  auto name_char = [](char c) { return isalnum(static_cast<unsigned char>(c)) || strchr("_./-", c); };
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    size_t end = i + 1;
    if (c == '#') {
      end = text.find('\n', i);
    } else if (c == '"' || c == '\'' || (c == '@' && text[i + 1] == '\'')) {
      char quote = c == '@' ? '\'' : c;
      end = i + 1 + (c == '@');
      while (text[end] != quote) end += text[end] == '\\' ? 2 : 1;
      if (c != '@') end++;
    } else if (c == '@') {
      while (name_char(text[end])) end++;
    }
    out.append(text, i, end - i);
    if (c == '@') out += suffix;
    i = end;
  }
  return out;
}

// Of the processor: what other programs take of the machine does not count.
double seconds(const std::function<void()> &work) {
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
  };
  double start = now();
  work();
  return now() - start;
}

}  // namespace

int main(int argc, char **argv) {
  std::string programs, text;
  for (int i = 1; i < argc; i++) programs += input_of(argv[i]);
  if (programs.empty()) return fmt::print(stderr, "usage: text_bench CASE...\n"), 2;
  for (int copy = 0; text.size() < kBytes; copy++) text += renamed(programs, copy);

  double scan = 1e9, read = 1e9, print = 1e9;
  size_t tokens = 0, items = 0, printed = 0;
  for (int round = 0; round < kRounds; round++) {
    mlc::Source source = mlc::Source::from_string("bench", text);
    mlc::Build build;
    mlc::Module module;
    mlc::Diag diag("bench", &source);
    std::unique_ptr<FILE, int (*)(FILE *)> out(fopen("/dev/null", "wb"), fclose);  // printed to as the tools print
    bool good = false;
    scan = std::min(scan, seconds([&] { tokens = mlc::scan(source.text); }));
    read = std::min(read, seconds([&] { good = mlc::read(build, source, module, diag); }));
    if (!good) return diag.print(stderr), 1;
    printed = 0;
    print = std::min(print, seconds([&] {
      mlc::print(build, module, [&](std::string_view piece) {
        printed += fwrite(piece.data(), 1, piece.size(), out.get());
      });
    }));
    items = module.items.size();
  }

  double mb = text.size() / 1e6, read_ratio = scan / read, print_ratio = scan / print * printed / text.size();
  fmt::print("{:.0f} MB, {} tokens, {} items; the best of {} rounds\n", mb, tokens, items, kRounds);
  fmt::print("scan   {:6.0f} MB/s\n", mb / scan);
  fmt::print("read   {:6.0f} MB/s  {:.2f} of the scan (at least {})\n", mb / read, read_ratio, kReadAtLeast);
  fmt::print("print  {:6.0f} MB/s  {:.2f} of the scan (at least {})\n", printed / 1e6 / print, print_ratio, kPrintAtLeast);
  return read_ratio >= kReadAtLeast && print_ratio >= kPrintAtLeast ? 0 : 1;
}
