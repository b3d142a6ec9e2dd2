// Types of scalar expressions, and the builtin scalar functions. One set of rules for verifier, interpreter, emitters:
//  - operands of an arithmetic operator or comparison have one type; literals take the type of the other operand or of
//    the place written (an integer literal never stands for a float); nothing else converts silently;
//  - a call of a type's name is a cast: f32(x);
//  - Load gives the buffer's element type, Name of a scalar its type, dimensions, loop variables and axes are `index`.
#pragma once
#include <string>

#include "ir/module.h"
#include "ir/walk.h"

namespace mlc {

struct TypeError {
  uint32_t at;
  std::string message;
};

// What names mean at a place of a function. Scopes nest by push/pop.
class Env {
 public:
  Env(const Build &b, const Module &m, const Func *f);  // dims, params, results of f; f may be null
  void define(Sym name, const Type *type);              // value, scalar, buffer, view
  void define_index(Sym name);                          // loop variable, axis, dimension
  const Type *find(Sym name) const;                     // null: not defined
  size_t mark() const { return log_.size(); }
  void pop(size_t mark);                                // forget what was defined since mark

  const Build &b;
  const Module &m;

 private:
  std::unordered_map<Sym, const Type *> names_;
  std::vector<std::pair<Sym, const Type *>> log_;       // what the names meant before
};

// The type of a scalar expression; `want` is the type of the place, which the expression must have: Index in an index
// position, Invalid where there is none (a lone literal is then an error). Returns Invalid and fills `err` on an error.
DType type_of(const Env &env, const Expr *e, DType want, TypeError *err);
// The same for what has several results: a call of a reducer or scalar function whose results have the types `want`.
bool types_of(const Env &env, const Expr *e, std::span<const DType> want, TypeError *err);

// Builtin scalar functions: exp(x), max(a, b), where(c, a, b), clamp(x, lo, hi), shl(a, n) ...
enum class Signature : uint8_t {
  Same,        // all arguments and the result have one type
  SameFloat,   // the same, floats only
  SameInt,     // the same, integers only
  Where,       // (bool, T, T) -> T, lazy
  Test,        // (T..) -> bool: isnan, isinf
  Bits,        // bits.T(x): the same bits as another type of the same size
};
struct Builtin {
  std::string_view name;
  int arity;
  Signature signature;
  bool library;   // defined as text in src/math/math.mlc under NAME.f32 and NAME.f64; else a primitive of every emitter
};
const Builtin *builtin(std::string_view name);        // null if there is none
std::span<const Builtin> builtins();
bool is_reduction(std::string_view name);             // sum prod max min all any
inline bool is_cast(std::string_view name) { return dtype_named(name) != DType::Invalid; }

}  // namespace mlc
