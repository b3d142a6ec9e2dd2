// Makes nodes of compiled expressions. Types are those of man/mlc.5: the operands of an operator have one type.
#pragma once
#include "interp/code.h"
#include "ir/typing.h"

namespace mlc::interp {

class Nodes {
 public:
  Node *constant(DType t, Scalar v);
  Node *slot(DType t, int slot);
  Node *unary(Op op, const Node *a);
  Node *binary(Op op, const Node *a, const Node *b);
  Node *jittered(Op op, const Node *a, const Node *b);  // the same; + - * of floats with noise (interp/jitter.h)
  Node *cast(DType to, const Node *a, bool saturate = true);
  Node *bits(DType to, const Node *a);
  Node *where(const Node *c, const Node *a, const Node *b);
  // A builtin that is not text (ir/typing.h), of operands of one type; null if there is none for that type.
  Node *builtin(std::string_view name, const Node *a, const Node *b, const Node *c);
  Node *load(DType t, const Access *access);
  Node *traced(const Node *load);                       // the same, told to interp/races.h
  Node *make(DType t, const Node *a = nullptr, const Node *b = nullptr, const Node *c = nullptr);
  // The result of f32 operations rounded to a smaller float, of 64-bit ones narrowed to a packed integer.
  Node *narrowed(DType t, Node *n);

  Arena arena;

 private:
  Node *packed_shift(bool left, const Node *a, const Node *n);
};

// The type that operations of t are computed in: f32 for smaller floats, i64 for packed integers, else t.
DType computed_in(DType t);
int64_t constant_int(const Node &n, Frame &);
inline bool is_constant(const Node *n, int64_t *v) {
  if (n->i != constant_int) return false;
  *v = n->k;
  return true;
}

// Statements over one access.
using ActFn = void (*)(const Act &, Frame &);
struct StoreAct { const Access *access; const Node *value; };
ActFn store_act(DType t);
void store_scalar(const Access &x, DType t, Scalar v, Frame &f);
struct SetAct { int slot; const Node *value; };
ActFn set_act(DType t);

// A store, told to interp/races.h; `what` is the Act of the store itself.
void run_traced(const Act &, Frame &);
void trace(const Access &x, bool write, Frame &f);

// Offset of an access in elements, checked; throws Fault.
int64_t checked_offset(const Access &x, Frame &f);
// A read of element `offset` that was never written; throws Fault.
[[noreturn]] void undefined_read(const Access &x, Frame &f, int64_t offset);

}  // namespace mlc::interp
