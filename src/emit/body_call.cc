// Calls: dimensions of the callee are solved here and passed, buffers become pointers.
#include "arith/prove.h"
#include "emit/body.h"
#include "text/text.h"

namespace mlc {
namespace {

const Expr *lower_end(Build &b, const Expr *i) {
  return i->kind == Kind::All ? b.integer(0) : i->kind == Kind::Range ? to<Range>(i).lo : i;
}

}  // namespace

Argument BodyPrinter::argument_type(const Expr *e, DType want) {
  auto of = [&](const Type *t, Exprs strides) { return Argument{t, nullptr, strides}; };
  if (auto *n = as<Name>(e)) {
    if (Entity *x = scope.find(n->name); x && x->type->tensor) return of(x->type, b_.list(x->strides));
  } else if (auto *g = as<Global>(e)) {
    if (const Const *c = m_.constant(g->name)) return of(c->type, {});
  } else if (auto *l = as<Load>(e); l && is_region(l->index)) {
    const Type *t = nullptr;
    if (l->global) t = m_.constant(l->buffer) ? m_.constant(l->buffer)->type : nullptr;
    else if (Entity *x = scope.find(l->buffer)) t = x->type;
    Exprs strides;
    if (t) return of(region_type(b_, t, l->index, &strides), strides);
  }
  DType t = exprs.type(e, want);
  return {b_.scalar(t), t == DType::Index ? e : nullptr, {}};
}

std::string BodyPrinter::buffer_argument(Entity e, Exprs index, const Def &param, bool written, uint32_t at) {
  std::string_view name = b_.text(param.name);
  if (e.kind != Entity::Buffer) return fail(at, fmt::format("argument {} is no buffer", name)), "0";
  if (written && !e.writable) fail(at, fmt::format("argument {} is written, but its buffer is read only", name));
  Exprs all = e.strides.empty() ? strides_of(b_, e.type) : Exprs(e.strides);
  std::vector<const Expr *> lo, strides, extents;
  for (size_t d = 0; d < index.size(); d++) {
    lo.push_back(lower_end(b_, index[d]));
    if (index[d]->kind != Kind::All && index[d]->kind != Kind::Range) continue;
    strides.push_back(all[d]);
    extents.push_back(index[d]->kind == Kind::All ? e.type->dims[d] : to<Range>(index[d]).extent);
  }
  if (index.empty() && e.strides.empty() && e.first.empty()) return e.ident;
  if (index.empty()) {
    strides = e.strides;
    extents.assign(e.type->dims.begin(), e.type->dims.end());
  }
  const Type *dense = b_.tensor(e.type->elem, b_.list(extents));
  // A distance matters only in a dimension of more than one element.
  Exprs want = strides_of(b_, dense);
  bool is_dense = true;
  for (size_t d = 0; d < strides.size(); d++)
    is_dense = is_dense && (is_int(extents[d], 1) || provably_equal(b_, strides[d], want[d], scope.bounds));
  if (!is_dense && !attr(b_, param.type->attrs, "strides"))
    fail(at, fmt::format("argument {} is a region with gaps, expected a dense buffer", name));
  Text place = exprs.position(e, lo);
  if (!e.first.empty() || (info(e.type->elem).bits < 8 && place.s != "0"))
    fail(at, fmt::format("argument {} is a region of packed elements", name));
  return place.s == "0" ? e.ident : fmt::format("{} + {}", e.ident, wrap(place, kSum));
}

std::string BodyPrinter::argument(const Expr *e, const Def &param, bool written, uint32_t at) {
  if (!param.type->tensor) return exprs.text(read_back(shortened(e)), param.type->elem);
  Entity global;
  auto constant_entity = [&](Sym name) {
    const Const *c = m_.constant(name);
    if (c) global.kind = Entity::Buffer, global.type = c->type, global.ident = constant(name);
    else fail(at, fmt::format("no constant @{}", b_.text(name)));
    return c != nullptr;
  };
  auto found = [&](Sym name) -> Entity * {
    Entity *x = scope.find(name);
    if (x) x->seen++;
    else fail(at, fmt::format("{} is not defined here", b_.text(name)));
    return x;
  };
  if (auto *g = as<Global>(e)) return constant_entity(g->name) ? buffer_argument(global, {}, param, written, at) : "0";
  if (auto *n = as<Name>(e)) {
    Entity *x = found(n->name);
    return x ? buffer_argument(*x, {}, param, written, at) : "0";
  }
  if (auto *l = as<Load>(e)) {
    Entity *x = l->global ? (constant_entity(l->buffer) ? &global : nullptr) : found(l->buffer);
    return x ? buffer_argument(*x, l->index, param, written, at) : "0";
  }
  fail(at, fmt::format("argument {}: expected a buffer, found {}", b_.text(param.name), print(b_, e)));
  return "0";
}

void BodyPrinter::call(const CallStmt &c) {
  std::string_view name = b_.text(c.call->callee);
  if (!c.call->global) {
    if (side != Side::Cpu && effect(c)) return;
    if (name == "Copy" && c.call->args.size() == 1 && c.dests.size() == 1) return copy(c);
    if (name == "fill" && c.call->args.size() == 1 && c.dests.size() == 1) return fill(c);
    return fail(c.at, fmt::format("`{}` cannot be emitted: operators are lowered by mlc-lower", print(b_, c.call)));
  }
  const Func *callee = m_.func(c.call->callee);
  if (callee && callee->func == FuncKind::Intrinsic) return intrinsic(c, *callee);
  bool known = callee && (callee->func == FuncKind::Kernel || callee->func == FuncKind::Graph ||
                          callee->func == FuncKind::Extern);
  if (!known) return fail(c.at, fmt::format("@{} cannot be called in host code: it is no kernel, graph or extern", name));
  const Emitted *fn = u_.function(callee->name, c.from);
  if (!fn) return;
  Exprs args = c.call->args;
  if (args.size() != callee->params.size() || c.dests.size() != callee->results.size())
    return fail(c.at, fmt::format("@{} has {} parameters and {} results, found {} and {}", name, callee->params.size(),
                                  callee->results.size(), args.size(), c.dests.size()));
  std::vector<Argument> types, results;
  for (size_t i = 0; i < args.size(); i++) types.push_back(argument_type(args[i], callee->params[i].def.type->elem));
  for (size_t i = 0; i < c.dests.size(); i++) {
    const Type *t = callee->results[i].type;
    results.push_back(t->rank() ? argument_type(c.dests[i], t->elem) : Argument{t, nullptr, {}});
  }
  Solution dims = solve_dims(b_, *callee, types, results);
  if (!dims) return fail(c.at, fmt::format("the dimensions of @{} do not follow from its arguments", name));

  for (const Solution::Equation &e : dims.open) {
    if (u_.checks == RunChecks::None || provably_equal(b_, e.wanted, e.found, scope.bounds)) continue;
    failures.push_back({c.from, fmt::format("argument {} of @{}: expected a size of {}, found {}",
                                            print_name(b_, callee->params[e.param].def.name), name, print(b_, e.wanted),
                                            print(b_, e.found))});
    line("if ({} != {}) {}", wrap(exprs.index(shortened(e.wanted)), kSum), wrap(exprs.index(shortened(e.found)), kSum),
         leave(int(failures.size()) - 1));
  }

  std::vector<std::string> list;
  for (size_t d = 0; d < callee->dims.size(); d++)
    if (fn->dims[d]) list.push_back(exprs.index(shortened(dims.names.at(callee->dims[d]))).s);
  for (size_t i = 0; i < args.size(); i++)
    list.push_back(argument(args[i], callee->params[i].def, callee->params[i].mode != Mode::In, c.at));
  for (size_t i = 0; i < c.dests.size(); i++) {
    const Def &r = callee->results[i];
    if (r.type->tensor) {
      list.push_back(argument(c.dests[i], r, true, c.at));
      continue;
    }
    auto *n = as<Name>(c.dests[i]);
    if (!n) {
      fail(c.at, fmt::format("result {} of @{}: expected a name", b_.text(r.name), name));
      continue;
    }
    Entity e;
    e.wild = r.type->elem == DType::Index;
    std::string ident = define_local({n->name, n->at, r.type}, e).ident;
    line("{} {} = 0;", c_value(r.type->elem), ident);
    if (r.type->elem == DType::Index) scope.bounds.index(n->name);
    list.push_back("&" + ident);
  }
  for (Sym k : fn->constants) list.push_back(constant(k));
  if (fn->parallel) {
    list.push_back(in_task_ ? "&" + u_.helpers.need("serial") : options);
    uses_options |= !in_task_;
  }

  if (callee->func == FuncKind::Extern) return foreign(c, *fn, list);
  if (side == Side::Host) return launch(c, *fn, std::move(list));
  std::string text = fn->ident + "(";
  for (size_t i = 0; i < list.size(); i++) text += (i ? ", " : "") + list[i];
  text += ")";
  if (fn->failures.empty()) {
    line("{};", text);
  } else {
    int base = first_code + int(failures.size());
    std::string code = base ? fmt::format("{} + failed", base) : "failed";
    line("if (const int failed = {}) {}", text,
         in_task_ ? fmt::format("return __atomic_store_n(&task.failed, {}, __ATOMIC_RELAXED);", code)
                  : fmt::format("return {};", code));
    for (const Failure &f : fn->failures) failures.push_back({f.from.empty() ? c.from : f.from, f.what});
  }
  for (size_t i = 0; i < c.dests.size(); i++)
    if (!callee->results[i].type->tensor && depth_ == 0 && defined) defined(mlc::to<Name>(c.dests[i]).name);
}

// A library function: of what it returns where it fails, only that it is not 0 counts.
void BodyPrinter::foreign(const CallStmt &c, const Emitted &fn, const std::vector<std::string> &args) {
  std::string text = fn.ident + (fn.stream ? "(launch->stream" : "(");
  for (const std::string &a : args) text += (text.back() == '(' ? "" : ", ") + a;
  text += ")";
  for (const Failure &f : fn.failures) failures.push_back({f.from.empty() ? c.from : f.from, f.what});
  if (fn.failures.empty()) line("{};", text);
  else line("if ({} != 0) {}", text, leave(int(failures.size()) - 1));
  for (const Expr *d : c.dests)
    if (auto *n = as<Name>(d); n && depth_ == 0 && defined && !scope.find(n->name)->type->tensor) defined(n->name);
}

// The element at `turn` of what is kept of a buffer or region.
const Expr *BodyPrinter::element(const Expr *e, Exprs turn) {
  if (auto *g = as<Global>(e)) return b_.load(g->name, turn, e->at, true);
  auto *l = as<Load>(e);
  if (!l) return b_.load(to<Name>(e).name, turn, e->at);
  std::vector<const Expr *> index;
  size_t d = 0;
  for (const Expr *i : l->index) {
    bool kept = i->kind == Kind::All || i->kind == Kind::Range;
    index.push_back(kept ? fold(b_, Op::Add, lower_end(b_, i), turn[d++]) : i);
  }
  return b_.load(l->buffer, b_.list(index), e->at, l->global);
}

// Loops around a store to each element of the destination.
void BodyPrinter::each_element(const CallStmt &c, const std::function<const Expr *(Exprs)> &value) {
  const Type *t = argument_type(c.dests[0], DType::Index).type;
  std::vector<const Expr *> turn;
  for (size_t d = 0; d < t->rank(); d++) turn.push_back(b_.name(b_.sym(fmt::format("i{}", d))));
  Exprs at = b_.list(turn);
  const Stmt *s = b_.make(Store{{}, false, as<Load>(element(c.dests[0], at)), value(at), {}});
  for (size_t d = t->rank(); d-- > 0;) {
    Iter i = {to<Name>(turn[d]).name, t->dims[d], c.at};
    s = b_.make(For{{}, LoopKind::Serial, i, {}, {}, b_.stmts({s})});
  }
  depth_++;
  stmts(b_.stmts({s}));
  depth_--;
}

// call Copy(x) -> y: the same element type, element by element.
void BodyPrinter::copy(const CallStmt &c) {
  Argument from = argument_type(c.call->args[0], DType::Index), to = argument_type(c.dests[0], DType::Index);
  bool alike = from.type->tensor && to.type->tensor && from.type->elem == to.type->elem;
  if (!alike || from.type->rank() != to.type->rank())
    return fail(c.at, fmt::format("`{}` cannot be emitted: source and destination differ in type", print(b_, c.call)));
  each_element(c, [&](Exprs at) { return element(c.call->args[0], at); });
}

// call fill(v) -> y
void BodyPrinter::fill(const CallStmt &c) {
  if (!argument_type(c.dests[0], DType::Index).type->tensor)
    return fail(c.at, fmt::format("{}: expected a buffer", print(b_, c.dests[0])));
  each_element(c, [&](Exprs) { return c.call->args[0]; });
}

}  // namespace mlc
