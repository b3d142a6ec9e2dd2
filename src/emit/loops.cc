#include "emit/loops.h"

#include <algorithm>

#include "arith/scope.h"
#include "arith/simplify.h"
#include "emit/expand.h"
#include "emit/shaper.h"
#include "ir/edit.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr int64_t kMostCopies = 4096;  // statements that unrolling may make of one loop
constexpr int64_t kMostFolds = 64;     // elements of a local buffer that are folded one by one
constexpr int64_t kMostChunks = 8;     // vectors that are written one behind the other

// Statements that a body is when its loops are unrolled.
int64_t copies(Stmts body) {
  int64_t n = 0;
  for (const Stmt *s : body) {
    int64_t inner = 1, turns = 1;
    each_body(s, [&](Stmts in) { inner += copies(in); });
    auto *f = as<For>(s);
    if (f && f->loop == LoopKind::Unroll) int_value(f->iter.extent, &turns);
    turns = std::max<int64_t>(turns, 1);
    if (inner > kMostCopies / turns) return kMostCopies + 1;
    n += inner * turns;
  }
  return n;
}

// sum[] = sum[] + t[k]: a fold over a local buffer, which registers have to be named for.
bool folds(const For &f, const std::unordered_set<Sym> &locals) {
  bool over = false, leaf = f.loop == LoopKind::Serial && f.body.size() == 1 && f.body[0]->kind == Kind::Store;
  auto turns = [&](const Expr *i) { return mentions(i, f.iter.name); };
  if (leaf && std::ranges::any_of(to<Store>(f.body[0]).target->index, turns)) return false;
  if (leaf) each_expr(to<Store>(f.body[0]).value, [&](const Expr *e) {
    auto *l = as<Load>(e);
    if (l && !l->global && locals.count(l->buffer))
      over |= std::ranges::any_of(l->index, turns);
    return true;
  });
  return over;
}

bool defines(Stmts body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt *s) {
    return s->kind == Kind::Let || s->kind == Kind::Alloc || s->kind == Kind::View;
  });
}

}  // namespace

Shaper::Shaper(Build &b, const Module &m, const Func *f, int vector_bytes, const Library &library, Diag &diag)
    : b_(b), m_(m), f_(f), bytes_(vector_bytes), library_(library), diag_(diag), env_(b, m, f), known_(b), fresh_(b) {
  take_names(f, fresh_);
  enter(known_, *f);
}

const Func *Shaper::run() {
  bool any = false;
  each_stmt(f_->body, [&](const Stmt *s) {
    auto *f = as<For>(s);
    any |= f && (f->loop == LoopKind::Unroll || f->loop == LoopKind::Vectorize);
    if (is_local(s)) locals_.insert(to<Alloc>(s).def.name);
  });
  if (!any) return f_;
  Stmts shaped = registers(body(f_->body));
  return edited(b_, *f_, [&](Func &f) { f.body = shaped; });
}

bool Shaper::is_local(const Stmt *s) const {
  auto *a = as<Alloc>(s);
  return a && !a->base && a->def.type->scope && b_.text(a->def.type->scope) == "local" && a->def.type->rank();
}

Stmts Shaper::body(Stmts in) {
  Out out;
  body(in, out);
  return b_.list(out);
}

void Shaper::body(Stmts in, Out &out) {
  size_t env = env_.mark(), facts = known_.mark();
  for (size_t i = 0; i < in.size(); i++) {
    if (const Expr *value = constant_index(in[i])) {
      in = substitute(b_, in.subspan(i + 1), {{to<Let>(in[i]).defs[0].name, value}});
      i = size_t(-1);
      continue;
    }
    stmt(in[i], out);
  }
  env_.pop(env), known_.pop(facts);
}

// What an index value stands for where it is a constant or differs from lane to lane; null: it stays a value.
const Expr *Shaper::constant_index(const Stmt *s) {
  auto *l = as<Let>(s);
  if (!l || l->defs.size() != 1 || l->defs[0].type != b_.index() || reads_memory(l->value)) return nullptr;
  const Expr *value = simplify(b_, l->value, known_);
  bool lane = lane_ && mentions(value, lane_);
  return lane || value->kind == Kind::Int ? value : nullptr;
}

void Shaper::stmt(const Stmt *s, Out &out) {
  if (auto *f = as<For>(s)) return loop(*f, out);
  if (auto *i = as<If>(s)) return branch(*i, out);
  if (auto *w = as<While>(s)) {
    out.push_back(edited(b_, *w, [&](While &n) { n.body = body(w->body); }));
    return;
  }
  if (auto *l = as<Let>(s))
    for (const Def &d : l->defs) env_.define(d.name, d.type);
  if (auto *a = as<Alloc>(s)) env_.define(a->def.name, a->def.type);
  if (auto *v = as<View>(s)) env_.define(v->def.name, v->def.type);
  after(known_, s);
  out.push_back(s);
}

void Shaper::branch(const If &i, Out &out) {
  const Expr *cond = simplify(b_, i.cond, known_);
  if (auto *k = as<Bool>(cond)) return scoped(body(k->value ? i.body : i.other), out);
  Stmts sides[2];
  for (size_t k = 0; k < 2; k++) {
    size_t mark = known_.mark();
    enter(known_, &i, k);
    sides[k] = body(k ? i.other : i.body);
    known_.pop(mark);
  }
  if (sides[0].empty() && sides[1].empty()) return;
  out.push_back(edited(b_, i, [&](If &n) { n.body = sides[0], n.other = sides[1], n.has_else = !sides[1].empty(); }));
}

// A body in the place of a statement: in braces if it defines names. (A loop of one turn is printed so.)
void Shaper::scoped(Stmts body, Out &out) {
  if (defines(body)) body = b_.stmts({serial(fresh_.make("once"), b_.integer(1), body)});
  out.insert(out.end(), body.begin(), body.end());
}

const For *Shaper::serial(Sym v, const Expr *extent, Stmts body) {
  return b_.make(For{{}, LoopKind::Serial, {v, extent, kNowhere}, {}, {}, body});
}

void Shaper::remark(const For &f, const std::string &what) {
  diag_.remark("@{}: loop {} is not {}", b_.text(f_->name), b_.text(f.iter.name), what);
}

Stmts Shaper::turn(const For &f, const Expr *extent) {
  size_t env = env_.mark(), facts = known_.mark();
  env_.define_index(f.iter.name);
  known_.range(f.iter.name, extent);
  Stmts inner = body(f.body);
  env_.pop(env), known_.pop(facts);
  return inner;
}

void Shaper::loop(const For &f, Out &out) {
  const Expr *extent = simplify(b_, f.iter.extent, known_);
  int64_t n = -1;
  bool fixed = int_value(extent, &n);
  if (!bytes_ && is_lane_copy(f)) return out.push_back(edited(b_, f, [&](For &l) { l.body = turn(f, extent); }));
  if (f.loop == LoopKind::Vectorize && fixed)
    if (const For *some = first_lanes(f, n)) return loop(*some, out);
  if (f.loop == LoopKind::Vectorize && !(fixed && n <= 1)) return vectorize(f, extent, fixed ? n : -1, out);
  bool unroll = (f.loop == LoopKind::Unroll || (fixed && n == 1) || (fixed && n <= kMostFolds && folds(f, locals_))) &&
                f.loop != LoopKind::Parallel && f.loop != LoopKind::Bind;
  if (unroll && fixed && n >= 0 && copies(f.body) <= kMostCopies / std::max<int64_t>(n, 1)) {
    size_t first = out.size();
    for (int64_t i = 0; i < n; i++)
      scoped(body(substitute(b_, f.body, {{f.iter.name, b_.integer(i)}})), out);
    if (!f.comment.empty() && first < out.size() && out[first]->comment.empty())
      out[first] = commented(b_, out[first], f.comment);
    return;
  }
  if (f.loop == LoopKind::Unroll)
    remark(f, fixed ? "unrolled: it is too long" : "unrolled: its length is no constant");
  Stmts inner = turn(f, extent);
  if (f.loop == LoopKind::Serial && whole_first(f, extent, inner, out)) return;
  out.push_back(edited(b_, f, [&](For &l) {
    l.body = inner;
    if (l.loop != LoopKind::Parallel && l.loop != LoopKind::Bind) l.loop = LoopKind::Serial;
  }));
}

// for v in 16 vectorize { if 48 + v < 56 { .. } }   ->   for v in 8 vectorize { .. }; null: there is no such power of two
const For *Shaper::first_lanes(const For &f, int64_t n) {
  auto *i = f.body.size() == 1 ? as<If>(f.body[0]) : nullptr;
  if (!i || !i->other.empty()) return nullptr;
  size_t facts = known_.mark();
  known_.range(f.iter.name, f.iter.extent);
  auto *x = as<Binary>(simplify(b_, i->cond, known_));
  known_.pop(facts);
  auto *v = x && x->op == Op::Lt ? as<Name>(x->a) : nullptr;
  int64_t few;
  if (!v || v->name != f.iter.name || !int_value(x->b, &few) || few < 4 || few >= n || (few & (few - 1))) return nullptr;
  return edited(b_, f, [&](For &l) { l.iter.extent = b_.integer(few), l.body = i->body; });
}

void Shaper::vectorize(const For &f, const Expr *extent, int64_t n, Out &out) {
  Sym v = f.iter.name, outer = lane_;
  lane_ = v;
  Stmts inner = turn(f, extent);
  lane_ = outer;
  size_t mark = env_.mark();
  env_.define_index(v);
  std::string why = outer ? "it stands in another one" : refusal(inner, v);
  int bytes = std::max(widest_value(env_, inner, library_), 1);
  env_.pop(mark);
  int64_t lanes = bytes_ / bytes;
  if (why.empty() && lanes < 2) why = "a value fills a vector";
  if (!why.empty()) {
    if (!outer) remark(f, "vectorized: " + why);
    std::string comment = fmt::format("{}{}# not vectorized: {}", f.comment, f.comment.empty() ? "" : "\n", why);
    if (outer) comment = f.comment;
    std::string_view kept = b_.arena.text(comment);
    out.push_back(edited(b_, f, [&](For &l) { l.loop = LoopKind::Serial, l.body = inner, l.comment = kept; }));
    return;
  }
  std::string_view comment = f.comment;
  auto add = [&](const Stmt *s) {
    out.push_back(comment.empty() ? s : commented(b_, s, comment));
    comment = {};
  };
  // lanes of them from `base` on
  auto vector = [&](X base, int64_t lanes) -> const Stmt * {
    Stmts moved = substitute(b_, inner, {{v, (base + X(b_, b_.name(v))).e}});
    return edited(b_, f, [&](For &l) {
      l.iter.extent = b_.integer(lanes), l.body = moved, l.comment = {};
    });
  };
  auto scalar = [&](X at) {
    Stmts moved = substitute(b_, inner, {{v, at.e}});
    Out one;
    scoped(moved, one);
    for (const Stmt *s : one) add(s);
  };
  X size(b_, extent);
  X chunks = n >= 0 ? lit(b_, n / lanes) : floordiv(size, lanes);
  if (n >= 0 && n / lanes <= kMostChunks) {
    for (int64_t c = 0; c < n / lanes; c++) add(vector(lit(b_, c * lanes), lanes));
  } else {
    Sym c = fresh_.make(fmt::format("{}_0", b_.text(v)));
    add(serial(c, chunks.e, b_.stmts({vector(X(b_, b_.name(c)) * lanes, lanes)})));
  }
  if (n < 0) {
    Stmts moved = substitute(b_, inner, {{v, (chunks * lanes + X(b_, b_.name(v))).e}});
    add(serial(v, simplify(b_, (size % lanes).e, known_), moved));
    return;
  }
  int64_t at = n / lanes * lanes;
  for (int64_t part = lanes / 2; part >= 1; part /= 2) {
    if (n - at < part) continue;
    if (part == 1) scalar(lit(b_, at));
    else add(vector(lit(b_, at), part));
    at += part;
  }
}

const Func *shape_loops(Build &b, const Module &m, const Func *f, int vector_bytes, const Library &library,
                        Diag &diag) {
  return Shaper(b, m, f, vector_bytes, library, diag).run();
}

}  // namespace mlc
