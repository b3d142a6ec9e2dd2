// fuse: operators that can share one kernel become a group, a graph that one can read.
//   t: T = Gemm(x, @w, @b)          y: T = @gemm_relu(x, @w, @b)
//   y: T = Relu(t)            ->    group @gemm_relu(..) { t: T = Gemm(..); y: T = Relu(t) }
//
// Pattern kinds and post-dominators, after TVM (Chen et al., OSDI 2018; the rules are listed in mlc-fuse(1)): a line joins
// the group of its post-dominator if every line on every path between them allows it. Works on each dataflow region
// and each body of a branch or loop; results of the region, what a body yields, are barriers, since they must exist.
#include <algorithm>
#include <map>

#include "graph/values.h"
#include "graph/wide.h"
#include "ir/edit.h"
#include "pass/pass.h"

namespace mlc {

namespace {

constexpr size_t kMostLines = 64;   // of a group: no group can blow up
constexpr size_t kMostInputs = 24;

struct Line {
  const Let *let;
  const OpInfo *op;            // null: a call, a branch ...: opaque
  Pattern pattern;
  std::vector<size_t> users;   // lines of the region that read it, in order
  bool escapes;                // an output of the region, or used where no line reads it (dimensions, assumptions)
  size_t dominator;            // its immediate post-dominator; kNone if it has none
  Pattern edge;                // the worst pattern of the edges on the way there
  size_t depth;
};
constexpr size_t kNone = SIZE_MAX;

// The statement with what its bodies hold fused: a branch or loop that has values.
const Stmt *fuse_bodies(Build &b, const Module &m, Fresh &names, const std::unordered_set<Sym> &taken, Diag &diag,
                        std::vector<const Item *> &groups, bool strict, const Stmt *s, Values &values);

class Region {
 public:
  // names: of the module's items; taken: all names in the graph.
  Region(Build &b, const Module &m, Fresh &names, const std::unordered_set<Sym> &taken, Diag &diag,
         std::vector<const Item *> &groups, bool strict)
      : b_(b), m_(m), names_(names), taken_(taken), diag_(diag), groups_(groups), strict_(strict) {}

  Stmts fuse(const Dataflow &d, Values &values) {
    values.define(&d);
    find_lines(d, values);
    dominators();
    parent_.resize(lines_.size());
    size_.assign(lines_.size(), 1);
    for (size_t i = 0; i < lines_.size(); i++) parent_[i] = i, pattern_.push_back(lines_[i].pattern);
    for (size_t i = 0; i < lines_.size() && !strict_; i++) try_widen(i);
    for (int phase = 0; phase < 2; phase++)
      for (size_t i = 0; i < lines_.size(); i++) try_fuse(i, phase);
    return written(d, values);
  }

 private:
  void find_lines(const Dataflow &d, const Values &values) {
    std::unordered_set<Sym> escaping(d.outputs.begin(), d.outputs.end());
    for (const Stmt *s : d.body) {
      auto *l = as<Let>(s);
      if (!l) {
        // What stands outside the lines (assume, branches, loops) reads values by name.
        each_stmt(s, [&](const Stmt *t) {
          each_expr_of(t, [&](const Expr *e) { collect_names(e, escaping); });
        });
        continue;
      }
      const OpInfo *op = operator_of(b_, *l);
      for (const Def &def : l->defs) {
        defined_[def.name] = lines_.size();
        collect_names(def.type, escaping);  // a size that a type mentions is a use
      }
      bool alone = !op || l->defs.size() != 1 || is_hosted(b_, *l, values);
      Pattern p = alone ? Pattern::Opaque : op->pattern;
      lines_.push_back({l, op, p, {}, false, kNone, Pattern::Elementwise, 0});
    }
    for (size_t i = 0; i < lines_.size(); i++) {
      std::unordered_set<Sym> read;
      collect_names(lines_[i].let->value, read);
      std::vector<size_t> from;
      for (Sym s : read)
        if (auto it = defined_.find(s); it != defined_.end()) from.push_back(it->second);
      std::sort(from.begin(), from.end());
      from.erase(std::unique(from.begin(), from.end()), from.end());
      for (size_t j : from)
        if (j != i) lines_[j].users.push_back(i);
      for (const Def &def : lines_[i].let->defs) lines_[i].escapes |= escaping.count(def.name) > 0;
    }
  }

  // How a line reads another: elementwise if all its tensor inputs have its shape, else as its own pattern says.
  Pattern edge(size_t from, size_t to) const {
    const Line &user = lines_[to];
    Pattern p = user.pattern;
    if (p <= Pattern::Broadcast) {
      bool same = equal(lines_[from].let->defs[0].type->dims, user.let->defs[0].type->dims);
      return same ? Pattern::Elementwise : Pattern::Broadcast;
    }
    return p;
  }

  // Post-dominators by lowest common ancestors, from the last line to the first.
  void dominators() {
    for (size_t i = lines_.size(); i-- > 0;) {
      Line &l = lines_[i];
      if (l.escapes || l.users.empty()) continue;
      size_t d = l.users[0];
      Pattern worst = edge(i, d);
      for (size_t k = 1; k < l.users.size() && d != kNone; k++) {
        worst = std::max(worst, edge(i, l.users[k]));
        d = common(d, l.users[k], worst);
      }
      if (d == kNone) continue;
      l.dominator = d, l.edge = worst, l.depth = lines_[d].depth + 1;
    }
  }
  size_t common(size_t a, size_t c, Pattern &worst) const {
    while (a != c) {
      if (a == kNone || c == kNone) return kNone;
      size_t &deeper = lines_[a].depth >= lines_[c].depth && (lines_[a].depth > lines_[c].depth || a < c) ? a : c;
      worst = std::max(worst, lines_[deeper].edge);
      deeper = lines_[deeper].dominator;
    }
    return a;
  }

  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  // All lines on the paths from `from` to `sink` (without them) satisfy f.
  template <class F> bool paths(size_t from, size_t sink, const F &f) {
    std::vector<size_t> todo(lines_[from].users.begin(), lines_[from].users.end());
    std::unordered_set<size_t> seen;
    while (!todo.empty()) {
      size_t i = todo.back();
      todo.pop_back();
      if (i == sink || !seen.insert(i).second) continue;
      if (!f(pattern_[find(i)])) return false;
      if (seen.size() > kMostLines) return false;
      todo.insert(todo.end(), lines_[i].users.begin(), lines_[i].users.end());
    }
    between_.assign(seen.begin(), seen.end());
    std::sort(between_.begin(), between_.end());
    return true;
  }

  void remark(size_t i, const char *why) {
    diag_.remark("not fused: {} ({}): {}", b_.text(lines_[i].let->defs[0].name), lines_[i].op ? lines_[i].op->name : "call", why);
  }

  void try_fuse(size_t i, int phase) {
    const Line &l = lines_[i];
    if (l.pattern == Pattern::Opaque || l.pattern == Pattern::Reduction) {
      if (phase == 1 && l.op && !l.users.empty())
        remark(i, l.pattern == Pattern::Opaque ? "an opaque operator stands alone" : "a reduction begins no group");
      if (l.pattern == Pattern::Opaque) return;
    }
    if (l.dominator == kNone) {
      if (phase == 1 && l.pattern != Pattern::Reduction && !l.users.empty())
        remark(i, l.escapes ? "its value is an output of the region" : "its users do not meet again");
      return;
    }
    size_t sink = l.dominator;
    if (find(i) == find(sink)) return;
    Pattern group = pattern_[find(i)], to = pattern_[find(sink)];
    bool ok = false;
    switch (group) {
      case Pattern::OutFusable:
        ok = phase == 0 && l.edge == Pattern::Elementwise && to <= Pattern::Broadcast && to != Pattern::Opaque &&
             paths(i, sink, [](Pattern p) { return p <= Pattern::Broadcast; });
        if (!ok && phase == 0) remark(i, "what follows is not elementwise");
        break;
      case Pattern::Elementwise: case Pattern::Broadcast:
        ok = (l.edge <= Pattern::Injective || l.edge == Pattern::Reduction) && to != Pattern::Opaque && to != Pattern::OutFusable &&
             paths(i, sink, [](Pattern p) { return p <= Pattern::Injective; });
        break;
      case Pattern::Injective:
        ok = phase == 1 && to <= Pattern::Injective && paths(i, sink, [](Pattern p) { return p <= Pattern::Injective; });
        break;
      default: break;  // a reduction begins no group, an opaque line joins none
    }
    if (!ok) return;
    // Two of the complex kinds never meet: that group could not be scheduled as one nest.
    size_t total = size_[find(sink)];
    std::unordered_set<size_t> roots = {find(sink)};
    int complex = pattern_[find(sink)] > Pattern::Injective;
    std::vector<size_t> all = between_;
    all.push_back(i);
    for (size_t k : all)
      if (roots.insert(find(k)).second) total += size_[find(k)], complex += pattern_[find(k)] > Pattern::Injective;
    if (complex > 1 || total > kMostLines) return remark(i, complex > 1 ? "two reductions would meet" : "the group is full");
    for (size_t k : all) join(k, sink);
  }

  // The probabilities of attention, Softmax and what is done to each before the product with the values, are worth more
  // digits than f16 and bf16 have; in a group of their own they keep those of f32 (the licence `wide`).
  //   p: f16[n, s] = Softmax(x)
  //   q: f16[n, s] = Where(dead, 0.0, p)   ->   y: f16[n, d] = @softmax_where_matmul(x, dead, v)
  //   y: f16[n, d] = MatMul(q, v)
  void try_widen(size_t i) {
    auto named = [&](size_t k, const char *name) { return lines_[k].op && lines_[k].op->name == name; };
    DType t = lines_[i].let->defs[0].type->elem;
    if (!named(i, "Softmax") || (t != DType::F16 && t != DType::BF16)) return;
    std::vector<size_t> chain{i};
    while (!named(chain.back(), "MatMul")) {
      const Line &l = lines_[chain.back()];
      if (l.escapes || l.users.size() != 1) return;
      size_t next = l.users[0];
      const Line &user = lines_[next];
      bool each = user.pattern <= Pattern::Broadcast && edge(chain.back(), next) == Pattern::Elementwise && chain.size() < kMostLines;
      auto *left = as<Name>(to<Call>(user.let->value).args[0]);
      bool product = named(next, "MatMul") && left && left->name == l.let->defs[0].name;
      if ((!each && !product) || user.let->defs[0].type->elem != t) return;
      chain.push_back(next);
    }
    for (size_t k : chain) join(k, i);
    wide_.insert(i);
  }

  void join(size_t a, size_t c) {
    a = find(a), c = find(c);
    if (a == c) return;
    if (a < c) std::swap(a, c);  // the first line stands for the group
    parent_[a] = c;
    size_[c] += size_[a];
    pattern_[c] = std::max(pattern_[a], pattern_[c]);
  }

  // The region with each group's lines replaced by one call, at the place of its last line.
  Stmts written(const Dataflow &d, Values &values) {
    std::map<size_t, std::vector<size_t>> members;
    for (size_t i = 0; i < lines_.size(); i++) members[find(i)].push_back(i);
    std::unordered_map<const Stmt *, size_t> index;
    for (size_t i = 0; i < lines_.size(); i++) index[lines_[i].let] = i;
    std::vector<const Stmt *> body;
    for (const Stmt *s : d.body) {
      auto it = index.find(s);
      if (it == index.end()) {
        body.push_back(inside(s, values));
        continue;
      }
      auto &group = members[find(it->second)];
      if (group.size() == 1) body.push_back(s);
      else if (group.back() == it->second) body.push_back(call(group, values));
    }
    return b_.list(body);
  }

  const Stmt *inside(const Stmt *s, Values &values) {
    return fuse_bodies(b_, m_, names_, taken_, diag_, groups_, strict_, s, values);
  }

  const Stmt *call(const std::vector<size_t> &group, const Values &values) {
    std::unordered_set<Sym> inside;
    for (size_t i : group)
      for (const Def &d : lines_[i].let->defs) inside.insert(d.name);
    std::unordered_set<Sym> own;  // names that the group adds: those of the graph keep their meaning
    auto fresh = [&](std::string_view base) {
      Sym s = b_.sym(base);
      for (int k = 1; taken_.count(s) || !own.insert(s).second; k++) s = b_.sym(fmt::format("{}_{}", base, k));
      return s;
    };

    // Inputs in the order of their first use; constants become parameters.
    std::vector<Param> params;
    std::vector<const Expr *> args;
    std::unordered_map<Sym, Sym> constants;
    std::unordered_set<Sym> seen, mentioned;
    std::vector<const Stmt *> body;
    Syms from;
    std::string name;
    for (size_t i : group) {
      const Let &l = *lines_[i].let;
      const Call &c = to<Call>(l.value);
      std::vector<const Expr *> inner;
      for (const Expr *a : c.args) {
        inner.push_back(a);
        if (auto *g = as<Global>(a)) {
          Sym &p = constants[g->name];
          if (!p) {
            p = fresh(b_.text(g->name));
            params.push_back({Mode::In, {p, a->at, values.of(a)}}), args.push_back(a);
          }
          inner.back() = b_.name(p, a->at);
        } else if (auto *n = as<Name>(a); n && values.of(a) && !inside.count(n->name)) {
          if (seen.insert(n->name).second) params.push_back({Mode::In, {n->name, a->at, values.of(a)}}), args.push_back(a);
        } else {
          collect_names(a, mentioned);
        }
      }
      for (const Attr &a : l.attrs) collect_names(a.value, mentioned);
      Let line = l;
      line.value = b_.call(c.callee, b_.list(inner), c.at);
      body.push_back(b_.make(line));
      for (const Def &d : l.defs) collect_names(d.type, mentioned);
      from = merge(b_, from, l.from);
      if (std::string op = lower_case(lines_[i].op->name); name.size() + op.size() < 60) name += (name.empty() ? "" : "_") + op;
    }
    const Let &last = *lines_[group.back()].let;
    for (const Param &p : params) collect_names(p.def.type, mentioned);
    dimensions(mentioned, inside, values, params, args);

    // What is left follows from the parameters, be it a dimension of the graph or a size that a line before gives.
    std::vector<Sym> dims;
    std::unordered_set<Sym> scalars;
    for (const Param &p : params)
      if (!p.def.type->tensor) scalars.insert(p.def.name);
    for (Sym s : mentioned) {
      const Type *t = values.of(s);
      if (!inside.count(s) && !(t && t->tensor) && !scalars.count(s)) dims.push_back(s);
    }
    std::sort(dims.begin(), dims.end(), [&](Sym a, Sym c) { return b_.text(a) < b_.text(c); });
    Func g{{}, FuncKind::Group, names_.make(name), b_.list(dims), b_.list(params), last.defs, {}, -1, {}, {}, {}, b_.list(body), {}};
    g.at = last.at;
    Attr kind = {b_.sym("kind"), kNowhere, b_.string(pattern_name(pattern_[find(group[0])]))};
    g.notes = {b_.one(kind), from};
    if (wide_.count(find(group[0]))) {
      Fresh all(b_);
      for (Sym s : taken_) all.take(s);
      for (Sym s : own) all.take(s);
      groups_.push_back(widened(b_, g, last.defs[0].type->elem, all));
    } else {
      groups_.push_back(b_.make(g));
    }
    Let out = last;
    out.value = b_.call(g.name, b_.list(args), last.at, true);
    out.attrs = {}, out.from = from;
    return b_.make(out);
  }

  // Symbols that no parameter's type gives by itself become index parameters.
  void dimensions(const std::unordered_set<Sym> &mentioned, const std::unordered_set<Sym> &inside, const Values &values,
                  std::vector<Param> &params, std::vector<const Expr *> &args) {
    std::unordered_set<Sym> given;
    for (const Param &p : params)
      for (const Expr *d : p.def.type->dims)
        if (auto *n = as<Name>(d)) given.insert(n->name);
    std::vector<Sym> open;
    for (Sym s : mentioned) {
      const Type *t = values.of(s);
      if (!given.count(s) && !inside.count(s) && !(t && t->tensor)) open.push_back(s);
    }
    std::sort(open.begin(), open.end(), [&](Sym a, Sym c) { return b_.text(a) < b_.text(c); });
    for (size_t i = open.size(); i-- > 0;) {
      params.insert(params.begin(), {Mode::In, {open[i], kNowhere, b_.scalar(DType::Index)}});
      args.insert(args.begin(), b_.name(open[i]));
    }
  }

  static std::string lower_case(std::string s) {
    for (char &c : s) c = c >= 'A' && c <= 'Z' ? char(c | 32) : c;
    return s;
  }

  Build &b_;
  const Module &m_;
  Fresh &names_;
  const std::unordered_set<Sym> &taken_;
  Diag &diag_;
  std::vector<const Item *> &groups_;
  std::vector<Line> lines_;
  std::unordered_map<Sym, size_t> defined_;
  std::vector<size_t> parent_, size_, between_;
  std::vector<Pattern> pattern_;
  std::unordered_set<size_t> wide_;  // groups whose values stay f32
  bool strict_;
};

const Stmt *fuse_bodies(Build &b, const Module &m, Fresh &names, const std::unordered_set<Sym> &taken, Diag &diag,
                        std::vector<const Item *> &groups, bool strict, const Stmt *s, Values &values) {
  auto body = [&](const Yield &y, std::span<const Carry> carry) {
    std::vector<Def> outside;  // a name of the body may come again behind it
    auto keep = [&](const Def &d) {
      if (const Type *t = values.of(d.name)) outside.push_back({d.name, d.at, t});
    };
    for (const Carry &c : carry) keep(c.def), values.define(c.def);
    for (const Stmt *t : y.body)
      if (auto *l = as<Let>(t)) std::for_each(l->defs.begin(), l->defs.end(), keep);
    std::unordered_set<Sym> read;
    for (Exprs list : {y.yields, y.stacks})
      for (const Expr *e : list) collect_names(e, read);
    std::vector<Sym> outputs(read.begin(), read.end());
    std::sort(outputs.begin(), outputs.end());
    Yield n = y;
    n.body = Region(b, m, names, taken, diag, groups, strict).fuse(*b.make(Dataflow{{}, b.list(outputs), y.body}), values);
    values.define(b.list(outside));
    return n;
  };
  if (auto *i = as<IfValue>(s))
    return edited(b, *i, [&](IfValue &n) { n.then = body(i->then, {}), n.other = body(i->other, {}); });
  if (auto *l = as<Loop>(s)) return edited(b, *l, [&](Loop &n) { n.body = body(l->body, l->carry); });
  return s;
}

constexpr OptionSpec kOptions[] = {
    {"strict", nullptr, "grant no licence that changes a result"},
};

void run(Build &b, Module &m, const Options &options, Diag &diag) {
  bool strict = options.has("strict");
  Fresh names(b);
  take_names(m, names);
  std::vector<const Item *> out;
  for (const Item *i : m.items) {
    auto *f = as<Func>(i);
    if (!f || f->func != FuncKind::Graph) {
      out.push_back(i);
      continue;
    }
    Values values(m, *f);
    std::vector<const Item *> groups;
    std::unordered_set<Sym> taken;
    collect_all_names(f, taken);
    std::vector<const Stmt *> body;
    for (const Stmt *s : f->body) {
      auto *d = as<Dataflow>(s);
      if (d) {
        Dataflow n = *d;
        n.body = Region(b, m, names, taken, diag, groups, strict).fuse(*d, values);
        body.push_back(b.make(n));
      } else {
        body.push_back(fuse_bodies(b, m, names, taken, diag, groups, strict, s, values));
      }
      values.define(s);
    }
    Func g = *f;
    g.body = b.list(body);
    out.push_back(b.make(g));
    out.insert(out.end(), groups.begin(), groups.end());
  }
  m.set(std::move(out));
}

}  // namespace

extern const Pass pass_fuse;
const Pass pass_fuse = {"fuse", "Join operators that can share one kernel into groups", kOptions, run, Stage::Operators};

}  // namespace mlc
