// Structural equality. Comments and places do not count; `from` and attributes do.
#include <bit>

#include "ir/build.h"

namespace mlc {

namespace {

template <class T, class F> bool all_equal(std::span<const T> a, std::span<const T> b, F same) {
  if (a.size() != b.size()) return false;
  if (a.data() == b.data()) return true;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}
bool same(Syms a, Syms b) {
  return all_equal(a, b, [](Sym x, Sym y) { return x == y; });
}
bool same(const Iter &a, const Iter &b) { return a.name == b.name && equal(a.extent, b.extent); }
bool same(Iters a, Iters b) {
  return all_equal(a, b, [](const Iter &x, const Iter &y) { return same(x, y); });
}
bool same(const Def &a, const Def &b) { return a.name == b.name && a.type == b.type; }
bool same(Defs a, Defs b) {
  return all_equal(a, b, [](const Def &x, const Def &y) { return same(x, y); });
}
bool same(const Notes &a, const Notes &b) { return equal(a.attrs, b.attrs) && same(a.from, b.from); }
bool same(const Yield &a, const Yield &b) {
  return equal(a.body, b.body) && equal(a.yields, b.yields) && equal(a.stacks, b.stacks);
}
bool same(std::span<const Load *const> a, std::span<const Load *const> b) {
  return all_equal(a, b, [](const Load *x, const Load *y) { return equal(x, y); });
}
bool same(std::span<const Carry> a, std::span<const Carry> b) {
  return all_equal(a, b, [](const Carry &x, const Carry &y) { return same(x.def, y.def) && equal(x.init, y.init); });
}
bool same(std::span<const Result> a, std::span<const Result> b) {
  return all_equal(a, b, [](const Result &x, const Result &y) { return x.name == y.name && same(x.iters, y.iters); });
}
bool same(std::span<const Axis> a, std::span<const Axis> b) {
  return all_equal(a, b, [](const Axis &x, const Axis &y) {
    return x.kind == y.kind && x.name == y.name && equal(x.domain, y.domain) && equal(x.binding, y.binding);
  });
}
bool same(Params a, Params b) {
  return all_equal(a, b, [](const Param &x, const Param &y) { return x.mode == y.mode && same(x.def, y.def); });
}
bool same(std::span<const Part> a, std::span<const Part> b) {
  return all_equal(a, b, [](const Part &x, const Part &y) {
    return x.desc == y.desc && same(x.notes, y.notes) && equal(x.body, y.body);
  });
}
bool same(std::span<const Feature> a, std::span<const Feature> b) {
  return all_equal(a, b, [](const Feature &x, const Feature &y) {
    return x.kind == y.kind && x.name == y.name && equal(x.attrs, y.attrs);
  });
}
bool same(std::span<const Step> a, std::span<const Step> b) {
  return all_equal(a, b, [](const Step &x, const Step &y) {
    return same(x.results, y.results) && equal(x.call, y.call) && equal(x.attrs, y.attrs);
  });
}

}  // namespace

bool equal(Exprs a, Exprs b) {
  return all_equal(a, b, [](const Expr *x, const Expr *y) { return equal(x, y); });
}
bool equal(Attrs a, Attrs b) {
  return all_equal(a, b, [](const Attr &x, const Attr &y) { return x.key == y.key && equal(x.value, y.value); });
}
bool equal(Stmts a, Stmts b) {
  return all_equal(a, b, [](const Stmt *x, const Stmt *y) { return equal(x, y); });
}

bool equal(const Expr *a, const Expr *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  switch (a->kind) {
    case Kind::Int: return to<Int>(a).value == to<Int>(b).value && to<Int>(a).wide == to<Int>(b).wide;
    case Kind::Float:
      return std::bit_cast<uint64_t>(to<Float>(a).value) == std::bit_cast<uint64_t>(to<Float>(b).value) &&
             to<Float>(a).nan_bits == to<Float>(b).nan_bits;
    case Kind::Bool: return to<Bool>(a).value == to<Bool>(b).value;
    case Kind::Str: return to<Str>(a).value == to<Str>(b).value;
    case Kind::Name: return to<Name>(a).name == to<Name>(b).name;
    case Kind::Global: return to<Global>(a).name == to<Global>(b).name;
    case Kind::Load:
      return to<Load>(a).buffer == to<Load>(b).buffer && to<Load>(a).global == to<Load>(b).global &&
             equal(to<Load>(a).index, to<Load>(b).index);
    case Kind::Range: return equal(to<Range>(a).lo, to<Range>(b).lo) && equal(to<Range>(a).extent, to<Range>(b).extent);
    case Kind::Call:
      return to<Call>(a).callee == to<Call>(b).callee && to<Call>(a).global == to<Call>(b).global &&
             equal(to<Call>(a).args, to<Call>(b).args) && same(to<Call>(a).iters, to<Call>(b).iters);
    case Kind::Unary: return to<Unary>(a).op == to<Unary>(b).op && equal(to<Unary>(a).a, to<Unary>(b).a);
    case Kind::Binary:
      return to<Binary>(a).op == to<Binary>(b).op && equal(to<Binary>(a).a, to<Binary>(b).a) &&
             equal(to<Binary>(a).b, to<Binary>(b).b);
    case Kind::List: return equal(to<List>(a).items, to<List>(b).items);
    case Kind::Map: return equal(to<Map>(a).from, to<Map>(b).from) && equal(to<Map>(a).to, to<Map>(b).to);
    default: return true;  // None, All
  }
}

bool equal(const Stmt *a, const Stmt *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  switch (a->kind) {
    case Kind::Let: {
      auto &x = to<Let>(a), &y = to<Let>(b);
      return same(x.defs, y.defs) && equal(x.value, y.value) && equal(x.attrs, y.attrs) && same(x.from, y.from);
    }
    case Kind::IfValue: {
      auto &x = to<IfValue>(a), &y = to<IfValue>(b);
      return same(x.defs, y.defs) && equal(x.cond, y.cond) && same(x.then, y.then) && same(x.other, y.other) &&
             same(x.from, y.from);
    }
    case Kind::Loop: {
      auto &x = to<Loop>(a), &y = to<Loop>(b);
      return same(x.defs, y.defs) && same(x.iter, y.iter) && same(x.carry, y.carry) && x.until == y.until &&
             same(x.body, y.body) && same(x.from, y.from);
    }
    case Kind::Store: {
      auto &x = to<Store>(a), &y = to<Store>(b);
      return x.atomic == y.atomic && equal(x.target, y.target) && equal(x.value, y.value) && same(x.from, y.from);
    }
    case Kind::Compute: {
      auto &x = to<Compute>(a), &y = to<Compute>(b);
      return same(x.results, y.results) && equal(x.value, y.value) && same(x.from, y.from);
    }
    case Kind::Alloc: {
      auto &x = to<Alloc>(a), &y = to<Alloc>(b);
      return same(x.def, y.def) && x.base == y.base && equal(x.offset, y.offset);
    }
    case Kind::View: return same(to<View>(a).def, to<View>(b).def) && equal(to<View>(a).source, to<View>(b).source);
    case Kind::CallStmt: {
      auto &x = to<CallStmt>(a), &y = to<CallStmt>(b);
      return equal(x.call, y.call) && equal(x.dests, y.dests) && equal(x.attrs, y.attrs) && same(x.from, y.from);
    }
    case Kind::Assume: return equal(to<Assume>(a).cond, to<Assume>(b).cond);
    case Kind::Code: return to<Code>(a).text == to<Code>(b).text;
    case Kind::Dataflow:
      return same(to<Dataflow>(a).outputs, to<Dataflow>(b).outputs) &&
             equal(to<Dataflow>(a).body, to<Dataflow>(b).body);
    case Kind::For: {
      auto &x = to<For>(a), &y = to<For>(b);
      return x.loop == y.loop && same(x.iter, y.iter) && x.tag == y.tag && same(x.notes, y.notes) &&
             equal(x.body, y.body);
    }
    case Kind::If: {
      auto &x = to<If>(a), &y = to<If>(b);
      return equal(x.cond, y.cond) && x.has_else == y.has_else && equal(x.body, y.body) && equal(x.other, y.other);
    }
    case Kind::While: return equal(to<While>(a).cond, to<While>(b).cond) && equal(to<While>(a).body, to<While>(b).body);
    case Kind::Block: {
      auto &x = to<Block>(a), &y = to<Block>(b);
      return x.name == y.name && same(x.notes, y.notes) && same(x.axes, y.axes) && equal(x.guard, y.guard) &&
             same(x.reads, y.reads) && same(x.writes, y.writes) && equal(x.inits, y.inits) && equal(x.body, y.body);
    }
    default: return false;
  }
}

bool equal(const Item *a, const Item *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  switch (a->kind) {
    case Kind::File: return to<File>(a).path == to<File>(b).path && equal(to<File>(a).attrs, to<File>(b).attrs);
    case Kind::Device: {
      auto &x = to<Device>(a), &y = to<Device>(b);
      return x.name == y.name && x.index == y.index && x.target == y.target;
    }
    case Kind::Const: {
      auto &x = to<Const>(a), &y = to<Const>(b);
      return x.name == y.name && x.type == y.type && equal(x.value, y.value) && x.path == y.path &&
             x.offset == y.offset && equal(x.attrs, y.attrs) && same(x.from, y.from);
    }
    case Kind::Func: {
      auto &x = to<Func>(a), &y = to<Func>(b);
      return x.func == y.func && x.name == y.name && same(x.dims, y.dims) && same(x.params, y.params) &&
             same(x.results, y.results) && x.device == y.device && x.device_index == y.device_index &&
             x.target == y.target && same(x.notes, y.notes) && equal(x.inits, y.inits) && equal(x.body, y.body) &&
             same(x.parts, y.parts);
    }
    case Kind::Target: {
      auto &x = to<Target>(a), &y = to<Target>(b);
      return x.name == y.name && same(x.notes, y.notes) && same(x.features, y.features);
    }
    case Kind::Schedule: {
      auto &x = to<Schedule>(a), &y = to<Schedule>(b);
      return x.name == y.name && x.target == y.target && same(x.notes, y.notes) && same(x.steps, y.steps);
    }
    default: return false;
  }
}

}  // namespace mlc
