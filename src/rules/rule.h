// Rewrite rules as data: the lines of grammar/rules.mlr (man/mlc-rules.5), read with the grammar of expressions.
#pragma once
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/build.h"

namespace mlc {

// One way to match a rule: operands of commutative operations in one order. In patterns and results an attribute of an
// operator is an argument `key == value` behind the others.
struct Rule {
  int line;               // of the text
  std::string_view text;  // the line
  const Expr *pattern, *result, *guard;  // guard: null if there is none
  bool lines;             // rewrites lines of a graph: the pattern is an operator
};

class Rules {
 public:
  explicit Rules(Build &b);  // the rules that libmlc carries
  // Others, for tests. An error is "LINE: message", and the rules are those read so far.
  Rules(Build &b, std::string_view text, std::string *error);

  // Those whose pattern has the root of e: its operator, or the function it calls. In the order of the text.
  std::span<const Rule *const> at(const Expr *e) const;
  const std::vector<const Rule *> &all() const { return all_; }

 private:
  bool read(Build &b, std::string_view text, std::string *error);
  std::vector<const Rule *> all_;
  std::unordered_map<uint64_t, std::vector<const Rule *>> by_root_;
};

bool is_operator(const Build &b, Sym callee);  // a capitalised name

}  // namespace mlc
