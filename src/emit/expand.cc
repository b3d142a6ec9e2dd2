#include "emit/expand.h"

#include <cstring>

#include "compact/compact.h"
#include "emit/expander.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc {

Expander::Expander(Build &b, const Module &m, const Func *f, Diag &diag, bool rows)
    : b_(b), m_(m), f_(f), diag_(diag), env_(b, m, f), rows_(rows) {
  collect_all_names(f, taken_);
}

const Func *Expander::run() {
  Out out;
  body(f_->body, out);
  if (failed_) return nullptr;
  return edited(b_, *f_, [&](Func &f) { f.body = b_.list(out); });
}

Sym Expander::fresh(std::string_view base) {
  Sym s = b_.sym(base);
  for (int n = 1; !taken_.insert(s).second; n++) s = b_.sym(fmt::format("{}_{}", base, n));
  made_.push_back(s);
  return s;
}
void Expander::release(size_t mark) {
  for (; made_.size() > mark; made_.pop_back()) taken_.erase(made_.back());
}

// ---- statements

void Expander::body(Stmts in, Out &out) {
  size_t mark = env_.mark();
  for (const Stmt *s : in) {
    size_t first = out.size();
    stmt(s, out);
    if (!s->comment.empty() && first < out.size() && out[first]->comment.empty())
      out[first] = commented(out[first], s->comment);
  }
  env_.pop(mark);
}

Stmts Expander::body(Stmts in) {
  size_t mark = made_.size();
  Out out;
  body(in, out);
  release(mark);
  return b_.list(out);
}

void Expander::stmt(const Stmt *s, Out &out) {
  switch (s->kind) {
    case Kind::Compute: compute(to<Compute>(s), out); break;
    case Kind::For: loop(to<For>(s), out); break;
    case Kind::Let: let(to<Let>(s), out); break;
    case Kind::Store: {
      auto &st = to<Store>(s);
      DType t = elem_of(*st.target);
      const Load *target = edited(b_, *st.target, [&](Load &l) { l.index = lower_all(l.index, DType::Index, out); });
      const Expr *value = lower(st.value, t, out);
      out.push_back(edited(b_, st, [&](Store &n) { n.target = target, n.value = value; }));
      break;
    }
    case Kind::If: {
      auto &i = to<If>(s);
      const Expr *cond = lower(i.cond, DType::Bool, out);
      out.push_back(edited(b_, i, [&](If &n) { n.cond = cond, n.body = body(i.body), n.other = body(i.other); }));
      break;
    }
    case Kind::While: {
      auto &w = to<While>(s);
      if (reduces(w.cond)) fail(w.at, "a reduction in the condition of a while cannot be emitted");
      out.push_back(edited(b_, w, [&](While &n) { n.body = body(w.body); }));
      break;
    }
    case Kind::Assume: {
      auto &a = to<Assume>(s);
      const Expr *cond = lower(a.cond, DType::Bool, out);
      out.push_back(edited(b_, a, [&](Assume &n) { n.cond = cond; }));
      break;
    }
    case Kind::Alloc: env_.define(to<Alloc>(s).def.name, to<Alloc>(s).def.type), out.push_back(s); break;
    case Kind::View: env_.define(to<View>(s).def.name, to<View>(s).def.type), out.push_back(s); break;
    default: out.push_back(s);
  }
}

// The comment of what became of s: its own lines, then `what`.
std::string_view Expander::comment_of(const Stmt &s, const std::string &what) {
  return b_.arena.text(std::string(s.comment) + (s.comment.empty() ? "" : "\n") + "# " + what);
}

void Expander::let(const Let &l, Out &out) {
  if (auto *c = as<Call>(l.value); c && c->global && l.attrs.empty()) {
    const Func *r = m_.func(c->callee);
    if (r && r->func == FuncKind::Reducer) {
      Values results = c->iters.empty() ? combine(*r, lower_all(c->args, *r, out), out)
                                                           : fold(*r, *c, out);
      for (size_t i = 0; i < l.defs.size() && i < results.size(); i++) define(l.defs[i], results[i], l.from, out);
      return;
    }
  }
  DType want = l.defs.size() == 1 && !l.defs[0].type->tensor ? l.defs[0].type->elem : DType::Invalid;
  const Expr *value = want == DType::Invalid ? l.value : lower(l.value, want, out);
  for (const Def &d : l.defs) env_.define(d.name, d.type);
  out.push_back(edited(b_, l, [&](Let &n) { n.value = value; }));
}

void Expander::define(const Def &d, const Expr *value, Syms from, Out &out) {
  env_.define(d.name, d.type);
  out.push_back(b_.make(Let{{}, b_.one(d), value, {}, from}));
}

const Stmt *Expander::store(const Load *target, const Expr *value, Syms from) {
  return b_.make(Store{{}, false, target, value, from});
}

void Expander::compute(const Compute &c, Out &out) {
  Iters iters = c.results[0].iters;
  auto target = [&](const Result &r) {
    std::vector<const Expr *> index;
    for (const Iter &i : iters) index.push_back(b_.name(i.name));
    return b_.load(r.name, b_.list(index), r.at);
  };
  size_t first = out.size();
  if (!rows_ || !rows(c, out)) nest(iters, c.from, out, [&](Out &in) {
    auto *call = as<Call>(c.value);
    const Func *r = call && call->global && !call->iters.empty() ? m_.func(call->callee) : nullptr;
    if (r) {
      Values values = fold(*r, *call, in);
      for (size_t i = 0; i < values.size() && i < c.results.size(); i++)
        in.push_back(store(target(c.results[i]), values[i], c.from));
    } else {
      const Load *t = target(c.results[0]);
      in.push_back(store(t, lower(c.value, elem_of(*t), in), c.from));
    }
  });
  const Compute *bare = edited(b_, c, [](Compute &n) { n.from = {}, n.comment = {}; });
  out[first] = commented(out[first], comment_of(c, print(b_, bare).substr(strlen("compute "))));
}

void Expander::guarded(const Expr *cond, Out in, Out &out) {
  if (!cond) out.insert(out.end(), in.begin(), in.end());
  else out.push_back(b_.make(If{{}, cond, b_.list(in), {}, false}));
}

void Expander::loop(const For &f, Out &out) {
  size_t mark = env_.mark();
  env_.define_index(f.iter.name);
  Stmts inner = body(f.body);
  env_.pop(mark);
  out.push_back(edited(b_, f, [&](For &n) { n.body = inner; }));
}

const Func *expand(Build &b, const Module &m, const Func *f, Diag &diag, bool rows) {
  return Expander(b, m, dissolved(b, f), diag, rows).run();
}

}  // namespace mlc
