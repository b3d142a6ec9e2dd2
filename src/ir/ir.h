// The nodes of the language (man/mlc.5): what a text reads into and is printed from.
//
// Immutable plain structs in an arena, const pointers, spans for lists, interned names. Only Build (ir/build.h) makes
// nodes; everybody reads; equal types are the same pointer. `at` is a byte offset into the source that the node was
// read from (kNowhere if a pass made it); line and column are computed when a diagnostic is printed.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/names.h"
#include "num/dtype.h"

namespace mlc {

inline constexpr uint32_t kNowhere = 0xffffffff;

enum class Kind : uint8_t {
  // expressions
  Int, Float, Bool, Str, None, Name, Global, Load, Range, All, Call, Unary, Binary, List, Map,
  // statements
  Let, IfValue, Loop, Store, Compute, Alloc, View, CallStmt, Assume, Code, Dataflow, For, If, While, Block,
  // items
  File, Device, Const, Func, Target, Schedule,
};

struct Node {  // 5 bytes of 8: a node's small fields stand first and fill the rest
  uint32_t at = kNowhere;
  Kind kind{};
};
struct Expr : Node {};
using Exprs = std::span<const Expr *const>;
using Syms = std::span<const Sym>;

// as<Load>(e) is e as a Load, or null if it is something else (or null).
template <class T> const T *as(const Node *n) { return n && n->kind == T::kKind ? static_cast<const T *>(n) : nullptr; }
template <class T> const T &to(const Node *n) { return *static_cast<const T *>(n); }  // when the kind is known

// ---- expressions. They carry no types: ir/typing.h computes them in an environment.

struct Int : Expr {  // 7, -7; `wide`: the value is to be read as an unsigned number above INT64_MAX
  static constexpr Kind kKind = Kind::Int;
  bool wide;
  int64_t value;
};
struct Float : Expr {  // 0.1, -0.0, inf, nan; nan(0xBITS) has nan_bits != 0, the bits in the type of the place
  static constexpr Kind kKind = Kind::Float;
  double value;
  uint64_t nan_bits;
};
struct Bool : Expr {
  static constexpr Kind kKind = Kind::Bool;
  bool value;
};
struct Str : Expr {  // "text", escapes resolved
  static constexpr Kind kKind = Kind::Str;
  std::string_view value;
};
struct None : Expr {  // none: an input left out
  static constexpr Kind kKind = Kind::None;
};
struct Name : Expr {  // x: a value, buffer, loop variable, axis or dimension of the function
  static constexpr Kind kKind = Kind::Name;
  Sym name;
};
struct Global : Expr {  // @w
  static constexpr Kind kKind = Kind::Global;
  Sym name;
};
struct Load : Expr {  // x[i, j], x[]; @coef[r] if global; with Range or All among the indices it is a region
  static constexpr Kind kKind = Kind::Load;
  bool global;
  Sym buffer;
  Exprs index;
};
struct Range : Expr {  // lo +: extent, only as an index
  static constexpr Kind kKind = Kind::Range;
  const Expr *lo, *extent;
};
struct All : Expr {  // `:`, only as an index
  static constexpr Kind kKind = Kind::All;
};
struct Iter {  // i in n
  Sym name;
  const Expr *extent;
  uint32_t at;
};
using Iters = std::span<const Iter>;
struct Call : Expr {  // exp(x), Gemm(a, b, none), @f(x), f32(i) (a cast); with iters a reduction: sum(e for k in n)
  static constexpr Kind kKind = Kind::Call;
  bool global;
  Sym callee;
  Exprs args;
  Iters iters;
};
enum class Op : uint8_t { Neg, Not, Or, And, Eq, Ne, Lt, Le, Gt, Ge, Add, Sub, Mul, Div, FloorDiv, Mod };
struct Unary : Expr {  // -a, !a
  static constexpr Kind kKind = Kind::Unary;
  Op op;
  const Expr *a;
};
struct Binary : Expr {
  static constexpr Kind kKind = Kind::Binary;
  Op op;
  const Expr *a, *b;
};
struct List : Expr {  // [a, b]
  static constexpr Kind kKind = Kind::List;
  Exprs items;
};
struct Map : Expr {  // [i, j] -> [i // 16, j, i % 16]
  static constexpr Kind kKind = Kind::Map;
  const List *from, *to;
};

// ---- types, attributes, definitions

struct Attr {  // key = value
  Sym key;
  uint32_t at;
  const Expr *value;
};
using Attrs = std::span<const Attr>;

struct Type {  // unique: compare by pointer. f32[n, 784] in shared on cuda:0 {align = 64}
  DType elem;
  bool tensor;            // false: a scalar, passed by value
  Sym scope, device;      // Sym{}: none given
  int32_t device_index;   // -1: none given
  Exprs dims;             // index expressions; empty for scalars and for rank 0
  Attrs attrs;
  size_t rank() const { return dims.size(); }
};
struct Def {  // name: type
  Sym name;
  uint32_t at;
  const Type *type;
};
using Defs = std::span<const Def>;

// ---- statements

struct Stmt : Node {
  std::string_view comment;  // the lines of comment above it, each with its `#`, joined by newlines
};
using Stmts = std::span<const Stmt *const>;
struct Notes {  // `attr k = v` and `from "a"` lines at the head of a body
  Attrs attrs;
  Syms from;
};

struct Let : Stmt {  // y: T, i: U = Op(a, b) {k = v} from "..";  t: f32 = x[i] * 2.0
  static constexpr Kind kKind = Kind::Let;
  Defs defs;
  const Expr *value;
  Attrs attrs;
  Syms from;
};
struct Yield {  // { stmts yield a, b [stack c] }
  Stmts body;
  Exprs yields, stacks;
};
struct IfValue : Stmt {  // y: T = if c { .. yield a } else { .. yield b }
  static constexpr Kind kKind = Kind::IfValue;
  Defs defs;
  const Expr *cond;
  Yield then, other;
  Syms from;
};
struct Carry {
  Def def;
  const Expr *init;
};
struct Loop : Stmt {  // t: index, y: T = loop i in n carry a: T = a0 while go { .. yield a1, stack b }
  static constexpr Kind kKind = Kind::Loop;
  Defs defs;
  Iter iter;
  std::span<const Carry> carry;
  Sym until;  // the carried bool tested before each turn, or Sym{}
  Yield body;
  Syms from;
};
struct Store : Stmt {  // c[i, j] = e;  atomic c[i] = c[i] + e
  static constexpr Kind kKind = Kind::Store;
  bool atomic;
  const Load *target;
  const Expr *value;
  Syms from;
};
struct Result {  // c[i in n, j in m]
  Sym name;
  uint32_t at;
  Iters iters;
};
struct Compute : Stmt {  // compute c[i in n, j in m] = e from ".."
  static constexpr Kind kKind = Kind::Compute;
  std::span<const Result> results;
  const Expr *value;
  Syms from;
};
struct Alloc : Stmt {  // alloc t: T;  alloc t: T = base at BYTES
  static constexpr Kind kKind = Kind::Alloc;
  Def def;
  Sym base;            // Sym{}: a buffer of its own
  const Expr *offset;  // null without base
};
struct View : Stmt {  // view v: T = c[i * 16 +: 16, :]
  static constexpr Kind kKind = Kind::View;
  Def def;
  const Load *source;
};
struct CallStmt : Stmt {  // call @f(a) -> y, z[0, :] {stream = 1} from ".."
  static constexpr Kind kKind = Kind::CallStmt;
  const Call *call;
  Exprs dests;  // Name or Load
  Attrs attrs;
  Syms from;
};
struct Assume : Stmt {
  static constexpr Kind kKind = Kind::Assume;
  const Expr *cond;
};
struct Code : Stmt {
  static constexpr Kind kKind = Kind::Code;
  std::string_view text;
};
struct Dataflow : Stmt {  // dataflow -> y, z { .. }
  static constexpr Kind kKind = Kind::Dataflow;
  Syms outputs;
  Stmts body;
};
enum class LoopKind : uint8_t { Serial, Parallel, Vectorize, Unroll, Bind };
struct For : Stmt {  // for i in n [parallel | vectorize | unroll | bind TAG] { .. }
  static constexpr Kind kKind = Kind::For;
  LoopKind loop;
  Iter iter;
  Sym tag;  // of Bind
  Notes notes;
  Stmts body;
};
struct If : Stmt {
  static constexpr Kind kKind = Kind::If;
  const Expr *cond;
  Stmts body, other;
  bool has_else;
};
struct While : Stmt {
  static constexpr Kind kKind = Kind::While;
  const Expr *cond;
  Stmts body;
};
enum class AxisKind : uint8_t { Spatial, Reduce, Scan };
struct Axis {  // spatial i in 1024 = i0 * 64 + i1
  AxisKind kind;
  Sym name;
  uint32_t at;
  const Expr *domain, *binding;
};
struct Block : Stmt {
  static constexpr Kind kKind = Kind::Block;
  Sym name;
  Notes notes;
  std::span<const Axis> axes;
  const Expr *guard;  // null: none
  std::span<const Load *const> reads, writes;  // only where declared
  Stmts inits, body;
};

// ---- items

struct Item : Node {
  std::string_view comment;
};
struct File : Item {  // file "m.onnx" {bytes = 411264, sha256 = ".."}
  static constexpr Kind kKind = Kind::File;
  std::string_view path;
  Attrs attrs;
};
struct Device : Item {  // device cuda:0 = @h200
  static constexpr Kind kKind = Kind::Device;
  Sym name;
  int32_t index;  // -1: none given
  Sym target;
};
struct Const : Item {  // const @w: T = "m.onnx" at 4112;  = 0.0;  = [1.0, 2.0];  = Op(@w) {k = v}
  static constexpr Kind kKind = Kind::Const;
  Sym name;
  const Type *type;
  const Expr *value;      // null if the bytes are in a file
  std::string_view path;  // of the file
  int64_t offset;
  Attrs attrs;            // of the expression
  Syms from;
};
enum class Mode : uint8_t { In, Inout, Scratch };
struct Param {
  Mode mode;
  Def def;
};
using Params = std::span<const Param>;
struct Part {  // desc { .. } or impl { .. }
  bool desc;
  uint32_t at;
  Notes notes;
  Stmts body;
};
enum class FuncKind : uint8_t { Graph, Group, Kernel, Scalar, Reducer, Extern, Intrinsic };
struct Func : Item {  // graph @f[n](x: T, inout s: T) -> (y: T) on cuda:0 { .. }, and its six sisters
  static constexpr Kind kKind = Kind::Func;
  FuncKind func;
  Sym name;
  Syms dims;  // solved from the arguments
  Params params;
  Defs results;
  Sym device;            // Sym{}: none given
  int32_t device_index;  // -1: none given
  Sym target;            // `for @t` of extern and intrinsic
  Notes notes;
  Stmts inits;  // of a reducer: `init m: f32 = -inf`
  Stmts body;
  std::span<const Part> parts;  // of extern and intrinsic
};
struct Feature {  // memory l1 {bytes = 49152};  thread warp {max = 32};  use @x86.dot
  enum Kind : uint8_t { Memory, Thread, Use } kind;
  Sym name;
  uint32_t at;
  Attrs attrs;
};
struct Target : Item {
  static constexpr Kind kKind = Kind::Target;
  Sym name;
  Notes notes;
  std::span<const Feature> features;
};
struct Step {  // i0, i1 = split(i, [_, 16]) {k = v}
  Syms results;
  const Call *call;
  Attrs attrs;
  std::string_view comment;
};
struct Schedule : Item {
  static constexpr Kind kKind = Kind::Schedule;
  Sym name, target;
  Notes notes;
  std::span<const Step> steps;
};

}  // namespace mlc
