// The signature, the body, and which statement may stand where.
#include "check/checker.h"
#include "text/text.h"

namespace mlc {

void FuncChecker::signature() {
  auto placed = [&](Entry *e) { e->defined = e->what != What::Result; };
  for (Sym d : f_.dims) define(What::Dim, d, b_.index(), f_.at);
  // A dimension may be an index parameter further right, so scalars come first.
  for (bool tensors : {false, true})
    for (const Param &p : f_.params) {
      if (p.def.type->tensor != tensors) continue;
      Entry *e = define(What::Param, p.def.name, p.def.type, p.def.at);
      e->writable = p.mode != Mode::In;
      e->written = p.mode != Mode::Scratch;
      placed(e);
      if (p.mode != Mode::In && !tensors)
        error(p.def.at, "parameter {} is a scalar: it is passed by value and cannot be written", text(p.def.name));
    }
  for (bool tensors : {false, true})
    for (const Def &r : f_.results) {
      if (r.type->tensor != tensors) continue;
      Entry *e = define(What::Result, r.name, r.type, r.at);
      e->writable = true;
      placed(e);
      if (!tensors && kernel_)
        error(r.at, "result {} of a kernel is a buffer, expected a tensor such as {}[]", text(r.name),
              dtype_name(r.type->elem == DType::Index ? DType::I64 : r.type->elem));
    }
  bool late = graph_;  // result types may mention index results
  graph_ = false;
  for (const Param &p : f_.params) type(p.def.type, p.def.at);
  for (const Def &r : f_.results) type(r.type, r.at);
  graph_ = late;
  // Results have no values yet: a dimension of that name would be read before it is written.
  for (Entry &e : entries_) e.read = false;
}

void FuncChecker::inplace(const Expr *pairs) {
  auto entry = [&](const Expr *e, What what) {
    auto *s = as<Str>(e);
    Entry *x = s ? find(b_.sym(s->value)) : nullptr;
    return x && x->what == what ? x : nullptr;
  };
  auto *list = as<List>(pairs);
  for (const Expr *p : list ? list->items : b_.list({pairs})) {
    auto *pair = as<List>(p);
    Entry *y = pair && pair->items.size() == 2 ? entry(pair->items[0], What::Result) : nullptr;
    Entry *x = y ? entry(pair->items[1], What::Param) : nullptr;
    if (!x) error(p->at, "inplace: expected a result and a parameter, as in [[\"y\", \"x\"]], found {}", print(b_, p));
    else same_type(p->at, fmt::format("inplace: {}", text(x->name)), y->type, x->type);
  }
}

void FuncChecker::run() {
  kernel_ = f_.func == FuncKind::Kernel;
  graph_ = f_.func == FuncKind::Graph || f_.func == FuncKind::Group;
  pure_ = f_.func == FuncKind::Group;
  if (const Expr *s = attr(b_, f_.notes.attrs, "stage")) {
    Stage ignored;
    if (auto *name = as<Str>(s); !name || !stage_named(name->value, &ignored))
      error(s->at, "no stage {}: expected operators, groups, computes, blocks, compacted or planned", print(b_, s));
  }
  notes(f_.notes);
  if (f_.func == FuncKind::Scalar || f_.func == FuncKind::Reducer) return scalar_function();
  signature();
  if (const Expr *pairs = attr(b_, f_.notes.attrs, "inplace")) inplace(pairs);
  if (f_.parts.empty()) {
    statements(f_.body);
    return finish();
  }
  // The parts of an extern or intrinsic are bodies of their own.
  size_t count[2] = {0, 0};
  for (const Part &p : f_.parts) {
    if (++count[p.desc] > 1) error(p.at, "@{} has a second {}", b_.text(f_.name), p.desc ? "desc" : "impl");
    notes(p.notes);
    for (Entry &e : entries_) e.read = false, e.defined = e.written = e.what == What::Param;
    size_t own = entries_.size();
    impl_ = !p.desc;
    blocks_.clear();
    Mark m = open();
    statements(p.body);
    if (p.desc) finish();
    close(m);
    entries_.resize(own, Entry{});
  }
}

void FuncChecker::finish() {
  for (Entry &e : entries_) {
    if (e.what == What::Result && !e.defined && !e.written) {
      bool kernel = kernel_ || stage_ == Stage::Blocks || stage_ == Stage::Computes;
      error(e.at, "result {} is never {}", text(e.name), kernel ? "written" : "defined or written");
    } else if (e.what == What::Buffer && e.read && !e.written && !e.root) {
      error(e.at, "buffer {} is read but never written", text(e.name));
    }
  }
}

void FuncChecker::body(Stmts l) {
  Mark m = open();
  statements(l);
  close(m);
}
void FuncChecker::statements(Stmts l) {
  for (const Stmt *s : l) statement(s);
}

// ---- which statement may stand where

namespace {

enum Where : uint8_t { kGraph = 1, kKernel = 2, kBoth = 3, kPure = 4 };
struct StatementRule {
  Kind kind;
  uint8_t where;
  std::string_view what;
};
constexpr StatementRule kRules[] = {
    {Kind::Let, kBoth | kPure, "a definition"},
    {Kind::IfValue, kGraph | kPure, "the value of an `if`"},
    {Kind::Loop, kGraph | kPure, "`loop`"},
    {Kind::Store, kKernel, "a store"},
    {Kind::Compute, kKernel, "`compute`"},
    {Kind::Alloc, kBoth, "`alloc`"},
    {Kind::View, kBoth, "`view`"},
    {Kind::CallStmt, kBoth, "`call`"},
    {Kind::Assume, kBoth | kPure, "`assume`"},
    {Kind::Dataflow, kGraph, "`dataflow`"},
    {Kind::For, kBoth, "`for`"},
    {Kind::If, kBoth, "`if`"},
    {Kind::While, kBoth, "`while`"},
    {Kind::Block, kKernel, "`block`"},
};

}  // namespace

bool FuncChecker::allowed(const Stmt *s) {
  if (impl_ || s->kind == Kind::Code) {
    if (impl_ && s->kind == Kind::Code) return true;
    if (impl_) return fail(s->at, "an impl holds only `code`");
    return fail(s->at, "`code` stands only in an impl");
  }
  auto *r = std::find_if(std::begin(kRules), std::end(kRules), [&](auto &x) { return x.kind == s->kind; });
  if (pure_ && !(r->where & kPure))
    return fail(s->at, "{} has an effect, it cannot stand in {}", r->what,
                f_.func == FuncKind::Group ? "a group" : "a dataflow region");
  if (graph_ && !(r->where & kGraph)) return fail(s->at, "{} stands only in kernels", r->what);
  if (kernel_ && !(r->where & kKernel)) return fail(s->at, "{} stands only in graphs", r->what);
  if (stage_ == Stage::Planned && (s->kind == Kind::Dataflow || s->kind == Kind::IfValue || s->kind == Kind::Loop))
    return fail(s->at, "a planned graph has no values, expected `call` with destinations");
  if (stage_ == Stage::Compacted && s->kind == Kind::Compute)
    return fail(s->at, "a compacted kernel has loops, found {}", r->what);
  return true;
}

void FuncChecker::statement(const Stmt *s) {
  if (!allowed(s)) return;
  switch (s->kind) {
    case Kind::Let: return let(to<Let>(s));
    case Kind::IfValue: return if_value(to<IfValue>(s));
    case Kind::Loop: return loop_value(to<Loop>(s));
    case Kind::Store: return store(to<Store>(s));
    case Kind::Compute: return compute(to<Compute>(s));
    case Kind::Alloc: return alloc(to<Alloc>(s));
    case Kind::View: return view(to<View>(s));
    case Kind::CallStmt: return call(to<CallStmt>(s));
    case Kind::Assume: return assume(to<Assume>(s));
    case Kind::Dataflow: return dataflow(to<Dataflow>(s));
    case Kind::For: return for_loop(to<For>(s));
    case Kind::If: {
      auto &i = to<If>(s);
      bool ok = condition(i.cond);
      ++maybe_;
      Mark m = open();
      if (ok) known(i.cond);
      statements(i.body);
      close(m);
      m = open();
      if (ok) known(b_.unary(Op::Not, i.cond));
      statements(i.other);
      close(m);
      --maybe_;
      return;
    }
    case Kind::While:
      condition(to<While>(s).cond);
      ++maybe_;
      body(to<While>(s).body);
      --maybe_;
      return;
    case Kind::Block: return block(to<Block>(s));
    default: return;
  }
}

}  // namespace mlc
