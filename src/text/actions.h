// The actions of the grammar: each makes one node from the values of its parts. Included by the generated parser alone.
#pragma once
#include "text/reader.h"

namespace mlc {

// Values too big for a Value: these structs are never seen outside the parser (Reader::keep).
struct PlaceV { Sym device; int32_t index; };
struct SigV { Syms dims; Params params; Defs results; };
struct SuffixV { Sym scope; PlaceV place; Attrs attrs; };
struct BodyV { Notes notes; Stmts stmts; };
struct TailV { Attrs attrs; Syms from; };
struct KindV { Sym tag; LoopKind kind; };
struct HeadMarks { uint32_t notes, from, axes; };

inline Value at(uint32_t offset) { Value v{}; v.at = offset; return v; }
inline Value any(const void *p, uint32_t offset = 0) { Value v = at(offset); v.any = const_cast<void *>(p); return v; }
inline Value expr(const Expr *e, Value first) { Value v = at(first.at); v.expr = e; return v; }
template <class T> T get(Reader &r, Value v) { return r.take<T>(v.any); }  // once
// A list as its first element and `len`; a Def and an Iter as pointer, place and name in `len`.
template <class T> Value list_value(std::span<const T> l, uint32_t offset = 0) {
  Value v = any(l.data(), offset);
  v.len = uint32_t(l.size());
  return v;
}
template <class T> std::span<const T> list_of(Value v) { return {static_cast<const T *>(v.any), v.len}; }
inline Attrs attrs_of(Value v) { return list_of<Attr>(v); }
inline Syms syms_of(Value v) { return list_of<Sym>(v); }
inline Def def_of(Value v) { return {{v.len}, v.at, v.type}; }
inline Iter iter_of(Value v) { return {{v.len}, v.expr, v.at}; }
inline Value no_attrs() { return any(nullptr); }
inline Value no_defs() { return any(nullptr); }
inline Value no_syms() { return any(nullptr); }
inline Value no_place() { return any(nullptr); }
inline Value take_defs(Reader &r, Value v) { return list_value(r.defs.take(r.b, v.mark), v.at); }
inline Value take_syms(Reader &r, Value v) { return list_value(r.syms.take(r.b, v.mark), v.at); }
inline PlaceV place_of(Reader &r, Value v) { return v.any ? get<PlaceV>(r, v) : PlaceV{{}, -1}; }
inline std::string_view text_of(Value v) { return {v.text, v.len}; }

// ---- expressions
inline Value binary(Reader &r, Op op, Value a, Value b) { return expr(r.b.binary(op, a.expr, b.expr, a.at), a); }
inline Value unary(Reader &r, Op op, Value first, Value a) { return expr(r.b.unary(op, a.expr, first.at), first); }
inline Value string(Reader &r, Value v) { return expr(r.b.string_in_place(text_of(v), v.at), v); }
inline Value boolean(Reader &r, Value v, bool b) { return expr(r.b.boolean(b, v.at), v); }
inline Value none(Reader &r, Value v) { return expr(r.b.none(v.at), v); }
inline Value name(Reader &r, Value v) { return expr(r.b.name(v.sym, v.at), v); }
inline Value global(Reader &r, Value v) { return expr(r.b.global(v.sym, v.at), v); }
inline Value load(Reader &r, Value v, Exprs i, bool global) { return expr(r.b.load(v.sym, i, v.at, global), v); }
inline Value range(Reader &r, Value lo, Value extent) { return expr(r.b.range(lo.expr, extent.expr, lo.at), lo); }
inline Value all(Reader &r, Value v) { return expr(r.b.all(v.at), v); }
inline Value list(Reader &r, Value v, Exprs items) { return expr(r.b.make_list(items, v.at), v); }
inline Value map(Reader &r, Value a, Value b) { return expr(r.b.map(as<List>(a.expr), as<List>(b.expr), a.at), a); }
inline Value call(Reader &r, Value f, Exprs args, Iters iters) {
  bool global = r.begin[f.at] == '@';
  return expr(r.b.call(f.sym, args, f.at, global, iters), f);
}
inline Value reduction(Reader &r, Value f, Value args, Value iters) {
  Exprs a = r.exprs.take(r.b, args.mark);
  return call(r, f, a, r.iters.take(r.b, iters.mark));
}
inline Value word(Reader &r, Value v) { v.sym = r.intern(v); return v; }  // a reserved word as a name
// The list that begins with v.
inline Value first(Reader &r, Value v) {
  Value list = at(v.at);
  list.mark = r.exprs.mark();
  r.exprs.push(v.expr);
  return list;
}
inline Value iter(Value n, Value extent) {
  extent.at = n.at, extent.len = n.sym.id;
  return extent;
}

// What may stand behind an expression: `{k = v} from ".."`.
inline Value no_tail() { return any(nullptr); }
inline Value tail(Reader &r, Value attrs, Value from) { return any(r.keep(TailV{attrs_of(attrs), syms_of(from)})); }
inline TailV tail_of(Reader &r, Value v) { return v.any ? get<TailV>(r, v) : TailV{}; }
inline Value pair(Reader &r, Value key, Value value) {
  Value list = at(key.at);
  list.mark = r.attrs.mark();
  r.attrs.push({key.sym, key.at, value.expr});
  return list;
}

// ---- types
inline Value definition(Value n, Value t) {
  t.at = n.at, t.len = n.sym.id;
  return t;
}
inline Value place(Reader &r, Value n, int32_t index) { return any(r.keep(PlaceV{n.sym, index}), n.at); }
inline int32_t device_index(Reader &r, Value v) {
  const Int &i = to<Int>(v.expr);
  if (i.wide || i.value > INT32_MAX) r.error(v.at, "the index of a device is too large");
  return int32_t(i.value);
}
inline Value suffix(Reader &r, Sym scope, Value place, Value attrs) {
  return any(r.keep(SuffixV{scope, place_of(r, place), attrs_of(attrs)}));
}
inline Value full_type(Reader &r, Value base, Value suffix) {
  SuffixV s = get<SuffixV>(r, suffix);
  const Type &t = *base.type;
  Value v = base;
  v.type = r.b.type({t.elem, t.tensor, s.scope, s.place.device, s.place.index, t.dims, s.attrs});
  return v;
}
inline Value param(Reader &r, Mode mode, Value def) {
  Value list = at(def.at);
  list.mark = r.params.mark();
  r.params.push({mode, def_of(def)});
  return list;
}
inline Value signature(Reader &r, Value dims, Value params, Value results) {
  return any(r.keep(SigV{syms_of(dims), list_of<Param>(params), list_of<Def>(results)}));
}

// ---- statements
template <class T> Value stmt(Reader &r, Value first, const T &node) {
  Value v = at(first.at);
  v.stmt = r.make(node, first.at);
  return v;
}
inline void push_stmt(Reader &r, Value v) { r.stmts.push(v.stmt); }
inline void push_init(Reader &r, Value, Value v) { r.stmts.push(v.stmt); }
inline Stmts take_stmts(Reader &r, Value v) { return r.stmts.take(r.b, v.mark); }

// Notes are kept on two stacks until take_notes: the value of the first is where they begin, in one number.
inline Value note_marks(uint32_t attrs, uint32_t from) {
  Value v{};
  v.number = int64_t(uint64_t(attrs) | uint64_t(from) << 32);
  return v;
}
inline Value note_marks(Reader &r) { return note_marks(r.notes.mark(), r.from.mark()); }
inline Value note_attr(Reader &r, Value key, Value value) {
  Value marks = note_marks(r);
  r.notes.push({key.sym, key.at, value.expr});
  return marks;
}
inline Value note_from(Reader &r, Value strings) { return note_marks(r.notes.mark(), strings.mark); }
inline Notes take_notes(Reader &r, Value v) {
  Attrs a = r.notes.take(r.b, uint32_t(v.number));
  return {a, r.from.take(r.b, uint32_t(uint64_t(v.number) >> 32))};
}
inline Value body(Reader &r, Value open, Notes notes, Stmts stmts) { return any(r.keep(BodyV{notes, stmts}), open.at); }
// Where a body has no place for `attr` and `from` lines.
inline Stmts plain(Reader &r, Value b) {
  BodyV v = get<BodyV>(r, b);
  if (!v.notes.attrs.empty()) r.error(v.notes.attrs[0].at, "no `attr` here: it belongs to functions, loops and blocks");
  else if (!v.notes.from.empty()) r.error(b.at, "no `from` line here: it belongs to functions, loops and blocks");
  return v.stmts;
}

inline Value let(Reader &r, Value defs, Value e, Value tail) {
  TailV t = tail_of(r, tail);
  return stmt(r, defs, Let{{}, r.defs.take(r.b, defs.mark), e.expr, t.attrs, t.from});
}
inline Value values(Reader &r, Value stmts, Value yields, Value *stacks) {
  Exprs s = stacks ? r.exprs.take(r.b, stacks->mark) : Exprs{};
  Exprs y = r.exprs.take(r.b, yields.mark);
  return any(r.keep(Yield{take_stmts(r, stmts), y, s}));
}
inline Value if_value(Reader &r, Value defs, Value cond, Value a, Value b, Value from) {
  return stmt(r, defs, IfValue{{}, r.defs.take(r.b, defs.mark), cond.expr, get<Yield>(r, a), get<Yield>(r, b),
                               syms_of(from)});
}
inline Value loop(Reader &r, Value defs, Value it, Value carry, Value until, Value body, Value from) {
  return stmt(r, defs, Loop{{}, r.defs.take(r.b, defs.mark), iter_of(it), r.carries.take(r.b, carry.mark), until.sym,
                            get<Yield>(r, body), syms_of(from)});
}
inline Value store(Reader &r, Value first, bool atomic, Value target, Value e, Value from) {
  return stmt(r, first, Store{{}, atomic, as<Load>(target.expr), e.expr, syms_of(from)});
}
inline Value compute(Reader &r, Value first, Value results, Value e, Value from) {
  return stmt(r, first, Compute{{}, r.results.take(r.b, results.mark), e.expr, syms_of(from)});
}
inline Value alloc(Reader &r, Value first, Value def) { return stmt(r, first, Alloc{{}, def_of(def), {}, nullptr}); }
inline Value alloc_at(Reader &r, Value first, Value def, Value base, Value offset) {
  return stmt(r, first, Alloc{{}, def_of(def), base.sym, offset.expr});
}
inline Value view(Reader &r, Value first, Value def, Value source) {
  return stmt(r, first, View{{}, def_of(def), as<Load>(source.expr)});
}
inline Value call_stmt(Reader &r, Value first, Value call, Value dests, Value tail) {
  TailV t = tail_of(r, tail);
  return stmt(r, first, CallStmt{{}, as<Call>(call.expr), r.exprs.take(r.b, dests.mark), t.attrs, t.from});
}
inline Value assume(Reader &r, Value first, Value e) { return stmt(r, first, Assume{{}, e.expr}); }
inline Value code(Reader &r, Value first, Value text) { return stmt(r, first, Code{{}, text_of(text)}); }
inline Value dataflow(Reader &r, Value first, Value names, Value body) {
  return stmt(r, first, Dataflow{{}, r.syms.take(r.b, names.mark), plain(r, body)});
}
inline Value if_stmt(Reader &r, Value first, Value cond, Value body, Value *other) {
  return stmt(r, first, If{{}, cond.expr, plain(r, body), other ? plain(r, *other) : Stmts{}, other != nullptr});
}
inline Value while_stmt(Reader &r, Value first, Value cond, Value body) {
  return stmt(r, first, While{{}, cond.expr, plain(r, body)});
}
inline Value loop_kind(Sym tag, LoopKind kind) {
  Value v{};
  v.sym = tag, v.len = uint32_t(kind);
  return v;
}
inline Value serial() { return loop_kind({}, LoopKind::Serial); }
inline Value for_loop(Reader &r, Value first, Value it, Value kind, Value body) {
  BodyV b = get<BodyV>(r, body);
  return stmt(r, first, For{{}, LoopKind(kind.len), iter_of(it), kind.sym, b.notes, b.stmts});
}
inline Value for_nest(Reader &r, Value first, Value it, Value kind, Value inner) {
  return stmt(r, first, For{{}, LoopKind(kind.len), iter_of(it), kind.sym, {}, r.b.one(inner.stmt)});
}
inline Value begin_heads(Reader &r) {
  r.heads.push_back({});
  return any(r.keep(HeadMarks{r.notes.mark(), r.from.mark(), r.axes.mark()}));
}
inline void axis(Reader &r, Value first, AxisKind kind, Value it, Value binding) {
  Iter i = iter_of(it);
  r.axes.push({kind, i.name, first.at, i.extent, binding.expr});
}
inline void guard(Reader &r, Value first, Value e) {
  const Expr *&g = r.heads.back().guard;
  if (g) r.error(first.at, "a second guard: join the conditions with &&");
  g = e.expr;
}
inline Value block(Reader &r, Value first, Value n, Value heads, Value inits, Value stmts) {
  HeadMarks m = get<HeadMarks>(r, heads);
  Reader::Head h = r.heads.back();
  r.heads.pop_back();
  Stmts body = take_stmts(r, stmts), init = take_stmts(r, inits);
  Notes notes = {r.notes.take(r.b, m.notes), r.from.take(r.b, m.from)};
  return stmt(r, first, Block{{}, n.sym, notes, r.axes.take(r.b, m.axes), h.guard, h.reads, h.writes, init, body});
}

// ---- items
template <class T> Value item(Reader &r, Value first, const T &node) { return any(r.make(node, first.at), first.at); }
inline void add_item(Reader &r, Value v) { r.m->add(static_cast<const Item *>(v.any)); }
inline void version(Reader &r, Value v) {
  const Int &i = to<Int>(v.expr);
  if (i.wide || i.value != 1) r.error(v.at, "this reads `mlc 1`");
}
inline void module_head(Reader &r, Value first) {
  if (r.m) r.m->head_comment = r.claim(first.at);
}
inline Value file(Reader &r, Value first, Value path, Value attrs) {
  return item(r, first, File{{}, text_of(path), attrs_of(attrs)});
}
inline Value device(Reader &r, Value first, Value device, Value target) {
  PlaceV p = place_of(r, device);
  return item(r, first, Device{{}, p.device, p.index, target.sym});
}
inline Value constant(Reader &r, Value first, Value n, Value t, Value e, Value tail) {
  TailV v = tail_of(r, tail);
  return item(r, first, Const{{}, n.sym, t.type, e.expr, {}, 0, v.attrs, v.from});
}
inline Value constant_at(Reader &r, Value first, Value n, Value t, Value path, Value offset, Value from) {
  const Int &i = to<Int>(offset.expr);
  if (i.wide) r.error(offset.at, "the offset is too large");
  return item(r, first, Const{{}, n.sym, t.type, nullptr, text_of(path), i.value, {}, syms_of(from)});
}
inline Value func_kind(Value v, FuncKind k) { v.len = uint32_t(k); return v; }
inline Value function(Reader &r, Value kind, Value n, Value sig, Value place, Value body) {
  SigV s = get<SigV>(r, sig);
  BodyV b = get<BodyV>(r, body);
  PlaceV p = place_of(r, place);
  return item(r, kind, Func{{}, FuncKind(kind.len), n.sym, s.dims, s.params, s.results, p.device, p.index, {}, b.notes,
                            {}, b.stmts, {}});
}
inline Value reducer(Reader &r, Value first, Value n, Value sig, Value notes, Value inits, Value stmts) {
  SigV s = get<SigV>(r, sig);
  Stmts body = take_stmts(r, stmts), init = take_stmts(r, inits);
  return item(r, first, Func{{}, FuncKind::Reducer, n.sym, s.dims, s.params, s.results, {}, -1, {}, take_notes(r, notes),
                             init, body, {}});
}
inline void part(Reader &r, Value first, bool desc, Value body) {
  BodyV b = get<BodyV>(r, body);
  r.parts.push({desc, first.at, b.notes, b.stmts});
}
inline Value foreign(Reader &r, Value kind, Value n, Value sig, Value target, Value notes, Value parts) {
  SigV s = get<SigV>(r, sig);
  return item(r, kind, Func{{}, FuncKind(kind.len), n.sym, s.dims, s.params, s.results, {}, -1, target.sym,
                            take_notes(r, notes), {}, {}, r.parts.take(r.b, parts.mark)});
}
inline void feature(Reader &r, Value first, Feature::Kind k, Value n, Value attrs) {
  r.features.push({k, n.sym, first.at, attrs_of(attrs)});
}
inline Value target(Reader &r, Value first, Value n, Value notes, Value features) {
  return item(r, first, Target{{}, n.sym, take_notes(r, notes), r.features.take(r.b, features.mark)});
}
inline void step(Reader &r, Value first, Value results, Value call, Value attrs) {
  r.steps.push({syms_of(results), as<Call>(call.expr), attrs_of(attrs), r.claim(first.at)});
}
inline Value schedule(Reader &r, Value first, Value n, Value target, Value notes, Value steps) {
  auto s = r.steps.take(r.b, steps.mark);
  return item(r, first, Schedule{{}, n.sym, target.sym, take_notes(r, notes), s});
}

void syntax_error(Reader &r, std::string_view expected, std::string_view found);

}  // namespace mlc
