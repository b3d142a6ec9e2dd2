// plan: destination passing made explicit, in one arena of the caller's.
//   y: f32[n, 8] = @k(x, @w)   ->   alloc t: f32[n, 8] = arena at 0
//                                   call @k(x, @w) -> t
// Values that are not alive together share memory; an elementwise kernel may write over an argument that dies with it
// (`attr inplace`); reshapes become aliases; kernels' own buffers become a scratch argument. Sizes may hold symbols.
#include <algorithm>
#include <memory>

#include "graph/arena.h"
#include "graph/values.h"
#include "graph/workspace.h"
#include "ir/solve.h"
#include "pass/pass.h"
#include "text/text.h"

namespace mlc {

namespace {

class Plan {
 public:
  Plan(Build &b, Module &m, Diag &diag) : b_(b), m_(m), diag_(diag), module_names_(b) { take_names(m, module_names_); }

  void run() {
    std::vector<const Item *> items = m_.items;
    for (const Item *&i : items) {
      auto *f = as<Func>(i);
      if (f && f->func == FuncKind::Graph && !planned(*f)) i = graph(*f);
      else if (f && f->func == FuncKind::Group)
        diag_.error(f->at, "group @{} is not lowered: run mlc-lower first", b_.text(f->name));
    }
    for (const Item *&i : items)
      if (auto it = kernels_.find(name_of(i)); it != kernels_.end()) i = it->second;
    items.insert(items.end(), made_.begin(), made_.end());
    m_.set(std::move(items));
  }

 private:
  struct Buffer {
    const Type *type;
    enum { Arena, Argument, Result } where;
    Sym root;             // the buffer whose memory it shares, itself at first
  };

  static bool planned(const Func &f) {
    for (const Param &p : f.params)
      if (p.mode == Mode::Scratch) return true;
    return false;
  }

  const Func *graph(const Func &f) {
    buffers_.clear(), steps_.clear(), lives_.clear(), life_of_.clear();
    Values values(m_, f);
    std::vector<const Stmt *> lines;
    flatten(f.body, lines);
    for (const Param &p : f.params)
      if (p.def.type->tensor) buffers_[p.def.name] = {p.def.type, Buffer::Argument, p.def.name};
    for (const Def &d : f.results) buffers_[d.name] = {d.type, Buffer::Result, d.name};
    names_ = std::make_unique<Fresh>(b_);
    std::unordered_set<Sym> taken;
    collect_all_names(&f, taken);
    for (Sym s : taken) names_->take(s);

    share(lines);
    for (const Stmt *s : lines)
      if (!diag_.errors()) step(*s);  // what stands behind an error may use what it would have defined
    if (diag_.errors()) return &f;
    lifetimes();
    return written(f);
  }

  void flatten(Stmts body, std::vector<const Stmt *> &out) {
    for (const Stmt *s : body) {
      if (auto *d = as<Dataflow>(s)) flatten(d->body, out);
      else out.push_back(s);
    }
  }

  Sym root(Sym s) const {
    for (;;) {
      Sym next = buffers_.at(s).root;
      if (next == s) return s;
      s = next;
    }
  }

  // Reshapes share the memory of what they reshape; where the result is one of the graph's, that memory is the result's.
  void share(const std::vector<const Stmt *> &lines) {
    for (const Stmt *s : lines) {
      auto *l = as<Let>(s);
      if (!l) continue;
      for (const Def &d : l->defs)
        if (d.type->tensor && !buffers_.count(d.name)) buffers_[d.name] = {d.type, Buffer::Arena, d.name};
      if (!is_reshape(b_, *l)) continue;
      Sym from = to<Name>(to<Call>(l->value).args[0]).name, to = l->defs[0].name;
      if (!buffers_.count(from)) continue;
      Sym r = root(from);
      if (buffers_[to].where == Buffer::Arena) buffers_[to].root = r;
      else if (buffers_[r].where == Buffer::Arena) buffers_[r].root = to;
      // else: an argument or another result; a copy (see step)
    }
  }

  struct Step {  // one line of the planned graph
    const Stmt *stmt;
    std::vector<Sym> uses, defines;
    Sym workspace;
    X workspace_bytes;
  };

  void step(const Stmt &s) {
    auto *l = as<Let>(&s);
    if (!l) {
      bool plain = s.kind == Kind::Assume || s.kind == Kind::CallStmt || s.kind == Kind::View || s.kind == Kind::Alloc;
      if (!plain) return diag_.error(s.at, "control flow in a graph cannot be planned");
      steps_.push_back({&s, {}, {}, {}, {}});
      return;
    }
    auto *c = as<Call>(l->value);
    if (is_reshape(b_, *l)) {
      Sym from = to<Name>(c->args[0]).name, to = l->defs[0].name;
      if (root(from) != root(to)) copy(*l, from, to);
      return;
    }
    const Func *k = c && c->global ? m_.func(c->callee) : nullptr;
    if (!k) {
      diag_.error(s.at, "`{}` is not a call of a kernel: run mlc-lower first", print(b_, l->value));
      return;
    }
    for (const Def &d : l->defs)
      if (!d.type->tensor) return diag_.error(s.at, "the size `{}` is known only when running; it cannot be planned", b_.text(d.name));
    Step st;
    st.stmt = &s;
    for (const Expr *a : c->args)
      if (auto *n = as<Name>(a); n && buffers_.count(n->name)) st.uses.push_back(n->name);
    for (const Def &d : l->defs) st.defines.push_back(d.name);
    if (const Func *w = workspace(*k)) {
      st.workspace = names_->make(std::string(b_.text(k->name)) + ".ws");
      st.workspace_bytes = workspace_bytes(*w, *c);
    }
    steps_.push_back(st);
  }

  // The kernel with a workspace, made once; null if it needs none.
  const Func *workspace(const Func &k) {
    if (k.func != FuncKind::Kernel) return nullptr;
    auto [it, fresh] = kernels_.try_emplace(k.name, nullptr);
    if (fresh) {
      const Func *w = with_workspace(b_, k);
      it->second = w ? w : &k;
    }
    return it->second->params.size() > k.params.size() ? it->second : nullptr;
  }

  X workspace_bytes(const Func &k, const Call &c) {
    Func plain = k;  // without the workspace, which is no argument yet
    plain.params = k.params.first(k.params.size() - 1);
    Substitution dims = dims_of_call(plain, c.args);
    const Type *ws = k.params.back().def.type;
    return X(b_, substitute(b_, ws->dims[0], dims));
  }

  // The callee's dimensions and index parameters in the caller's terms.
  Substitution dims_of_call(const Func &k, Exprs args) {
    std::vector<Argument> found;
    for (const Expr *a : args) {
      const Type *t = b_.scalar(DType::Index);
      if (auto *n = as<Name>(a); n && buffers_.count(n->name)) t = buffers_.at(n->name).type;
      if (auto *g = as<Global>(a))
        if (auto *c = m_.constant(g->name)) t = c->type;
      found.push_back({t, t->tensor ? nullptr : a, {}});
    }
    Solution s = solve_dims(b_, k, found);
    if (!s) diag_.error(k.at, "the dimensions of @{} do not follow from its arguments", b_.text(k.name));
    return s.names;
  }

  // y: T = Reshape(x, ..) where both have memory of their own: a kernel that copies.
  void copy(const Let &l, Sym from, Sym to) {
    const Type *t = buffers_.at(from).type;
    const OpInfo *op = find_op("Identity");
    OpUse use(b_, *op, {t}, b_.list({b_.name(from)}), {}, &m_);
    use.results = {to};
    OpKernel k = op_kernel(use, {t}, module_names_.make("copy"), l.from);
    made_.push_back(k.kernel);
    Sym dest = to;
    if (buffers_.at(to).type != t) {  // the result under the shape of what is copied
      dest = names_->make(std::string(b_.text(to)) + ".flat");
      buffers_[dest] = {t, Buffer::Arena, to};
    }
    std::vector<const Expr *> args;
    for (Sym s : k.indices) args.push_back(b_.name(s));
    args.push_back(b_.name(from));
    Let call = l;
    call.defs = b_.one(Def{dest, l.at, t});
    call.value = b_.call(k.kernel->name, b_.list(args), l.at, true);
    call.attrs = {};
    steps_.push_back({b_.make(call), {from}, {dest}, {}, {}});
  }

  void lifetimes() {
    auto life = [&](Sym r) -> Life & {
      auto [it, fresh] = life_of_.try_emplace(r, lives_.size());
      if (fresh) lives_.push_back({bytes_of(b_, buffers_.at(r).type), SIZE_MAX, 0});
      return lives_[it->second];
    };
    std::unordered_map<Sym, size_t> last_use;
    for (size_t i = 0; i < steps_.size(); i++)
      for (Sym s : steps_[i].uses) last_use[root(s)] = i;
    for (size_t i = 0; i < steps_.size(); i++) reuse(i, last_use);
    for (size_t i = 0; i < steps_.size(); i++) {
      auto touch = [&](Sym s) {
        if (buffers_.at(root(s)).where != Buffer::Arena) return;
        Life &l = life(root(s));
        l.first = std::min(l.first, i), l.last = std::max(l.last, i);
      };
      for (Sym s : steps_[i].uses) touch(s);
      for (Sym s : steps_[i].defines) touch(s);
      if (steps_[i].workspace) {
        life_of_[steps_[i].workspace] = lives_.size();
        lives_.push_back({steps_[i].workspace_bytes, i, i});
      }
    }
  }

  // The result of step i takes the place of an argument that nobody reads afterwards.
  void reuse(size_t i, std::unordered_map<Sym, size_t> &last_use) {
    Step &st = steps_[i];
    auto *l = as<Let>(st.stmt);
    if (!l || st.defines.size() != 1) return;
    auto &c = to<Call>(l->value);
    const Func *k = kernel_now(c.callee);
    if (!k || k->func != FuncKind::Kernel) return;
    Sym y = st.defines[0];
    if (buffers_.at(y).where != Buffer::Arena || root(y) != y) return;
    for (size_t a = 0; a < c.args.size(); a++) {
      auto *n = as<Name>(c.args[a]);
      if (!n || !buffers_.count(n->name)) continue;
      Sym r = root(n->name);
      auto same_memory = [&](Sym s) { return root(s) == r; };
      if (buffers_.at(r).where != Buffer::Arena || last_use.at(r) != i ||
          std::count_if(st.uses.begin(), st.uses.end(), same_memory) != 1)
        continue;
      if (info(buffers_.at(y).type->elem).bits != info(buffers_.at(n->name).type->elem).bits) continue;
      if (!equal(buffers_.at(y).type->dims, buffers_.at(n->name).type->dims) || !can_be_in_place(*k, a)) continue;
      buffers_[y].root = r;
      if (last_use.count(y)) last_use[r] = last_use[y];
      // The pair may overlap in this call; another call of the kernel may still give it two buffers.
      bool said = std::any_of(k->notes.attrs.begin(), k->notes.attrs.end(), [&](const Attr &x) { return b_.text(x.key) == "inplace"; });
      if (!said) kernels_[k->name] = with_inplace(b_, *k, a);
      diag_.remark("{} takes the place of {}", b_.text(y), b_.text(n->name));
      return;
    }
  }

  const Func *kernel_now(Sym name) {
    auto it = kernels_.find(name);
    if (it != kernels_.end()) return it->second;
    return m_.func(name);
  }

  const Func *written(const Func &f) {
    Placement p = place(b_, lives_);
    Sym arena = names_->make("arena");
    std::vector<const Stmt *> body;
    std::unordered_set<Sym> placed;
    // A buffer of the arena at its offset; aliases refer to the buffer whose memory they share.
    std::function<void(Sym)> alloc = [&](Sym s) {
      const Buffer &buffer = buffers_.at(s);
      bool own = root(s) == s;
      if ((own && buffer.where != Buffer::Arena) || !placed.insert(s).second) return;
      Alloc a{{}, {s, kNowhere, buffer.type}, arena, nullptr};
      a.at = kNowhere;
      if (own) {
        a.offset = p.offsets[life_of_.at(s)].e;
      } else {
        alloc(root(s));
        a.base = root(s), a.offset = b_.integer(0);
      }
      body.push_back(b_.make(a));
    };
    for (const Step &st : steps_) {
      auto *l = as<Let>(st.stmt);
      if (!l) {
        body.push_back(st.stmt);
        continue;
      }
      for (Sym s : st.uses) alloc(s);
      for (Sym s : st.defines) alloc(s);
      auto &c = to<Call>(l->value);
      std::vector<const Expr *> args(c.args.begin(), c.args.end()), dests;
      if (st.workspace) {
        const Type *t = kernel_now(c.callee)->params.back().def.type;
        const Type *sized = b_.with_dims(t, b_.list({st.workspace_bytes.e}));
        Alloc a{{}, {st.workspace, kNowhere, sized}, arena, p.offsets[life_of_.at(st.workspace)].e};
        body.push_back(b_.make(a));
        args.push_back(b_.name(st.workspace));
      }
      for (Sym s : st.defines) dests.push_back(b_.name(s));
      CallStmt call{{}, b_.call(c.callee, b_.list(args), l->value->at, true), b_.list(dests), l->attrs, l->from};
      call.at = l->at, call.comment = l->comment;
      body.push_back(b_.make(call));
    }
    diag_.remark("@{}: arena {} bytes, lower bound {} bytes", b_.text(f.name), print(b_, p.total.e), print(b_, p.lower_bound.e));
    Func g = f;
    std::vector<Attr> attrs(f.notes.attrs.begin(), f.notes.attrs.end());
    attrs.push_back({b_.sym("arena_bytes"), kNowhere, p.total.e});
    g.notes.attrs = b_.list(attrs);
    std::vector<Param> params(f.params.begin(), f.params.end());
    Attr align = {b_.sym("align"), kNowhere, b_.integer(kArenaAlign)};
    const Type *type = b_.type({DType::U8, true, {}, {}, -1, b_.list({p.total.e}), b_.one(align)});
    params.push_back({Mode::Scratch, {arena, kNowhere, type}});
    g.params = b_.list(params);
    g.body = b_.list(body);
    return b_.make(g);
  }

  Build &b_;
  Module &m_;
  Diag &diag_;
  Fresh module_names_;
  std::unique_ptr<Fresh> names_;
  std::unordered_map<Sym, Buffer> buffers_;
  std::vector<Step> steps_;
  std::vector<Life> lives_;
  std::unordered_map<Sym, size_t> life_of_;
  std::unordered_map<Sym, const Func *> kernels_;
  std::vector<const Item *> made_;
};

void run(Build &b, Module &m, const Options &, Diag &diag) { Plan(b, m, diag).run(); }

}  // namespace

extern const Pass pass_plan;
const Pass pass_plan = {"plan", "Give every value of a graph its place in memory", {}, run, Stage::Groups};

}  // namespace mlc
