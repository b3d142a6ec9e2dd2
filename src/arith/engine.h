// The machinery behind bounds.h, prove.h, simplify.h and affine.h: not for use outside this room.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arith/bounds.h"
#include "arith/linear.h"
#include "ir/walk.h"

namespace mlc {

enum class Truth : uint8_t { Unknown, No, Yes };

class Engine {
 public:
  explicit Engine(Build &b);
  Build &b;
  Space space;

  // ---- facts (bounds.cc)
  AtomId define(Sym name, bool size = false);
  void range(Sym name, const Poly &lo, const Poly &end);
  void fact(const Poly &p);            // p >= 0
  void bind(AtomId a, const Poly &value);
  void equation(const Poly &p);        // p == 0
  void divisible(const Poly &p, int64_t modulus);  // p % modulus == 0
  void assume(const Expr *cond, bool holds = true);
  size_t mark();
  void forget();                       // all memos: they depend on the facts
  void pop(size_t mark);
  bool knows(Sym name) const { return current_.count(name); }
  enum class Is : uint8_t { Unknown, Index, Other };  // Unknown: an integer literal, takes the other side's type
  Is type(const Expr *e) const;
  bool compares_indices(const Binary &e) const;

  // ---- Expr -> Poly (normal.cc). Throws nothing: what overflows becomes an atom.
  Poly normal(const Expr *e);
  Poly div(const Poly &a, const Poly &c);   // floor; may throw Overflow, like the next
  Poly mod(const Poly &a, const Poly &c);
  Poly min(const Poly &a, const Poly &b);
  Poly max(const Poly &a, const Poly &b) { return -min(-a, -b); }
  Poly of(AtomId a);                        // or its value, if only one is possible

  // ---- knowledge (interval.cc, prove.cc)
  Interval interval(const Poly &p);
  Interval interval(AtomId a);
  bool nonneg(const Poly &p);                                // p >= 0
  bool positive(const Poly &p) { return nonneg(p - 1); }
  bool nonzero(const Poly &p);
  Poly tighten(const Poly &p) const;                         // p >= 0 as integers: divided by its content, floored
  Truth compare(Op op, const Poly &a, const Poly &b);
  bool never(std::vector<Poly> zeros);                       // they are not all 0 at once (differ.cc)

  // ---- Poly -> Expr (extract.cc)
  const Expr *expr(const Poly &p);
  Poly readable(const Poly &p);  // with Mod, Min and Max atoms in place of Div and Neg where that is shorter
  const Expr *comparison(Op op, const Poly &difference);     // difference op 0; op one of Ge, Eq, Ne

  // ---- booleans and what lies inside other expressions (simplify.cc)
  bool short_only = false;                 // keep what does not get shorter
  const Expr *index(const Expr *e);        // an index expression: expr(normal(e))
  const Expr *condition(const Expr *e);    // a bool one
  const Expr *any(const Expr *e);          // one of whatever type
  const Expr *parts(const Expr *e);        // itself left, its parts simplified

  struct Words {
    Sym min, max, clamp, where, index, any, all;
  } words;

 private:
  void collect(const Expr *e, int64_t scale, std::vector<Term> &sum, std::unordered_set<const Expr *> &seen);
  Poly compute(const Expr *e);
  Poly div(const Poly &a, int64_t c);
  Poly neg(const Poly &d);
  Interval naive(const Poly &p);
  Interval told(AtomId a);
  Interval inside(AtomId a);
  std::vector<Poly> told_of(AtomId a) const;
  const std::vector<Poly> &facts_of(AtomId a);  // and what follows from its form
  bool search(const Poly &p, int depth);
  void factors(const Poly &given);
  Poly primitive(Poly p);
  bool digits(const Poly &p, Poly *high, Poly *low);
  const std::pair<AtomId, Poly> *binding(AtomId a) const;
  Poly joined(const Poly &p);   // interval.cc and extract.cc
  Poly join_neg(Poly p);
  Poly join_mods(Poly p);
  Poly unbound(AtomId q, const Poly &k, const Poly &rest, Poly best);
  Poly residues(const Poly &a, const Poly &c);
  Poly absorb(Poly p, bool keep_nonneg);
  const Expr *sum(Poly p);
  const Expr *product(MonoId m, int64_t coef, const Expr *first = nullptr);
  const Expr *atom_expr(AtomId a);
  int order(AtomId a, AtomId b, bool in_product);  // < 0: a is written first
  int order(const Term &a, const Term &b, bool sign = true);

  struct Undo {
    Sym name;
    AtomId before;   // kNone: was not defined
  };
  static constexpr AtomId kNone = ~0u;
  std::unordered_map<Sym, AtomId> current_, unknown_;  // unknown_: never defined, so any integer
  std::vector<Undo> names_;
  std::unordered_set<AtomId> sizes_;              // dimensions: written last in products
  std::vector<Poly> facts_;
  std::vector<std::pair<AtomId, Poly>> equal_;    // variable -> what it is
  std::unordered_map<AtomId, std::vector<uint32_t>> facts_by_atom_;
  struct Frame {
    size_t names, facts, equal;
  };
  std::vector<Frame> frames_;

  std::unordered_map<const Expr *, PolyId> normal_memo_;
  std::unordered_map<AtomId, Interval> interval_memo_, partial_;
  std::unordered_map<PolyId, Interval> poly_interval_memo_;
  std::unordered_map<PolyId, bool> nonneg_memo_;
  std::unordered_map<PolyId, PolyId> joined_memo_;
  std::unordered_map<PolyId, const Expr *> expr_memo_;
  std::unordered_map<AtomId, std::vector<Poly>> facts_memo_;
  std::unordered_set<AtomId> open_;        // intervals under way
  int steps_ = 0, asked_ = 0, fact_depth_ = 0;  // of the first of them; facts followed to this place
  bool cut_ = false;                       // one was asked for within itself
  std::unordered_set<PolyId> seen_;        // of the proof under way
  int budget_ = 0, splits_ = 0, spent_ = 0;
  bool proving_ = false;
};

}  // namespace mlc
