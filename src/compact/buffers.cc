// Each buffer goes as far inside as one turn writes what it reads, and is as large as what that turn touches.
//
//   alloc t: f32[64, 64]                             for i in 64 {
//   for i in 64 {                                      alloc t: f32[6]
//     for j in 6 { t[i, j + 2] = .. }       ->         for j in 6 { t[j] = .. }
//     for j in 6 { .. t[i, j + 2] .. }                 for j in 6 { .. t[j] .. }
//   }                                                }
//
// The scope of the memory decides where the line may stand: `shared` outside of loops bound to threads, `global` outside
// of all that are bound. Serial loops between the line and the accesses take their turns in the same memory one after
// the other; of loops whose turns run at once each has its part.
#include "arith/scope.h"
#include "compact/shape.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc {

namespace {

enum class Memory : uint8_t { Global, Shared, Thread };

class Placer {
 public:
  Placer(Build &b, const Module &m, const Func &f, Diag &diag) : b_(b), m_(m), f_(f), diag_(diag), known_(b) {
    enter(known_, f);
    each_stmt(f.body, [&](const Stmt *s) {
      if (auto *l = as<For>(s)) bound_ |= l->loop == LoopKind::Bind;
    });
  }

  Stmts list(Stmts in) {
    Out out(in.begin(), in.end());
    size_t mark = known_.mark();
    for (size_t i = 0; i < out.size();) {
      if (auto *a = as<Alloc>(out[i]); a && !a->base && done_.insert(a->def.name).second) {
        buffer(*a, out, i);
        continue;
      }
      size_t which = 0;
      const Stmt *s = out[i];
      out[i++] = with_bodies(b_, s, [&](Stmts inner) {
        size_t m = known_.mark();
        enter(known_, s, which++);
        Stmts l = list(inner);
        known_.pop(m);
        return l;
      });
      after(known_, s);
    }
    known_.pop(mark);
    return b_.list(out);
  }

 private:
  struct Step {  // into a loop or a branch, towards all uses of a buffer
    const Stmt *stmt;
    Stmts body;
    size_t which;
  };
  using Way = std::vector<Step>;

  // The `alloc` at out[at], which moves.
  void buffer(const Alloc &a, Out &out, size_t at) {
    out.erase(out.begin() + long(at));
    Stmts rest = b_.list(Out(out.begin() + long(at), out.end()));
    Way way;
    std::string why;
    size_t mark = known_.mark();
    for (Stmts here = rest;;) {
      auto step = only_user(a, here, why);
      if (!step) break;
      pass(here, *step);
      here = step->body, way.push_back(*step);
    }
    known_.pop(mark);

    // As deep as the memory allows, but where planners see it if it is large.
    size_t line = 0;
    while (line < way.size() && may_hold(*way[line].stmt, memory(a.def.type))) line++;
    Shape shape = shape_at(a, rest, way, line, why);
    auto type = [&] { return shape.type ? shape.type : a.def.type; };
    if (line && !bound_ && !fits(type())) {
      why = fmt::format("{} is too large or of no constant size", print(b_, type()));
      line = 0, shape = shape_at(a, rest, way, line, why);
    }
    Alloc moved = a;
    moved.def.type = type();
    if (!fits(type()) && !viewed(a.def.name, rest)) moved.def.type = planned(type());
    if (moved.def.type == a.def.type && why.empty() && line < way.size() && bound_)
      why = fmt::format("its memory is of all turns of {}", name(to<For>(way[line].stmt).iter.name));
    remark(a, moved.def.type, way, line, why);
    if (shape.type)
      rest = inside(rest, way, 0, scope(a, way, line), a.def.name,
                    [&](Stmts l) { return relative(b_, l, a.def.name, shape, known_); });
    rest = inside(rest, way, 0, line, a.def.name, [&](Stmts l) {
      Out placed;
      bool stands = false;
      for (const Stmt *s : l) {
        if (!stands && touches(s, a.def.name)) placed.push_back(b_.make(moved)), stands = true;
        placed.push_back(s);
      }
      return b_.list(placed);
    });
    out.resize(at);
    out.insert(out.end(), rest.begin(), rest.end());
  }

  // What is known inside the step, if `here` is known.
  void pass(Stmts here, const Step &step) {
    for (const Stmt *s : here) {
      if (s == step.stmt) break;
      after(known_, s);
    }
    enter(known_, step.stmt, step.which);
  }

  // The only statement that touches the buffer, if the buffer may go into it.
  std::optional<Step> only_user(const Alloc &a, Stmts here, std::string &why) {
    const Stmt *only = nullptr;
    for (const Stmt *s : here)
      if (touches(s, a.def.name)) {
        if (only) return std::nullopt;
        only = s;
      }
    if (!only) return std::nullopt;
    if (auto *i = as<If>(only)) {
      auto in = [&](Stmts l) { return std::any_of(l.begin(), l.end(), [&](auto *s) { return touches(s, a.def.name); }); };
      bool yes = in(i->body), no = in(i->other), cond = mentions_buffer(i->cond, a.def.name);
      if (cond || (yes && no)) return std::nullopt;
      return Step{only, yes ? i->body : i->other, yes ? 0u : 1u};
    }
    auto *f = as<For>(only);
    if (!f || f->loop == LoopKind::Vectorize) return std::nullopt;
    size_t mark = known_.mark();
    Step step{only, f->body, 0};
    pass(here, step);
    Trace uses(b_, m_, known_, a.def.name, a.def.type);
    uses.judges = true;
    uses.piece(f->body);
    known_.pop(mark);
    // No turn of a parallel loop reads what another one wrote, so it wrote that itself.
    bool own = !uses.stale || (concurrent(*f) && !uses.atomic);
    if (uses.aliased) why = "its memory has another name";
    else if (!own) why = fmt::format("{} may come from another turn of {}", print(b_, uses.stale), name(f->iter.name));
    if (uses.aliased || !own) return std::nullopt;
    return step;
  }

  // ---- where the line may stand

  static bool concurrent(const For &f) { return f.loop == LoopKind::Parallel || f.loop == LoopKind::Bind; }
  Memory memory(const Type *t) const {
    std::string_view s = t->scope ? b_.text(t->scope) : "global";
    return s == "global" ? Memory::Global : s == "shared" ? Memory::Shared : Memory::Thread;
  }
  bool may_hold(const Stmt &s, Memory memory) const {
    auto *f = as<For>(&s);
    if (!f || f->loop != LoopKind::Bind || memory == Memory::Thread) return true;
    std::string_view tag = b_.text(f->tag);
    return memory == Memory::Shared && (tag.starts_with("block") || tag.starts_with("cluster"));
  }
  bool fits(const Type *t) const {
    std::vector<int64_t> dims;
    int64_t n = 1;
    if (!all_static(t, &dims)) return false;
    for (int64_t d : dims)
      if (__builtin_mul_overflow(n, d, &n)) return false;
    if (t->scope && memory(t) == Memory::Thread && b_.text(t->scope) != "local") return true;  // its target says how much
    int64_t bytes = storage_bytes(t->elem, n);
    return bytes >= 0 && bytes <= (memory(t) == Memory::Thread ? kLocalBuffer : kSmallBuffer);
  }

  // Without threads `local` is only a wish, for what is small.
  const Type *planned(const Type *t) const {
    if (bound_ || f_.device || !t->scope || b_.text(t->scope) != "local") return t;
    Type n = *t;
    n.scope = {};
    return b_.type(n);
  }
  static bool viewed(Sym buffer, Stmts l) {
    bool found = false;
    each_stmt(l, [&](const Stmt *s) {
      auto *v = as<View>(s);
      found |= v && !v->source->global && v->source->buffer == buffer;
    });
    return found;
  }

  // ---- what it holds at once

  // How far along the way a turn's part is what the buffer holds. Threads of a block go through serial loops together,
  // other turns that run at once do not.
  size_t scope(const Alloc &a, const Way &way, size_t line) const {
    for (size_t i = line; i < way.size() && memory(a.def.type) != Memory::Shared; i++)
      if (auto *f = as<For>(way[i].stmt); f && concurrent(*f)) return i;
    return way.size();
  }

  Shape shape_at(const Alloc &a, Stmts rest, const Way &way, size_t line, std::string &why) {
    size_t mark = known_.mark(), depth = scope(a, way, line);
    std::vector<Iter> below;
    std::vector<const For *> at_once;
    for (size_t i = 0; i < depth; i++) {
      pass(i ? way[i - 1].body : rest, way[i]);
      auto *f = as<For>(way[i].stmt);
      if (!f || i < line) continue;
      below.push_back(f->iter);
      if (concurrent(*f)) at_once.push_back(f);
    }
    Trace uses(b_, m_, known_, a.def.name, a.def.type);
    for (const For *f : at_once) uses.around(*f);
    Stmts piece = depth ? way[depth - 1].body : rest;
    uses.piece(piece);
    Shape shape{nullptr, {}, {}, {}};
    if (uses.aliased) why = "its memory has another name";
    else
      shape = shrunk(b_, a.def.type, uses, below, rings(b_, m_, a.def.name, a.def.type, piece, at_once, known_), known_);
    known_.pop(mark);
    return shape;
  }

  // The statements with the list that lies depth - at steps inside replaced, where `known_` holds what is known there.
  template <class F> Stmts inside(Stmts l, const Way &way, size_t at, size_t depth, Sym buffer, const F &f) {
    if (at == depth) return f(l);
    Out out;
    size_t mark = known_.mark();
    for (const Stmt *s : l) {
      size_t which = 0;
      out.push_back(!touches(s, buffer) ? s : with_bodies(b_, s, [&](Stmts body) {
        if (which++ != way[at].which) return body;
        size_t m = known_.mark();
        enter(known_, s, way[at].which);
        Stmts in = inside(body, way, at + 1, depth, buffer, f);
        known_.pop(m);
        return in;
      }));
      after(known_, s);
    }
    known_.pop(mark);
    return b_.list(out);
  }

  void remark(const Alloc &a, const Type *type, const Way &way, size_t line, std::string why) {
    if (!diag_.verbose || a.def.type->rank() == 0) return;
    std::string place, text = fmt::format("@{}: {}", b_.text(f_.name), name(a.def.name));
    for (size_t i = 0; i < line; i++)
      if (auto *f = as<For>(way[i].stmt)) place = ", in " + name(f->iter.name);
    if (type == a.def.type) text += fmt::format(" stays {}", print(b_, type));
    else text += fmt::format(": {} -> {}", print(b_, a.def.type), print(b_, type));
    if (why.empty() && way.empty() && type == a.def.type) why = "its uses share no loop";
    diag_.remark("{}{}{}{}", text, place, why.empty() ? "" : "; ", why);
  }

  static bool mentions_buffer(const Expr *e, Sym buffer) {
    bool found = false;
    each_expr(e, [&](const Expr *x) {
      auto *l = as<Load>(x);
      found |= l && !l->global && l->buffer == buffer;
      return !found;
    });
    return found;
  }
  std::string name(Sym s) const { return print_name(b_, s); }

  Build &b_;
  const Module &m_;
  const Func &f_;
  Diag &diag_;
  Bounds known_;
  std::unordered_set<Sym> done_;
  bool bound_ = false;
};

}  // namespace

const Func *with_small_buffers(Build &b, const Module &m, const Func *f, Diag &diag) {
  return edited(b, *f, [&](Func &n) { n.body = Placer(b, m, *f, diag).list(f->body); });
}

const Func *compacted(Build &b, const Module &m, const Func *f, Diag &diag) {
  const Func *flat = dissolved(b, f);
  return flat == f ? f : with_small_buffers(b, m, flat, diag);
}

}  // namespace mlc
