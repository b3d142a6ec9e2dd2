// Where operands stand: memories, and layouts in which a tile is one piece.
#include <algorithm>

#include "arith/simplify.h"
#include "ops/expr.h"
#include "tensorize/tensorizer.h"

namespace mlc {

// The subscripts with which a description names an operand.
static const Load *shape_of(const Description &d, Sym param) {
  const Load *shape = param == d.target->buffer ? d.target : nullptr;
  each_expr(d.value, [&](const Expr *e) {
    if (auto *x = as<Load>(e); x && x->buffer == param) shape = x;
    return !shape;
  });
  return shape;
}
// Laid out already: the last dimensions are a tile.
static bool is_laid_out(const Load *l) {
  return std::any_of(l->index.begin(), l->index.end(),
                     [](const Expr *e) { return e->kind != Kind::Name && e->kind != Kind::Int; });
}

const Load *Tensorizer::operand(const std::string &block, const Description &d, Sym param) {
  auto &k = *find(block)->block();
  auto *store = as<Store>(k.body[0]);
  if (param == d.target->buffer) return store->target;
  std::string why;
  auto all = operands_of(script_.state(), find(block), d, why);
  auto *l = way_ < all.size() ? as<Load>(all[way_].at(param)) : nullptr;
  if (!l) refuse(kNowhere, "operand {} of @{} is no element of a buffer", text(param), text(d.f->name));
  return l;
}
// Brings an operand into a scope, through others where nothing copies it at once.
void Tensorizer::bring(const std::string &block, const Description &d, Sym param, Sym scope, const std::string &inside,
                       std::vector<Mover> &movers) {
  if (!scope) return;
  Sym buffer = buffer_of(block, d, param), from = script_.state().type_of_buffer(buffer)->scope;
  if (from == scope) return;
  Sym through;
  bool direct = !is_special(scope);
  for (const Description &c : all_.copies) {
    if (c.type_of(c.target->buffer)->scope != scope) continue;
    Sym source = c.type_of(to<Load>(c.value).buffer)->scope;
    direct |= source == from;
    if (source != from && source != scope) through = source;
  }
  if (!direct && through) {
    if (!bringing_.insert(scope).second) refuse(kNowhere, "nothing copies from global to {}", text(scope));
    bring(block, d, param, through, inside, movers);
    buffer = buffer_of(block, d, param), from = through;
    bringing_.erase(scope);
  }
  if (!from) lay_out(block, d, param), buffer = buffer_of(block, d, param);
  std::string copy = script_.fresh(text(buffer) + "." + text(scope));
  run("cache_read", {copy}, {name(block), b_.name(buffer), b_.name(scope)});
  if (!is_below(find(copy), find(inside))) run("compute_at", {}, {name(copy), name(inside)});
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

// A constant that all callers pass is laid out in them, at build time.
//   w[o, c, r]  ->  w[o // 64, (c * 3 + r) // 16, o // 16 % 4, o % 16, (c * 3 + r) % 16]
void Tensorizer::lay_out_constant(const std::string &block, const Match &m, const std::vector<int64_t> &at_once,
                                  Sym param) {
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
    const Expr *which = size <= group.tile * at_once[g] ? b_.integer(0) : outer.e;
    (group.kind == AxisKind::Spatial ? to : reduce).push_back(which);
    if (at_once[g] > 1) block_parts.push_back((floordiv(fused, group.tile) % at_once[g]).e);
    if (group.iter) inner[group.iter] = (fused % group.tile).e;
  }
  if (!left.empty()) return;
  for (auto *list : {&reduce, &block_parts}) to.insert(to.end(), list->begin(), list->end());
  for (const Expr *e : shape->index) to.push_back(substitute(b_, e, inner));
  const Map *map = b_.map(b_.make_list(l->index), b_.make_list(b_.list(to)));
  Attr zeros{b_.sym("pad_value"), kNowhere, zero(b_, script_.state().type_of_buffer(l->buffer)->elem).e};
  script_.attempt([&] { script_.step("transform_layout", {}, {name(block), b_.name(l->buffer), map}, b_.one(zeros)); });
}
bool Tensorizer::is_constant(Sym buffer) const {
  auto it = all_.constants.find(f_->name);
  for (size_t i = 0; it != all_.constants.end() && i < f_->params.size(); i++)
    if (f_->params[i].def.name == buffer) return f_->params[i].mode == Mode::In && it->second[i];
  return false;
}
Mover Tensorizer::mover(const std::string &block, const std::string &inside, Sym from, Sym to_scope, bool reads) {
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
void Tensorizer::lay_out(const std::string &block, const Description &d, Sym param) {
  const Load *l = operand(block, d, param), *shape = shape_of(d, param);
  const Type *want = d.type_of(param), *has = script_.state().type_of_buffer(l->buffer);
  if (is_laid_out(l)) return;
  // In global only what a copy or the intrinsic itself could not take as it is.
  bool rows = has_rows(l, shape);
  if (!has->scope && rows && (want->scope || shape->index.size() < 2 || attr(b_, want->attrs, "strides"))) return;
  std::vector<const Expr *> from, to, reduce, block_parts;
  Substitution inner;
  for (const Expr *e : l->index) {
    if (e->kind == Kind::Int) {  // a dimension of one
      from.push_back(b_.name(fmt::format("d{}", from.size()))), to.push_back(from.back());
      continue;
    }
    auto *v = as<Name>(e);
    if (!v) refuse(kNowhere, "{} is used at {}", text(l->buffer), script_.state().text(l));
    from.push_back(v);
    if (!axis_tile_.count(v->name)) refuse(kNowhere, "{} is used at {}", text(l->buffer), script_.state().text(l));
    int64_t tile = axis_tile_.at(v->name), blocks = axis_blocks_.at(v->name);
    X at{b_, v};
    (spatial_.count(v->name) ? to : reduce).push_back(floordiv(at, tile * blocks).e);
    if (blocks > 1) block_parts.push_back((floordiv(at, tile) % blocks).e);
    if (Sym iter = axis_iter_.at(v->name)) inner[iter] = b_.binary(Op::Mod, v, b_.integer(tile));
  }
  Known known(script_.state(), script_.state().tree.root());  // of axes alone: they may be called like loops
  for (const Axis &x : find(block)->block()->axes) known.bounds.range(x.name, x.domain);
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

// The last dimensions of the buffer are those of the operand: a tile is rows at equal distances.
bool Tensorizer::has_rows(const Load *l, const Load *shape) const {
  if (l->index.size() < shape->index.size()) return false;
  Exprs last = l->index.last(shape->index.size());
  for (size_t i = 0; i < shape->index.size(); i++) {
    auto *v = as<Name>(last[i]), *w = as<Name>(shape->index[i]);
    auto it = v ? axis_iter_.find(v->name) : axis_iter_.end();
    if (!w || it == axis_iter_.end() || it->second != w->name) return false;
  }
  return true;
}

bool Tensorizer::is_special(Sym scope) const {
  std::string s = scope ? text(scope) : "global";
  return target_.memory(s) && s != "global" && s != "shared" && s != "local";
}
bool Tensorizer::is_literal(Sym scope) const {
  const TargetLine *line = scope ? target_.memory(b_.text(scope)) : nullptr;
  return line && is_special(scope) && (line->kind == "register" || line->kind == "fragment");
}

}  // namespace mlc
