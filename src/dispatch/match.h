// Library patterns: an extern whose description is compared with operators of a graph, or with a kernel.
//
//   extern @blas.linear[n, k, m](x: f32[n, k], w: f32[m, k], b: f32[m]) -> (y: f32[n, m]) {
//     desc { y: f32[n, m] = Gemm(x, w, b) {transB = 1} } }
//
//   h: f32[8, 10] = Gemm(img, @w, @b) {transB = 1}   ->   h: f32[8, 10] = @blas.linear(img, @w, @b)
//
// Compared is the structure: operators, attributes with their defaults, operands; those of commutative operations in
// either order. A parameter that is a tensor stands for any value of its type, one that is a scalar for a literal,
// which the call passes on. Sizes follow from the arguments (ir/solve.h); what must be equal, and what the description
// assumes, must be proved.
#pragma once
#include <fmt/core.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "arith/bounds.h"
#include "graph/values.h"

namespace mlc {

struct LibraryPattern {
  const Func *function;
  Stmts body;              // of the description
  bool operators = false;  // it is written in operators, else in loops
  std::vector<const Let *> lines;  // of operators
  int64_t priority = 0;
  const Expr *cost = nullptr;      // in dimensions and scalar parameters
};
// Nothing, and why, if an extern is no pattern: it has no description, or one that no match could cover.
std::optional<LibraryPattern> library_pattern(Build &b, const Func &f, std::string *why);

// What a pattern's names stand for. Alternatives are tried on copies.
struct Binding {
  Substitution names;  // parameters -> arguments; buffers of a kernel -> its own
  struct Equal {  // sizes and subscripts; compared once all names are known
    const Expr *wanted, *found;
    std::shared_ptr<const Substitution> locals;  // as below, at that place
  };
  std::vector<Equal> equal;
  std::shared_ptr<const Substitution> locals;  // iterators and scalars of a description in loops, at the present place
  std::vector<std::pair<const Let *, const Let *>> lines;    // of operators: the pattern's, the graph's
  size_t depth = 0;                                           // how much fits
};

// The reason of the attempt that came furthest.
class Reasons {
 public:
  template <class... A> bool no(const Binding &s, fmt::format_string<A...> f, A &&...a) {
    if (text.empty() || s.depth > depth_) depth_ = s.depth, text = fmt::format(f, std::forward<A>(a)...);
    return false;
  }
  std::string text;

 private:
  size_t depth_ = 0;
};

struct Found {
  Exprs args;                       // of the call, for each parameter of the extern
  std::vector<size_t> results;      // for each result of the extern: which result of the kernel, of the group
  std::vector<const Let *> lines;   // of operators: those that the call replaces
  std::vector<Def> defs;            // of operators: what the results of the call are called
  std::optional<int64_t> cost;      // where it is a number
};

// Where the lines of a graph are looked up.
struct GraphScope {
  const Values &values;
  const Bounds &known;
  std::function<const Let *(Sym)> line;             // the line of the same body that defines it; null: there is none
  std::function<bool(Sym, const Binding &)> inner;  // nothing but the lines of the match reads it
};
// The operators that end in `root`, which gives the first result of the pattern.
std::optional<Found> match_operators(Build &b, const LibraryPattern &p, const Let &root, const GraphScope &scope,
                                     Reasons &why);
// A group as a whole, by the lines of its body.
std::optional<Found> match_group(Build &b, const Module &m, const LibraryPattern &p, const Func &group, Reasons &why);
// A kernel as a whole.
std::optional<Found> match_kernel(Build &b, const Module &m, const LibraryPattern &p, const Func &kernel, Reasons &why);

// The last step of a match: the arguments, sizes and assumptions. types: of what parameters and results stand for;
// `results`: of what the results are.
bool settle(Build &b, const LibraryPattern &p, const Binding &s, const std::function<const Type *(const Expr *)> &type,
            std::span<const Type *const> results, const Bounds &known, Found &out, Reasons &why);

// A scalar parameter of the pattern stands for e: a literal, or for an index any index expression.
bool bind_scalar(const Build &b, const Param &param, const Expr *e, Binding &s, Reasons &why);
bool is_literal(const Expr *e);
const Param *param_of(const LibraryPattern &p, Sym name);

}  // namespace mlc
