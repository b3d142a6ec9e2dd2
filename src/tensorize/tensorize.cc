#include "tensorize/tensorize.h"

#include <fnmatch.h>

#include <algorithm>

#include "ops/expr.h"
#include "sched/primitives.h"
#include "sched/regions.h"
#include "tensorize/tensorizer.h"

namespace mlc {

std::vector<Step> Tensorizer::run() {
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
          taken_.push_back({b_.sym(block), m.desc->f->name});
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

// Takes the differences of a sum of integers apart, where no description is what it is with them.
static bool distributes(State &s, Place *n, const std::vector<Description> &products) {
  std::string why;
  for (const Description &d : products)
    if (match_block(s, n, d, why)) return false;
  const Block &k = *n->block();
  auto *store = k.body.size() == 1 ? as<Store>(k.body[0]) : nullptr;
  auto *sum = store ? as<Binary>(store->value) : nullptr;
  auto *term = sum ? as<Binary>(sum->b) : nullptr;
  const Type *t = store ? s.type_of_buffer(store->target->buffer) : nullptr;
  if (products.empty() || !term || term->op != Op::Mul || !t || !is_int(t->elem)) return false;
  try {
    Step step{{}, s.b.call(s.b.sym("distribute"), s.b.list({s.b.name(k.name)})), {}, {}};
    Args args(s, step, 0, 0);
    distribute(s, args);
    return true;
  } catch (const Refused &) {
  } catch (const BadStep &) {
  }
  return false;
}

static bool adds_floats(State &s, Place *n) {
  auto *store = has_reduce(*n->block()) && !n->nest ? as<Store>(n->block()->body[0]) : nullptr;
  const Type *t = store ? s.type_of_buffer(store->target->buffer) : nullptr;
  return t && is_float(t->elem);
}

// Blocks with what they could be, the cheapest first. Looked for on a copy: computes that are nothing of the kind stay.
std::vector<std::pair<std::string, std::vector<Match>>> Tensorizer::candidates() {
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
    std::string why, slow;
    if (all_.strict && adds_floats(s, n)) {
      diag_.remark("@{}: {} left: a sum of floats keeps its order", text(f_->name), text(n->block()->name));
      continue;
    }
    bool apart = distributes(s, n, all_.products);
    for (const Description &d : all_.products) {
      auto m = match_block(s, n, d, why);
      if (!m) continue;
      m->distributed = apart;
      if (double vectors = cycles_of_vectors(*m); vectors > 0 && cost(*m) > vectors) {
        slow = fmt::format("@{} takes {:.0f} cycles in whole tiles, vectors {:.0f}", text(d.f->name), cost(*m), vectors);
        continue;
      }
      auto at = std::upper_bound(found.begin(), found.end(), *m,
                                 [&](const Match &x, const Match &y) { return cost(x) < cost(y); });
      found.insert(at, *m);
    }
    std::string block = text(n->block()->name);
    if (!found.empty()) out.push_back({block, found});
    else if (has_reduce(*n->block())) diag_.remark("@{}: {} left: {}", text(f_->name), block, slow.empty() ? why : slow);
  }
  return out;
}

static int64_t size_of(const Match::Group &g) {
  int64_t size = 64;  // one that is not known counts as many
  int_value(g.size, &size);
  return size;
}

// Calls, weighed.
double Tensorizer::cost(const Match &m) const {
  const Expr *e = attr(b_, m.desc->f->notes.attrs, "cycles");
  int64_t cycles = 1;
  if (e) int_value(e, &cycles);
  double calls = double(cycles);
  for (const Match::Group &g : m.groups) calls *= double((size_of(g) + g.tile - 1) / g.tile);
  return calls;
}

// What multiply-adds of whole vectors would take, each lane filled; 0: the texts do not say how that and the intrinsic
// compare, or it was asked for by name.
double Tensorizer::cycles_of_vectors(const Match &m) const {
  int64_t bytes = target_.number(b_, "vector_bytes", 0), starts = target_.number(b_, "fma_per_cycle", 0);
  const Type *result = m.desc->type_of(m.desc->target->buffer);
  if (all_.by_name || bytes <= 0 || starts <= 0 || !result || !attr(b_, m.desc->f->notes.attrs, "cycles")) return 0;
  double turns = 1;
  for (const Match::Group &g : m.groups) turns *= double(size_of(g));
  return turns * double(storage_bytes(result->elem, 1)) / double(bytes * starts);
}

namespace {

Instructions instructions(Build &b, const Module &m, const TargetInfo &target, const TensorizeOptions &options,
                          Diag &diag) {
  Instructions out;
  out.strict = options.strict, out.by_name = !options.intrinsic.empty();
  out.constants = constant_params(m);
  for (Sym use : target.uses) {
    const Func *f = m.func(use);
    auto d = f && f->func == FuncKind::Intrinsic ? description_of(b, *f) : std::nullopt;
    if (!d) continue;
    std::unordered_set<Sym> used = {d->target->buffer};
    bool loads = false, whole = true;
    each_expr(d->value, [&](const Expr *e) {
      auto *l = as<Load>(e);
      if (l) loads = true, used.insert(l->buffer);
      return !l;
    });
    for (const Param &p : f->params) whole &= used.count(p.def.name) > 0;
    if (!whole) {
      diag.remark("@{} is not used: its description says nothing of some parameter", b.text(use));
      continue;
    }
    if (!loads && !d->fold) out.fills.push_back(*d);
    else if (d->value->kind == Kind::Load && !d->fold) out.copies.push_back(*d);
    else if (options.intrinsic.empty() || b.text(use) == options.intrinsic) out.products.push_back(*d);
  }
  return out;
}

}  // namespace

std::vector<const Schedule *> tensorize_scripts(Build &b, const Module &m, const TargetInfo &target,
                                                const TensorizeOptions &options, Diag &diag) {
  Instructions all = instructions(b, m, target, options, diag);
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

Module with_intrinsics(const Module &m, const TargetInfo &target) {
  Module all = m;
  for (const Item *i : target.text.items)
    if (!name_of(i) || !all.find(name_of(i))) all.add(i);
  return all;
}

struct Takers::Found {
  Build &b;
  const TargetInfo &target;
  Module all;
  mutable Diag diag{"tensorize"};  // remarks are not kept
  Instructions instructions;
};

Takers::Takers(Build &b, const Module &m, const TargetInfo &target, const TensorizeOptions &options)
    : found_(new Found{b, target, target.uses.empty() ? Module() : with_intrinsics(m, target), Diag("tensorize"), {}}) {
  if (!target.uses.empty()) found_->instructions = instructions(b, found_->all, target, options, found_->diag);
}
Takers::~Takers() = default;

std::vector<Takers::Taken> Takers::of(const Func *kernel) const {
  Found &f = *found_;
  if (f.instructions.products.empty()) return {};
  Tensorizer t(f.b, f.all, f.target, f.instructions, kernel, f.diag);
  t.run();
  return t.taken();
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
  t.notes.attrs = b.list(target.attrs), t.comment = {};
  if (auto *there = as<Target>(m.find(item->name))) {  // its own, or of an earlier run: what is new goes behind
    std::vector<Feature> all(there->features.begin(), there->features.end());
    for (const Feature &f : features)
      if (std::none_of(all.begin(), all.end(), [&](auto &g) { return g.kind == f.kind && g.name == f.name; }))
        all.push_back(f);
    t = *there, features = all;
  }
  t.features = b.list(features);
  auto add = [&](const Item *i) {
    const Item *there = m.find(name_of(i));
    if (!there || !equal(there, i)) out.push_back(i);
  };
  add(b.make(t));
  for (const Func *f : functions) add(f);
  return out;
}

}  // namespace mlc
