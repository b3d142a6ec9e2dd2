#include "tensorize/tensorize.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/regions.h"
#include "sched/script.h"
#include "tensorize/blocking.h"
#include "tensorize/match.h"

namespace mlc {

namespace {

struct Instructions {  // of a target, by what they do
  std::vector<Description> products;  // what is looked for
  std::vector<Description> copies, fills;
};

// A block that moves or clears tiles: what a call takes of each of its axes, and the loop that it stands in.
struct Mover {
  std::string block, inside;
  std::map<Sym, int64_t> tiles;  // axis -> turns
  Sym from, to;                  // scopes; Sym{}: global
  bool fills = false;
};

class Tensorizer {
 public:
  Tensorizer(Build &b, const Module &m, const TargetInfo &target, const Instructions &all, const Func *f, Diag &diag)
      : b_(b), m_(m), target_(target), all_(all), f_(f), diag_(diag), script_(b, m, f) {}

  std::vector<Step> run() {
    for (auto &[block, matches] : candidates()) {
      std::string why;
      bool done = false;
      for (const Match &m : matches) {
        // As the buffers are, else with copies in the order of the description.
        for (bool copies : {false, true}) {
          size_t mark = script_.mark();
          try {
            std::string what = tensorize(block, m, copies);
            diag_.remark("@{}: {} by @{}, {}", text(f_->name), block, text(m.desc->f->name), what);
            done = true;
            break;
          } catch (const Refused &e) {
            why = e.message;
            script_.rewind(mark);
          }
        }
        if (done) break;
      }
      if (!done) diag_.remark("@{}: {} left: {}", text(f_->name), block, why);
    }
    return script_.steps();
  }

 private:
  std::string text(Sym s) const { return std::string(b_.text(s)); }

  // Blocks with what they could be, the cheapest first. Looked for on a copy: computes that are nothing of the kind stay.
  std::vector<std::pair<std::string, std::vector<Match>>> candidates() {
    State s(b_, m_, f_);
    std::vector<Place *> computes;
    each_place(s.tree.root(), [&](Place *n) {
      if (n->stmt && n->stmt->kind == Kind::Compute) computes.push_back(n);
    });
    try {
      for (Place *c : computes) s.as_block(c);
    } catch (const Refused &e) {
      diag_.remark("@{} left: {}", text(f_->name), e.message);
      return {};
    }
    std::vector<std::pair<std::string, std::vector<Match>>> out;
    for (Place *n : leaf_blocks(s.tree.root())) {
      std::vector<Match> found;
      std::string why;
      for (const Description &d : all_.products) {
        auto m = match_block(s, n, d, why);
        if (!m) continue;
        auto at = std::upper_bound(found.begin(), found.end(), *m,
                                   [&](const Match &x, const Match &y) { return cost(x) < cost(y); });
        found.insert(at, *m);
      }
      std::string block = text(n->block()->name);
      if (!found.empty()) out.push_back({block, found});
      else if (has_reduce(*n->block())) diag_.remark("@{}: {} left: {}", text(f_->name), block, why);
    }
    return out;
  }
  // Calls, weighed; a size that is not known counts as many.
  double cost(const Match &m) const {
    const Expr *e = attr(b_, m.desc->f->notes.attrs, "cycles");
    int64_t cycles = 1;
    if (e) int_value(e, &cycles);
    double calls = double(cycles);
    for (const Match::Group &g : m.groups) {
      int64_t size = 64;
      int_value(g.size, &size);
      calls *= double((size + g.tile - 1) / g.tile);
    }
    return calls;
  }

  // ---- one block

  std::string tensorize(const std::string &block, const Match &m, bool copies) {
    const Description &d = *m.desc;
    std::vector<int64_t> at_once = tiles_at_once(script_.state(), m, target_);
    std::vector<std::string> outer, outer_reduce, blocks, tiles, loops;
    std::vector<const Expr *> groups;
    std::vector<int64_t> multiples;
    for (size_t g = 0; g < m.groups.size(); g++) {
      std::vector<const Expr *> axes;
      for (Sym x : m.groups[g].axes) axes.push_back(b_.name(x));
      groups.push_back(b_.make_list(b_.list(axes)));
      multiples.push_back(m.groups[g].tile * at_once[g]);
      loops.push_back(script_.fresh(b_.text(m.groups[g].axes[0])));
    }
    if (!copies)
      for (const Param &p : d.f->params)
        if (p.def.name != d.target->buffer) lay_out_constant(block, m, at_once, p.def.name);
    Attrs attrs = copies ? b_.one(Attr{b_.sym("copy"), kNowhere, b_.integer(1)}) : Attrs{};
    script_.run("pack_einsum", loops, {name(block), b_.make_list(b_.list(groups)), script_.numbers(multiples)}, attrs);
    if (has_block(block + ".out")) script_.attempt("compute_inline", {}, {name(block + ".out")});

    // Loops over blocks of tiles, tiles, and what a tile is.
    axis_tile_.clear(), axis_blocks_.clear(), spatial_.clear();
    std::vector<std::string> before;
    auto *k = find(block)->block();
    for (size_t g = 0; g < m.groups.size(); g++) {
      Sym axis = k->axes[g].name;
      axis_tile_[axis] = m.groups[g].tile, axis_blocks_[axis] = at_once[g];
      if (m.groups[g].kind == AxisKind::Spatial) spatial_.insert(axis);
      std::vector<const Expr *> factors = {b_.name("_")};
      bool spatial = m.groups[g].kind == AxisKind::Spatial;
      std::vector<std::string> made = {loops[g]};
      if (at_once[g] > 1) factors.push_back(b_.integer(at_once[g]));
      if (m.groups[g].iter) factors.push_back(b_.integer(m.groups[g].tile));
      if (factors.size() > 1) {
        made.clear();
        for (size_t i = 0; i < factors.size(); i++) made.push_back(script_.fresh(fmt::format("{}{}", loops[g], i)));
        run("split", made, {name(loops[g]), b_.make_list(b_.list(factors))});
      }
      before.insert(before.end(), made.begin(), made.end());
      (spatial ? outer : outer_reduce).push_back(made[0]);
      if (at_once[g] > 1) blocks.push_back(made[1]);
      if (m.groups[g].iter) tiles.push_back(made.back());
    }
    std::vector<std::string> order = outer;
    for (auto *l : {&outer_reduce, &blocks, &tiles}) order.insert(order.end(), l->begin(), l->end());
    reorder(before, order);
    bool whole_sum = outer_reduce.empty() || d.starts;  // a call makes the result from nothing
    if (d.starts && d.fold)
      for (const std::string &l : outer_reduce)
        if (!is_int(find(l)->loop()->iter.extent, 1))
          refuse(kNowhere, "@{} starts at the identity, and {} is summed over several calls", text(d.f->name), block);

    // Operands and the result in the memories that the intrinsic wants.
    std::string near = outer.empty() ? "" : outer.back(), nearest = outer_reduce.empty() ? near : outer_reduce.back();
    if (near.empty()) refuse(kNowhere, "@{} has no result with a dimension", text(d.f->name));
    std::vector<Mover> movers;
    Sym result = d.target->buffer, scope = scope_of(d.type_of(result));
    if (scope) {
      Sym buffer = buffer_of(block, d, result);
      std::string store = script_.fresh(text(buffer) + ".store");
      run("cache_write", {store}, {name(block), b_.name(buffer), b_.name(scope)});
      run("reverse_compute_at", {}, {name(store), name(near)});
      movers.push_back(mover(store, near, scope, {}, false));
    }
    for (const Param &p : d.f->params) {
      if (p.def.name == result) continue;
      bool used = m.operands.count(p.def.name);
      if (!used) refuse(kNowhere, "operand {} of @{} is not in its description", text(p.def.name), text(d.f->name));
      bring(block, d, p.def.name, scope_of(p.def.type), nearest, movers);
    }
    for (const Param &p : d.f->params)
      if (p.def.name != result) lay_out(block, d, p.def.name);
    lay_out(block, d, result);

    // The calls.
    bool literal = false;  // operands are numbers that must be constants
    for (const Param &p : d.f->params) literal |= is_literal(scope_of(p.def.type));
    literal |= is_literal(scope);
    if (scope && !whole_sum) {
      std::string init = script_.fresh(block + ".init");
      run("decompose_reduction", {init}, {name(block), name(outer_reduce[0])});
      Mover fill{init, near, axis_tile_, {}, scope, true};
      call(fill, literal);
    }
    for (const Mover &x : movers) call(x, literal);
    if (literal)
      for (const std::string &l : blocks) run("unroll", {}, {name(l)});
    run("tensorize", {}, {name(tiles[0]), b_.global(d.f->name)});
    return summary(m, at_once);
  }

  std::string summary(const Match &m, const std::vector<int64_t> &at_once) const {
    std::string axes, blocks;
    for (size_t g = 0; g < m.groups.size(); g++) {
      if (!m.groups[g].iter) continue;
      std::string all;
      for (Sym x : m.groups[g].axes) all += (all.empty() ? "" : " ") + text(x);
      axes += fmt::format("{}{}: {}", axes.empty() ? "" : ", ", text(m.groups[g].iter), all);
    }
    for (size_t g = 0; g < at_once.size(); g++)
      if (at_once[g] > 1) blocks += (blocks.empty() ? "" : " x ") + std::to_string(at_once[g]);
    return blocks.empty() ? axes : fmt::format("{}; {} tiles at a time", axes, blocks);
  }

  // ---- memories

  static Sym scope_of(const Type *t) { return t->scope; }
  const Load *operand(const std::string &block, const Description &d, Sym param) {
    auto &k = *find(block)->block();
    auto *store = as<Store>(k.body[0]);
    if (param == d.target->buffer) return store->target;
    std::string why;
    auto m = match_block(script_.state(), find(block), d, why);
    auto *l = m ? as<Load>(m->operands.at(param)) : nullptr;
    if (!l) refuse(kNowhere, "operand {} of @{} is no element of a buffer", text(param), text(d.f->name));
    return l;
  }
  Sym buffer_of(const std::string &block, const Description &d, Sym param) { return operand(block, d, param)->buffer; }

  // Brings an operand into a scope, through others where nothing copies it at once.
  void bring(const std::string &block, const Description &d, Sym param, Sym scope, const std::string &inside,
             std::vector<Mover> &movers) {
    if (!scope) return;
    Sym buffer = buffer_of(block, d, param), from = script_.state().type_of_buffer(buffer)->scope;
    if (from == scope) return;
    Sym through;
    bool direct = !target_.memory(text(scope));
    for (const Description &c : all_.copies) {
      if (c.type_of(c.target->buffer)->scope != scope) continue;
      Sym source = c.type_of(to<Load>(c.value).buffer)->scope;
      direct |= source == from;
      if (source != from && source != scope) through = source;
    }
    if (!direct && through) {
      bring(block, d, param, through, inside, movers);
      buffer = buffer_of(block, d, param), from = through;
    }
    if (!from) lay_out(block, d, param), buffer = buffer_of(block, d, param);
    std::string copy = script_.fresh(text(buffer) + "." + text(scope));
    run("cache_read", {copy}, {name(block), b_.name(buffer), b_.name(scope)});
    run("compute_at", {}, {name(copy), name(inside)});
    Mover moved = mover(copy, inside, from, scope, true);
    if (is_laid_out(operand(block, d, param))) {
      std::vector<int64_t> dims;
      const Load *to = as<Store>(find(copy)->block()->body[0])->target;
      all_static(d.type_of(param), &dims);
      moved.tiles.clear();
      for (size_t i = 0; i < dims.size(); i++)
        if (auto *v = as<Name>(to->index[to->index.size() - dims.size() + i])) moved.tiles[v->name] = dims[i];
    }
    movers.push_back(moved);
  }

  // The subscripts with which a description names an operand.
  static const Load *shape_of(const Description &d, Sym param) {
    const Load *shape = param == d.target->buffer ? d.target : nullptr;
    each_expr(d.value, [&](const Expr *e) {
      if (auto *x = as<Load>(e); x && x->buffer == param) shape = x;
      return !shape;
    });
    return shape;
  }
  // A constant that all callers pass is laid out in them, at build time.
  //   w[o, c, r]  ->  w[o // 64, (c * 3 + r) // 16, o // 16 % 4, o % 16, (c * 3 + r) % 16]
  void lay_out_constant(const std::string &block, const Match &m, const std::vector<int64_t> &at_once, Sym param) {
    auto *l = as<Load>(m.operands.at(param));
    const Load *shape = shape_of(*m.desc, param);
    if (!l || l->global || !shape || !is_constant(l->buffer)) return;
    std::vector<const Expr *> reduce, to, block_parts;
    Substitution inner;
    std::set<Sym> left;
    for (const Expr *e : l->index) {
      auto *v = as<Name>(e);
      if (!v || !left.insert(v->name).second) return;
    }
    Known known(script_.state(), script_.state().tree.root());
    for (size_t g = 0; g < m.groups.size(); g++) {
      const Match::Group &group = m.groups[g];
      bool has = std::any_of(group.axes.begin(), group.axes.end(), [&](Sym x) { return left.count(x); });
      if (!has) continue;
      X fused = lit(b_, int64_t(0));
      for (size_t i = 0; i < group.axes.size(); i++) {
        if (!left.erase(group.axes[i])) return;
        fused = fused * X{b_, group.domains[i]} + X{b_, b_.name(group.axes[i])};
      }
      int64_t size = 0;
      if (!int_value(group.size, &size) || (size < group.tile * at_once[g] && group.axes.size() > 1)) return;
      X outer = floordiv(fused, group.tile * at_once[g]);
      (group.kind == AxisKind::Spatial ? to : reduce).push_back(size <= group.tile * at_once[g] ? b_.integer(0) : outer.e);
      if (at_once[g] > 1) block_parts.push_back((floordiv(fused, group.tile) % at_once[g]).e);
      if (group.iter) inner[group.iter] = (fused % group.tile).e;
    }
    if (!left.empty()) return;
    for (auto *list : {&reduce, &block_parts}) to.insert(to.end(), list->begin(), list->end());
    for (const Expr *e : shape->index) to.push_back(substitute(b_, e, inner));
    const Map *map = b_.map(b_.make_list(l->index), b_.make_list(b_.list(to)));
    Attr zeros{b_.sym("pad_value"), kNowhere, zero(b_, script_.state().type_of_buffer(l->buffer)->elem).e};
    script_.attempt("transform_layout", {}, {name(block), b_.name(l->buffer), map}, b_.one(zeros));
  }
  bool is_constant(Sym buffer) const {
    size_t at = 0;
    while (at < f_->params.size() && f_->params[at].def.name != buffer) at++;
    if (at == f_->params.size() || f_->params[at].mode != Mode::In) return false;
    bool any = false, all = true;
    for (const Item *i : m_.items) {
      auto *f = as<Func>(i);
      if (!f || f == f_) continue;
      each_stmt(f->body, [&](const Stmt *s) {
        auto *l = as<Let>(s);
        auto *c = l ? as<Call>(l->value) : nullptr;
        if (c && c->global && c->callee == f_->name) any = true, all &= c->args[at]->kind == Kind::Global;
        if (auto *x = as<CallStmt>(s); x && x->call->global && x->call->callee == f_->name) all = false;
      });
    }
    return any && all;
  }
  // Laid out already: the last dimensions are a tile.
  bool is_laid_out(const Load *l) const {
    return std::any_of(l->index.begin(), l->index.end(), [](const Expr *e) { return e->kind != Kind::Name; });
  }

  Mover mover(const std::string &block, const std::string &inside, Sym from, Sym to_scope, bool reads) {
    Mover out{block, inside, {}, from, to_scope};
    // Dimension by dimension the axes of the block are those of the product, at whatever names.
    auto &k = *find(block)->block();
    auto *store = as<Store>(k.body[0]);
    const Load *at = reads ? as<Load>(store->value) : store->target;
    for (const Expr *e : at->index)
      if (auto *v = as<Name>(e)) {
        auto it = axis_tile_.find(v->name);
        out.tiles[v->name] = it == axis_tile_.end() ? 1 : it->second;
      }
    return out;
  }

  // [m, k]  ->  [m // 32, k // 16, m // 16 % 2, m % 16, k % 16]: tiles are whole pieces, in the order in which they are
  // used, and in them the order of the description.
  void lay_out(const std::string &block, const Description &d, Sym param) {
    const Load *l = operand(block, d, param), *shape = shape_of(d, param);
    const Type *want = d.type_of(param), *has = script_.state().type_of_buffer(l->buffer);
    if (is_laid_out(l)) return;
    // In global only what a copy or the intrinsic itself could not take as it is.
    if (!has->scope && !(want->scope ? is_laid_out(shape) : needs_layout(l, shape, want))) return;
    std::string why;
    auto m = match_block(script_.state(), find(block), d, why);
    std::vector<const Expr *> from, to, reduce, block_parts;
    Substitution inner;
    for (const Expr *e : l->index) {
      auto *v = as<Name>(e);
      if (!v) refuse(kNowhere, "{} is used at {}", text(l->buffer), print_of(l));
      from.push_back(v);
      int64_t tile = axis_tile_.at(v->name), blocks = axis_blocks_.at(v->name);
      X at{b_, v};
      (spatial_.count(v->name) ? to : reduce).push_back(floordiv(at, tile * blocks).e);
      if (blocks > 1) block_parts.push_back((floordiv(at, tile) % blocks).e);
      for (const Match::Group &g : m->groups)
        if (g.iter && g.axes[0] == v->name) inner[g.iter] = b_.binary(Op::Mod, v, b_.integer(tile));
    }
    Known known(script_.state(), find(block), true);
    for (auto *l : {&reduce, &block_parts}) to.insert(to.end(), l->begin(), l->end());
    for (const Expr *e : shape->index) to.push_back(simplify(b_, substitute(b_, e, inner), known));
    const Map *map = b_.map(b_.make_list(b_.list(from)), b_.make_list(b_.list(to)));
    if (!has->scope && !script_.state().alloc_of(l->buffer)) {  // the caller's: a copy of it
      std::string copy = script_.fresh(text(l->buffer) + ".tiles");
      run("cache_read", {copy}, {name(block), b_.name(l->buffer), b_.name("global")});
      l = operand(block, d, param);
    }
    run("transform_layout", {}, {name(block), b_.name(l->buffer), map});
  }
  std::string print_of(const Expr *e) { return script_.state().text(e); }

  // Rows of the buffer do not do for an operand in global: its tile is dense, or has another order.
  bool needs_layout(const Load *l, const Load *shape, const Type *want) {
    size_t behind = l->index.size() - std::min(l->index.size(), shape->index.size());
    for (size_t i = 0; i < shape->index.size(); i++) {
      auto *v = behind + i < l->index.size() ? as<Name>(l->index[behind + i]) : nullptr;
      auto *w = as<Name>(shape->index[i]);
      if (!v || !w || axis_tile_.at(v->name) == 1) return true;
    }
    return shape->index.size() > 1 && !attr(b_, want->attrs, "strides");
  }

  bool is_literal(Sym scope) const {
    const TargetLine *line = scope ? target_.memory(b_.text(scope)) : nullptr;
    return line && line->kind == "register";
  }

  // ---- calls that move tiles

  void call(const Mover &x, bool literal) {
    auto special = [&](Sym s) { return s && target_.memory(text(s)); };
    bool known = special(x.to) || special(x.from);
    const std::vector<Description> &all = x.fills ? all_.fills : all_.copies;
    auto fits = [&](const Description &d) {
      if (d.type_of(d.target->buffer)->scope != x.to) return false;
      return x.fills || d.type_of(to<Load>(d.value).buffer)->scope == x.from;
    };
    std::string why;
    size_t mark = script_.mark();
    bool any = false;
    for (const Description &d : all) {
      if (!fits(d)) continue;
      any = true;
      try {
        return one_call(x, d, literal);
      } catch (const Refused &e) {
        why = e.message;
        script_.rewind(mark);
      }
    }
    auto scope = [&](Sym s) { return s ? text(s) : std::string("global"); };
    if (any) refuse(kNowhere, "{}", why);
    if (known)
      refuse(kNowhere, "@{} has no intrinsic that {}", target_.name,
             x.fills ? fmt::format("fills {}", scope(x.to)) : fmt::format("copies from {} to {}", scope(x.from), scope(x.to)));
  }

  void one_call(const Mover &x, const Description &d, bool literal) {
    Place *n = find(x.block), *inside = find(x.inside);
    std::vector<std::string> loops, own, outer, tiles;
    std::vector<int64_t> extents;
    for (Place *l : loops_around(n)) {
      bool below = is_below(l, inside);
      loops.push_back(below ? script_.fresh(text(l->loop()->iter.name)) : "_");
      if (below) own.push_back(loops.back());
    }
    std::vector<Axis> axes(n->block()->axes.begin(), n->block()->axes.end());
    std::map<std::string, int64_t> tile_of;  // the last of an axis' own loops
    for (const Axis &a : axes) {
      auto it = x.tiles.find(a.name);
      if (it == x.tiles.end() || it->second == 1) continue;
      std::string last;
      size_t i = 0;
      for (Place *l : loops_around(n)) {
        if (loops[i] != "_" && uses(a, l->loop()->iter.name)) last = loops[i];
        i++;
      }
      if (last.empty()) refuse(n, "block {} has no loop over a tile of {}", x.block, text(a.name));
      tile_of[last] = it->second;
    }
    run("get_loops", loops, {name(x.block)});
    for (const std::string &l : own) {
      auto it = tile_of.find(l);
      if (it == tile_of.end()) {
        outer.push_back(l);
        continue;
      }
      if (is_int(find(l)->loop()->iter.extent, it->second)) {
        tiles.push_back(l);
        continue;
      }
      std::vector<std::string> made = {script_.fresh(l + "0"), script_.fresh(l + "1")};
      run("split", made, {name(l), b_.make_list(b_.list({b_.name("_"), b_.integer(it->second)}))});
      outer.push_back(made[0]), tiles.push_back(made[1]);
    }
    if (tiles.empty()) refuse(n, "block {} has no loop over a tile", x.block);
    std::vector<std::string> before, order = outer;
    for (Place *l : loops_around(find(x.block)))
      for (const auto *list : {&outer, &tiles})
        for (const std::string &s : *list)
          if (find(s) == l) before.push_back(s);
    order.insert(order.end(), tiles.begin(), tiles.end());
    reorder(before, order);
    if (literal)
      for (const std::string &l : outer) run("unroll", {}, {name(l)});
    run("tensorize", {}, {name(tiles[0]), b_.global(d.f->name)});
  }

  // ---- the script

  void run(std::string_view step, const std::vector<std::string> &results, std::vector<const Expr *> args) {
    script_.run(step, results, std::move(args));
  }
  void reorder(const std::vector<std::string> &before, const std::vector<std::string> &order) {
    if (before == order || order.size() < 2) return;
    std::vector<const Expr *> args;
    for (const std::string &l : order) args.push_back(name(l));
    run("reorder", {}, args);
  }
  const Expr *name(std::string_view s) { return script_.name(s); }
  bool has_block(const std::string &n) {
    for (Place *p : script_.state().blocks())
      if (text(p->block()->name) == n) return true;
    return false;
  }
  Place *find(const std::string &n) {
    Place *p = script_.find(n);
    if (!p) refuse(kNowhere, "{} is gone", n);
    return p;
  }

  Build &b_;
  const Module &m_;
  const TargetInfo &target_;
  const Instructions &all_;
  const Func *f_;
  Diag &diag_;
  Script script_;
  std::map<Sym, int64_t> axis_tile_, axis_blocks_;  // axes of the product -> turns of a tile, tiles at a time
  std::set<Sym> spatial_;
};

Instructions instructions(Build &b, const Module &m, const TargetInfo &target, const std::string &only) {
  Instructions out;
  for (Sym use : target.uses) {
    const Func *f = m.func(use);
    auto d = f && f->func == FuncKind::Intrinsic ? description_of(b, *f) : std::nullopt;
    if (!d) continue;
    bool loads = false;
    each_expr(d->value, [&](const Expr *e) { return !(loads |= e->kind == Kind::Load); });
    if (!loads && !d->fold) out.fills.push_back(*d);
    else if (d->value->kind == Kind::Load && !d->fold) out.copies.push_back(*d);
    else if (only.empty() || b.text(use) == only) out.products.push_back(*d);
  }
  return out;
}

}  // namespace

std::vector<const Schedule *> tensorize_scripts(Build &b, const Module &m, const TargetInfo &target,
                                                const TensorizeOptions &options, Diag &diag) {
  Instructions all = instructions(b, m, target, options.intrinsic);
  std::vector<const Schedule *> out;
  for (const Item *i : m.items) {
    auto *f = as<Func>(i);
    std::string name = f ? std::string(b.text(f->name)) : "";
    if (!f || f->func != FuncKind::Kernel || f->device || fnmatch(options.kernel.c_str(), name.c_str(), 0)) continue;
    std::vector<Step> steps = Tensorizer(b, m, target, all, f, diag).run();
    if (steps.empty()) continue;
    Schedule s{};
    s.name = f->name, s.target = b.sym(target.name), s.steps = b.list(steps);
    out.push_back(b.make(s));
  }
  return out;
}

std::vector<const Item *> with_instructions(Build &b, const Module &m, const TargetInfo &target,
                                            const std::vector<const Schedule *> &scripts) {
  std::vector<Sym> called;
  auto take = [&](Sym f) {
    if (std::find(called.begin(), called.end(), f) == called.end()) called.push_back(f);
  };
  for (const Schedule *s : scripts)
    for (const Step &step : s->steps)
      for (const Expr *e : step.call->args)
        if (auto *g = as<Global>(e)) take(g->name);
  std::vector<const Item *> out;
  std::vector<const Feature *> own;
  // The target as far as the kernels need it: the memories that the instructions name, and what the emitter asks for.
  const Target *item = nullptr;
  for (const Module *from : {&m, &target.text})
    for (const Item *i : from->items)
      if (auto *t = as<Target>(i); t && b.text(t->name) == target.name && !item) item = t;
  if (called.empty() || !item) return out;
  std::vector<Feature> features;
  std::vector<const Func *> functions;
  for (Sym use : called)
    for (const Module *from : {&m, &target.text})
      if (const Func *f = from->func(use); f && std::find(functions.begin(), functions.end(), f) == functions.end()) {
        functions.push_back(f);
        break;
      }
  for (const TargetLine &l : target.memories) {
    bool named = std::any_of(functions.begin(), functions.end(), [&](const Func *f) {
      auto in = [&](const Type *t) { return t->scope && b.text(t->scope) == l.name; };
      return std::any_of(f->params.begin(), f->params.end(), [&](const Param &p) { return in(p.def.type); }) ||
             std::any_of(f->results.begin(), f->results.end(), [&](const Def &d) { return in(d.type); });
    });
    if (named) features.push_back({Feature::Memory, b.sym(l.name), kNowhere, l.attrs});
  }
  for (Sym use : called) features.push_back({Feature::Use, use, kNowhere, {}});
  Target t = *item;
  t.notes.attrs = b.list(target.attrs), t.features = b.list(features), t.comment = {};
  out.push_back(b.make(t));
  for (const Func *f : functions) out.push_back(f);
  return out;
}

}  // namespace mlc
