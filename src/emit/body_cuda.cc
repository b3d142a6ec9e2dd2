// Statements on a device, and on the host that drives it.
#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "emit/body.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc {

std::string BodyPrinter::code(int failure) const {
  std::string s = fmt::format("{}", first_code + failure + 1);
  return first.empty() ? s : fmt::format("{} + {}", first, s);
}

// ---- on the host

// x[0] > 2.0   ->   float read[1];
//                   if (const int failed = P_read(launch, read, x, sizeof read)) return failed;
//                   read[0] > 2.0f
const Expr *BodyPrinter::read_back(const Expr *e) {
  if (side != Side::Host || !reads_memory(e)) return e;
  return rewrite(b_, e, [&](const Expr *x) -> const Expr * {
    auto *l = as<Load>(x);
    if (!l || is_region(l->index)) return x;
    Entity from;
    if (l->global) {
      const Const *c = m_.constant(l->buffer);
      from.kind = Entity::Buffer, from.type = c->type, from.ident = constant(l->buffer);
    } else {
      Entity *found = scope.find(l->buffer);
      if (!found || found->kind != Entity::Buffer) return x;
      found->seen++, from = *found;
    }
    DType t = from.type->elem;
    if (info(t).bits < 8)
      return fail(l->at, fmt::format("{}: packed elements cannot be read by the host", print(b_, l))), x;
    std::string place = exprs.pointer(from, l->index);
    Sym name = b_.sym(fmt::format("read {}", ++renames_));
    Entity to;
    to.kind = Entity::Buffer, to.ident = scope.namer.make("read"), to.type = b_.tensor(t, {});
    line("{} {}[1];", c_storage(t), to.ident);
    line("if (const int failed = {0}(launch, {1}, {2}, sizeof {1})) return failed;", u_.helpers.need("read"), to.ident,
         place);
    scope.define(name, to);
    return b_.load(name, {}, l->at);
  });
}

// All of a buffer or region, if it lies in one piece: where it begins, and its bytes.
bool BodyPrinter::whole(const Expr *e, std::string *pointer, std::string *bytes) {
  auto *n = as<Name>(e);
  auto *g = as<Global>(e);
  auto *l = as<Load>(e);
  Entity from;
  Sym name = n ? n->name : l && !l->global ? l->buffer : Sym{};
  if (Sym c = g ? g->name : l && l->global ? l->buffer : Sym{}) {
    from.kind = Entity::Buffer, from.type = m_.constant(c)->type, from.ident = constant(c);
  } else if (Entity *found = scope.find(name)) {
    found->seen++, from = *found;
  }
  if (from.kind != Entity::Buffer || !from.first.empty() || !from.type) return false;
  Argument part = argument_type(e, DType::Index);
  Exprs have = part.strides.empty() ? strides_of(b_, part.type) : part.strides, want = strides_of(b_, part.type);
  for (size_t d = 0; d < want.size(); d++)
    if (!is_int(part.type->dims[d], 1) && !provably_equal(b_, have[d], want[d], scope.bounds)) return false;
  DType t = part.type->elem;
  std::vector<const Expr *> lo;
  for (const Expr *i : l ? l->index : Exprs())
    lo.push_back(i->kind == Kind::All ? b_.integer(0) : i->kind == Kind::Range ? to<Range>(i).lo : i);
  if (info(t).bits < 8 && !lo.empty()) return false;
  *pointer = lo.empty() ? from.ident : exprs.pointer(from, b_.list(lo));
  const Expr *count = b_.integer(1);
  for (const Expr *d : part.type->dims) count = fold(b_, Op::Mul, count, d);
  Text n_text = exprs.index(shortened(count));
  int bits = info(t).bits;
  *bytes = bits < 8 ? fmt::format("({} * {} + 7) / 8", wrap(n_text, kProduct), bits)
           : bits == 8 ? n_text.s
                       : fmt::format("{} * {}", wrap(n_text, kProduct), bits / 8);
  return true;
}

// call Copy(x) -> y, of what lies in one piece
void BodyPrinter::transfer(const CallStmt &c) {
  std::string from, to, bytes, room;
  if (!whole(c.call->args[0], &from, &bytes) || !whole(c.dests[0], &to, &room))
    return fail(c.at, fmt::format("`{}` copies what does not lie in one piece: run mlc-sync first", print(b_, &c)));
  line("if (const int failed = {}(launch, {}, {}, {})) return failed;", u_.helpers.need("copy"), to, from, bytes);
}

void BodyPrinter::launch(const CallStmt &c, const Emitted &fn, std::vector<std::string> args) {
  int base = first_code + int(failures.size());
  std::string at = first.empty() ? fmt::format("{}", base) : base ? fmt::format("{} + {}", first, base) : first;
  std::string text = fmt::format("{}(launch, {}", fn.ident, at);
  for (const std::string &a : args) text += ", " + a;
  line("if (const int failed = {})) return failed;", text);
  for (const Failure &f : fn.failures) failures.push_back({f.from.empty() ? c.from : f.from, f.what});
  for (size_t i = 0; i < c.dests.size(); i++)
    if (auto *n = as<Name>(c.dests[i]); n && depth_ == 0 && defined && !scope.find(n->name)->type->tensor)
      defined(n->name);
}

// Of calls that are no functions of the module: true if it was one of this side's.
bool BodyPrinter::effect(const CallStmt &c) {
  std::string_view name = b_.text(c.call->callee);
  if (side == Side::Host) {
    if (name == "Copy" && c.call->args.size() == 1 && c.dests.size() == 1) return transfer(c), true;
    if (name != "fill") return false;
    fail(c.at, fmt::format("`{}` has no kernel: run mlc-sync first", print(b_, &c)));
    return true;
  }
  if (name == "barrier") {
    auto *group = c.call->args.empty() ? nullptr : as<Str>(c.call->args[0]);
    bool warp = group && group->value == "warp";
    if (!group || (!warp && group->value != "block"))
      fail(c.at, fmt::format("`{}`: expected barrier(\"block\") or barrier(\"warp\")", print(b_, c.call)));
    line("{}();", warp ? "__syncwarp" : "__syncthreads");
    return true;
  }
  if (name != "shfl_xor" || c.call->args.size() != 2 || c.dests.size() != 1) return false;
  auto *to = as<Load>(c.dests[0]);
  Entity *e = to ? scope.find(to->buffer) : nullptr;
  if (!e) return fail(c.at, "shfl_xor: expected an element to write"), true;
  DType t = e->type->elem;
  std::string value = exprs.text(c.call->args[0], t), distance = exprs.text(c.call->args[1], DType::Index);
  bool narrow = t == DType::Bool || (is_int(t) && info(t).bits < 32);
  std::string text = fmt::format("__shfl_xor_sync(0xffffffffu, {}, {})", narrow ? "(int)" + value : value, distance);
  if (narrow) text = t == DType::Bool ? text + " != 0" : fmt::format("({}){}", c_value(t), text);
  Sym got = b_.sym(fmt::format("got {}", ++renames_));
  Entity v;
  v.ident = scope.namer.make("other"), v.type = b_.scalar(t), v.seen = 1;
  line("const {} {} = {};", c_value(t), v.ident, text);
  scope.define(got, v);
  line("{};", exprs.store(*to, b_.name(got)));
  return true;
}

// ---- on the device

// for tx in 256 bind threadIdx.x   ->   const int64_t tx = threadIdx.x;
void BodyPrinter::bound(const For &f) {
  if (!f.comment.empty()) head(&f);
  Stmts body = f.body;
  Sym v = f.iter.name;
  if (scope.find(v)) body = renamed(v, body), v = latest(v);
  Entity &e = define_dim(v);
  e.at = out.size() + indent;
  scope.bounds.range(v, f.iter.extent);
  line("const int64_t {} = {};", e.ident, b_.text(f.tag));
  depth_++;
  stmts(body);
  depth_--;
}

// for v in 4 vectorize { y[i * 4 + v] = x[j + v] }   ->   P_copy_lanes<4>(y + i * 4, x + j);
// What lies apart on either side is copied one by one.
void BodyPrinter::lane_copy(const For &f) {
  auto &s = to<Store>(f.body[0]);
  auto &l = to<Load>(s.value);
  Sym v = f.iter.name;
  int64_t n = 0;
  int_value(f.iter.extent, &n);
  Bounds known(b_);
  known.range(v, f.iter.extent);
  Entity *sides[] = {scope.find(s.target->buffer), scope.find(l.buffer)};
  Exprs at[] = {s.target->index, l.index};
  bool together = true;
  for (int k = 0; k < 2; k++) {
    Entity *e = sides[k];
    bool plain = e && e->kind == Entity::Buffer && !is_region(at[k]) && info(e->type->elem).bits >= 8;
    auto form = plain ? affine(b_, exprs.place(*e, at[k]), b_.one(v), known) : std::nullopt;
    together &= form && is_int(form->coefs[0], 1);
  }
  together = together && sides[0]->type->elem == sides[1]->type->elem;
  if (!together) {
    for (int64_t i = 0; i < n; i++) stmts(substitute(b_, f.body, {{v, b_.integer(i)}}));
    return;
  }
  std::string places[2];
  for (int k = 0; k < 2; k++) {
    sides[k]->seen++;
    Exprs first = edit_all(b_, substitute(b_, at[k], {{v, b_.integer(0)}}),
                           [&](const Expr *&e) { e = simplify(b_, e, scope.bounds); });
    places[k] = exprs.pointer(*sides[k], first);
  }
  line("{}<{}>({}, {});", u_.helpers.need("copy_lanes"), n, places[0], places[1]);
}

// atomic c[i] = c[i] + e
void BodyPrinter::atomic(const Store &s) {
  auto *add = as<Binary>(s.value);
  auto *call = as<Call>(s.value);
  Entity *e = scope.find(s.target->buffer);
  DType t = e ? e->type->elem : DType::Invalid;
  std::string_view f = add && (add->op == Op::Add || add->op == Op::Sub) ? "Add"
                       : call && b_.text(call->callee) == "max"           ? "Max"
                       : call && b_.text(call->callee) == "min"           ? "Min"
                                                                           : "";
  bool whole = t == DType::I32 || t == DType::U32 || t == DType::U64 || (t == DType::I64 && f == "Add");
  bool real = f == "Add" && (t == DType::F32 || t == DType::F64);
  if (!e || e->kind != Entity::Buffer || f.empty() || (!whole && !real))
    return fail(s.at, fmt::format("`{}` has no atomic operation", print(b_, &s)));
  e->seen++;
  std::string place = exprs.pointer(*e, to<Load>(shortened(s.target)).index);
  Text v = exprs.print(shortened(add ? add->b : call->args[1]), t);
  if (add && add->op == Op::Sub) v.s = "-" + wrap(v, kUnary), v.prec = kUnary;
  if (t == DType::U64 || t == DType::I64)
    return line("atomic{}((unsigned long long *)({}), (unsigned long long)({}));", f, place, v.s);
  line("atomic{}({}, {});", f, place, v.s);
}

}  // namespace mlc
