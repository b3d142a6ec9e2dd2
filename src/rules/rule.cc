#include "rules/rule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "text/text.h"

namespace mlc {

extern const char rules_text[];  // embedded by CMakeLists.txt

namespace {

uint64_t root(const Expr *e) {
  uint64_t kind = uint64_t(e->kind) << 32;
  if (auto u = as<Unary>(e)) return kind | uint64_t(u->op);
  if (auto x = as<Binary>(e)) return kind | uint64_t(x->op);
  if (auto c = as<Call>(e)) return kind | c->callee.id;
  return kind;
}

// f(x) {k = v} -> f(x, k == v): what the grammar of expressions can read.
std::string with_attributes(std::string_view s) {
  std::string out;
  bool inside = false;
  for (size_t i = 0; i < s.size(); i++) {
    if (s.substr(i, 3) == ") {") out += ", ", inside = true, i += 2;
    else if (inside && s[i] == '}') out += ")", inside = false;
    else if (inside && s.substr(i, 3) == " = ") out += " == ", i += 2;
    else out += s[i];
  }
  return out;
}

constexpr std::string_view kCommutative[] = {
    "max", "min", "bitand", "bitor", "bitxor", "Add", "Mul", "Max", "Min", "Sum", "And", "Or", "Xor", "Equal",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor"};

bool commutes(const Build &b, const Expr *e) {
  if (auto x = as<Binary>(e)) return x->op == Op::Add || x->op == Op::Mul || x->op == Op::Eq || x->op == Op::Ne ||
                                     x->op == Op::And || x->op == Op::Or;
  auto c = as<Call>(e);
  return c && c->args.size() == 2 && std::count(std::begin(kCommutative), std::end(kCommutative), b.text(c->callee));
}

// All orders of a pattern's commutative operands, the one written first.
std::vector<const Expr *> orders(Build &b, const Expr *e) {
  std::vector<const Expr *> out;
  auto add = [&](const Expr *x) {
    if (std::none_of(out.begin(), out.end(), [&](const Expr *y) { return equal(x, y); })) out.push_back(x);
  };
  if (auto u = as<Unary>(e)) {
    for (auto a : orders(b, u->a)) add(b.unary(u->op, a));
  } else if (auto x = as<Binary>(e)) {
    for (bool swap : {false, true})
      for (auto l : orders(b, x->a))
        for (auto r : orders(b, x->b))
          if (!swap || commutes(b, e)) add(swap ? b.binary(x->op, r, l) : b.binary(x->op, l, r));
  } else if (auto c = as<Call>(e)) {
    std::vector<std::vector<const Expr *>> args{{}};
    for (const Expr *a : c->args) {
      std::vector<std::vector<const Expr *>> longer;
      bool attribute = is_operator(b, c->callee) && as<Binary>(a) && to<Binary>(a).op == Op::Eq;
      for (auto &l : args)
        for (const Expr *v : attribute ? std::vector<const Expr *>{a} : orders(b, a)) {
          longer.push_back(l);
          longer.back().push_back(v);
        }
      args = longer;
    }
    for (auto &l : args) add(b.call(c->callee, b.list(l)));
    if (commutes(b, e))
      for (auto &l : args) add(b.call(c->callee, b.list({l[1], l[0]})));
  } else {
    add(e);
  }
  return out;
}

}  // namespace

bool is_operator(const Build &b, Sym callee) {
  char c = b.text(callee)[0];
  return c >= 'A' && c <= 'Z';
}

Rules::Rules(Build &b) {
  std::string error;
  if (read(b, rules_text, &error)) return;
  fprintf(stderr, "rules.mlr:%s\n", error.c_str());
  abort();  // part of the program
}

Rules::Rules(Build &b, std::string_view text, std::string *error) { read(b, text, error); }

bool Rules::read(Build &b, std::string_view text, std::string *error) {
  int number = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    number++;
    if (line.empty() || line[0] == '#') continue;
    auto fail = [&](const std::string &message) {
      *error = fmt::format("{}: {}", number, message);
      return false;
    };
    size_t arrow = line.find(" -> "), condition = line.find(" if ");
    if (arrow == line.npos) return fail("expected `PATTERN -> RESULT`");
    size_t end = condition == line.npos ? line.size() : condition;
    std::string message;
    auto part = [&](size_t from, size_t to) {
      return read_expr(b, b.arena.text(with_attributes(line.substr(from, to - from))), &message);
    };
    const Expr *pattern = part(0, arrow), *result = pattern ? part(arrow + 4, end) : nullptr;
    const Expr *guard = result && condition != line.npos ? part(condition + 4, line.size()) : nullptr;
    if (!message.empty()) return fail(message);
    auto c = as<Call>(pattern);
    bool lines = c && is_operator(b, c->callee);
    if (!c && pattern->kind != Kind::Unary && pattern->kind != Kind::Binary)
      return fail("the pattern matches anything");
    for (const Expr *p : orders(b, pattern)) {
      all_.push_back(b.arena.make(Rule{number, line, p, result, guard, lines}));
      by_root_[root(p)].push_back(all_.back());
    }
  }
  return true;
}

std::span<const Rule *const> Rules::at(const Expr *e) const {
  auto it = by_root_.find(root(e));
  if (it == by_root_.end()) return {};
  return it->second;
}

}  // namespace mlc
