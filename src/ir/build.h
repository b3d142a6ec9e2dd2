// Build makes all nodes; nothing else does. It folds nothing but the sign of a literal: print(read(t)) == t depends on it.
// Passes that write expressions use ir/sugar.h, which folds constants.
#pragma once
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace mlc {

class Build {
 public:
  Build();
  Arena arena;
  Names names;

  // Names.
  Sym sym(std::string_view s) { return names.intern(s); }
  std::string_view text(Sym s) const { return names.text(s); }
  bool is_reserved(Sym s) const { return s.id <= reserved_; }  // the reserved words are the first names of all

  // Expressions.
  const Int *integer(int64_t v, uint32_t at = kNowhere, bool wide = false);
  const Float *number(double v, uint32_t at = kNowhere, uint64_t nan_bits = 0);
  // A literal that reads back to exactly v when rounded to t, with the fewest digits.
  const Float *number(double v, DType t);
  const Bool *boolean(bool v, uint32_t at = kNowhere);
  const Str *string(std::string_view s, uint32_t at = kNowhere);  // s is copied
  const Str *string_in_place(std::string_view s, uint32_t at);           // s outlives the node
  const None *none(uint32_t at = kNowhere);
  const Name *name(Sym s, uint32_t at = kNowhere);
  const Name *name(std::string_view s) { return name(sym(s)); }
  const Global *global(Sym s, uint32_t at = kNowhere);
  const Load *load(Sym buffer, Exprs index, uint32_t at = kNowhere, bool global = false);
  const Range *range(const Expr *lo, const Expr *extent, uint32_t at = kNowhere);
  const All *all(uint32_t at = kNowhere);
  const Call *call(Sym callee, Exprs args, uint32_t at = kNowhere, bool global = false, Iters iters = {});
  const Call *call(std::string_view callee, std::initializer_list<const Expr *> args) {
    return call(sym(callee), list(args));
  }
  const Expr *unary(Op op, const Expr *a, uint32_t at = kNowhere);  // the sign of a literal becomes part of it
  const Binary *binary(Op op, const Expr *a, const Expr *b, uint32_t at = kNowhere);
  const List *make_list(Exprs items, uint32_t at = kNowhere);
  const Map *map(const List *from, const List *to, uint32_t at = kNowhere);

  // Spans in the arena.
  Exprs list(std::initializer_list<const Expr *> l) { return arena.copy(l.begin(), l.size()); }
  Stmts stmts(std::initializer_list<const Stmt *> l) { return arena.copy(l.begin(), l.size()); }
  template <class T> std::span<const T> list(const std::vector<T> &v) { return arena.copy(v); }
  template <class T> std::span<const T> one(const T &v) { return arena.copy(&v, 1); }

  // Types: structurally equal types are the same pointer. Dimensions compare as expressions, without `at`.
  const Type *type(const Type &t);
  const Type *scalar(DType elem) { return type({elem, false, {}, {}, -1, {}, {}}); }
  const Type *tensor(DType elem, Exprs dims) { return type({elem, true, {}, {}, -1, dims, {}}); }
  const Type *index() const { return index_; }  // the scalar type `index`
  const Type *with_elem(const Type *t, DType elem);
  const Type *with_dims(const Type *t, Exprs dims);

  // Statements and items: a node with its fields filled in, copied into the arena. Spans and strings inside must
  // already live in the arena (or in the source). `kind` is set here.
  //   b.make(Let{{}, defs, value, {}, from})
  template <class T> const T *make(T node) {
    node.kind = T::kKind;
    return arena.make(node);
  }

 private:
  uint32_t reserved_ = 0;
  struct Slot { uint64_t hash; const Type *type; };  // type is null where the slot is free
  std::vector<Slot> types_;                          // open addressing, a power of two, at most half full
  size_t type_count_ = 0;
  const Type *index_;
};

// Fresh names by a fixed rule: base, base_1, base_2 ...; `taken` are names already in use.
class Fresh {
 public:
  explicit Fresh(Build &b) : b_(b) {}
  void take(Sym s) { taken_.insert_or_assign(s, 0); }
  bool is_taken(Sym s) const { return taken_.count(s); }
  Sym make(std::string_view base);  // and takes it

 private:
  Build &b_;
  std::unordered_map<Sym, int> taken_;
};

// Structural equality, ignoring `at` and comments; floats by their bits.
bool equal(const Expr *a, const Expr *b);
bool equal(Exprs a, Exprs b);
bool equal(Attrs a, Attrs b);
bool equal(const Stmt *a, const Stmt *b);
bool equal(Stmts a, Stmts b);
bool equal(const Item *a, const Item *b);
uint64_t hash(const Expr *e);

// Values of literals and attributes.
const Expr *attr(Attrs attrs, Sym key);  // null if missing
const Expr *attr(const Build &b, Attrs attrs, std::string_view key);
bool is_int(const Expr *e, int64_t v);            // the literal v
bool int_value(const Expr *e, int64_t *v);        // an integer literal (not wide)
bool all_static(const Type *t, std::vector<int64_t> *dims);  // all dimensions are literals

}  // namespace mlc
