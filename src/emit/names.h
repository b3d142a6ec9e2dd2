// Names and texts of a model in emitted C and C++.
#pragma once
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/build.h"

namespace mlc {

// A legal identifier that looks like the name: "a b/c" -> a_b_c, "1" -> v1, "for" -> for_, "" -> v. Different names may
// give the same one: Namer tells them apart. No two underscores in a row, none in front, no keyword of C or C++.
std::string identifier(std::string_view name);

// The same for a model, whose name is that of files and targets too: time -> time_model, as time.h is the system's.
std::string project_name(std::string_view name);

// Identifiers of one function or struct, each given out once while it is live: base, base_1, base_2 ... None begins
// with PREFIX_, which the file's own functions and types do.
class Namer {
 public:
  explicit Namer(std::string prefix = "") : prefix_(std::move(prefix)) {}
  std::string make(std::string_view name);
  std::string keep(std::string_view name);  // the same, never given out again
  void reserve(std::string_view ident) { taken_.insert(std::string(ident)); }
  bool is_taken(const std::string &ident) const { return taken_.count(ident); }
  size_t mark() const { return log_.size(); }
  void pop(size_t mark);  // what was made since mark may be given out again

 private:
  std::string prefix_;
  std::unordered_set<std::string> taken_;
  std::vector<std::string> log_;
};

// Text that can do no harm inside a comment of either kind, on one line: no control or bidirectional character, no
// malformed UTF-8, no `*/`, `/*`, trigraph or backslash at the end. Readable letters stay as they are.
std::string comment_text(std::string_view s);
// "..." as C and C++ read it, ASCII only.
std::string string_literal(std::string_view s);
// Names of the model's nodes as a comment says them: "/conv/Conv", "/relu/Relu".
std::string node_list(const Build &b, Syms from);
// Lines `INDENT// text`, broken at blanks to fit 120 columns, continuations indented by two more.
void comment_lines(std::string &out, std::string_view indent, std::string_view text);

}  // namespace mlc
