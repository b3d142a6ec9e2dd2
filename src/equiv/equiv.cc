#include "equiv/equiv.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/compare.h"
#include "equiv/draw.h"
#include "equiv/field.h"
#include "equiv/spread.h"
#include "interp/interp.h"
#include "ir/walk.h"
#include "text/text.h"

namespace mlc {

namespace {

// A function of one side.
struct Side {
  const EquivSide &of;
  const Func *f;
  std::set<std::string> licences = {};
  Build &b() const { return of.b; }
};

void add_licences(Side &s) {
  for (const Item *i : s.of.m.items) {
    auto *f = as<Func>(i);
    auto *l = f ? as<List>(attr(s.b(), f->notes.attrs, "licence")) : nullptr;
    for (const Expr *e : l ? l->items : Exprs{})
      if (auto *t = as<Str>(e)) s.licences.emplace(t->value);
  }
}

std::vector<const Def *> outputs_of(const Func &f) {
  std::vector<const Def *> list;
  for (const Def &d : f.results) list.push_back(&d);
  for (const Param &p : f.params)
    if (p.mode == Mode::Inout) list.push_back(&p.def);
  return list;
}

// Parameters that a caller gives, and results, must agree in number, element type and rank.
std::string mismatch(const Side &x, const Side &y) {
  auto params = [](const Side &s) {
    std::vector<const Def *> list;
    for (const Param &p : s.f->params)
      if (p.mode != Mode::Scratch) list.push_back(&p.def);
    return list;
  };
  auto differ = [&](const char *what, const std::vector<const Def *> &a,
                    const std::vector<const Def *> &b) -> std::string {
    if (a.size() != b.size()) return fmt::format("{} {}s against {}", a.size(), what, b.size());
    for (size_t i = 0; i < a.size(); i++) {
      const Type *t = a[i]->type, *u = b[i]->type;
      if (t->elem != u->elem || t->rank() != u->rank() || t->tensor != u->tensor)
        return fmt::format("{} {} is {} against {}", what, i, print(x.b(), t), print(y.b(), u));
    }
    return "";
  };
  std::string s = differ("input", params(x), params(y));
  return s.empty() ? differ("output", outputs_of(*x.f), outputs_of(*y.f)) : s;
}

// ` from "/a", "/b"`: the nodes of the model behind an output, as the lines that write it say, or what they call.
std::string nodes_behind(const Side &s, size_t output) {
  std::vector<const Def *> outputs = outputs_of(*s.f);
  if (output >= outputs.size()) return "";
  std::vector<Sym> found;
  auto add = [&](Syms from) {
    for (Sym n : from)
      if (std::find(found.begin(), found.end(), n) == found.end()) found.push_back(n);
  };
  std::function<void(const Func &, Sym)> look = [&](const Func &f, Sym name) {
    Syms around;
    auto written = [&](Syms from, const Call *c, size_t k) {
      const Func *callee = c && c->global ? s.of.m.func(c->callee) : nullptr;
      if (!from.empty()) add(from);
      else if (callee && k < callee->results.size() && callee != &f) look(*callee, callee->results[k].name);
      else add(around.empty() ? f.notes.from : around);
    };
    std::function<void(Stmts)> body = [&](Stmts l) {
      for (const Stmt *x : l) {
        Syms before = around;
        if (auto *t = as<Let>(x))
          for (size_t k = 0; k < t->defs.size(); k++)
            if (t->defs[k].name == name) written(t->from, as<Call>(t->value), k);
        if (auto *t = as<Store>(x); t && t->target->buffer == name) written(t->from, nullptr, 0);
        if (auto *t = as<Compute>(x))
          for (const Result &r : t->results)
            if (r.name == name) written(t->from, nullptr, 0);
        if (auto *t = as<CallStmt>(x))
          for (size_t k = 0; k < t->dests.size(); k++) {
            auto *n = as<Name>(t->dests[k]);
            auto *r = as<Load>(t->dests[k]);
            if ((n && n->name == name) || (r && r->buffer == name)) written(t->from, t->call, k);
          }
        auto *block = as<Block>(x);
        auto *loop = as<For>(x);
        if (block && !block->notes.from.empty()) around = block->notes.from;
        if (loop && !loop->notes.from.empty()) around = loop->notes.from;
        each_body(x, body);
        around = before;
      }
    };
    body(f.body);
  };
  look(*s.f, outputs[output]->name);
  std::string text;
  constexpr size_t kMost = 6;
  for (size_t i = 0; i < found.size() && i < kMost; i++)
    text += (i ? ", " : ", from ") + quote(s.b().text(found[i]));
  return found.size() > kMost ? text + ", .." : text;
}

struct Tried {
  bool ran = false;
  std::vector<Array> outputs;
  RunFault fault;
};

struct Verdict {
  bool exact = true, same = true;
  size_t output = 0;            // where the largest difference is, or the first that is too large
  Comparison worst;
  double allowed = 0;           // there
  std::vector<int64_t> loose;   // by output
};

// One function of each side.
class Pair {
 public:
  Pair(const EquivOptions &options, Side a, Side b) : options_(options), a_(std::move(a)), b_(std::move(b)) {
    add_licences(a_), add_licences(b_);
    licences_ = a_.licences;
    licences_.insert(b_.licences.begin(), b_.licences.end());
  }
  EquivReport compare();

 private:
  Tried try_run(const Side &s, const std::vector<Array> &inputs, bool backwards, uint64_t jitter = 0,
                bool races = false);
  Verdict judge(const Tried &x, const Tried &y, const std::vector<Array> &inputs, bool backwards);
  Verdict weigh(const Tried &x, const Tried &y, const Spread &of_x, const Spread &of_y) const;
  EquivReport refuse(std::string message) const { return {false, std::move(message), "", -1, kNowhere}; }
  std::string where(const std::map<std::string, int64_t> &sizes, bool backwards) const;
  EquivReport said(const Tried &x, const Tried &y, const std::string &where) const;
  enum class Algebra : uint8_t { Unknown, Equal, Different };
  Algebra algebra(const std::vector<Array> &inputs, bool backwards, std::mt19937_64 &random, std::string *difference);

  const EquivOptions &options_;
  Side a_, b_;
  std::set<std::string> licences_;
  int64_t turns_ = 0, limit_ = 0;
  std::optional<FieldProgram> fields_[2];
};

// Both over a prime field, with random numbers in place of floats: what is equal there differs by roundings alone.
Pair::Algebra Pair::algebra(const std::vector<Array> &inputs, bool backwards, std::mt19937_64 &random,
                            std::string *difference) {
  Side *sides[] = {&a_, &b_};
  RunOptions o;
  o.folders = options_.folders, o.turns = limit_;
  for (int i = 0; i < 2; i++) {
    o.module_path = sides[i]->of.path;
    if (!fields_[i]) fields_[i] = over_field(sides[i]->b(), sides[i]->of.m, *sides[i]->f, o);
    if (!fields_[i]->entry) return Algebra::Unknown;
  }
  std::vector<Array> numbers;
  for (const Array &a : inputs) {
    if (!is_float(a.type)) {
      numbers.push_back(a);
      continue;
    }
    numbers.emplace_back(DType::U64, a.dims);
    for (int64_t i = 0; i < a.size(); i++) numbers.back().set(i, Scalar::of_int(int64_t(random() % kFieldPrime)));
  }
  std::vector<Array> out[2];
  for (int i = 0; i < 2; i++) {
    RunFault fault;
    o.backwards = i && backwards;
    bool ran = run(sides[i]->b(), fields_[i]->m, *fields_[i]->entry, numbers, o, out[i], fault);
    turns_ += fault.turns;
    if (!ran) return Algebra::Unknown;
  }
  for (size_t k = 0; k < out[0].size(); k++) {
    Comparison c = mlc::compare(out[1][k], out[0][k], Tolerance::exact());
    if (c.same()) continue;
    if (!decides(*fields_[0], *fields_[1]) || !is_float(outputs_of(*a_.f)[k]->type->elem))
      return Algebra::Unknown;
    *difference = describe(c, a_.b().text(outputs_of(*a_.f)[k]->name), out[0][k]);
    return Algebra::Different;
  }
  return Algebra::Equal;
}

Tried Pair::try_run(const Side &s, const std::vector<Array> &inputs, bool backwards, uint64_t jitter, bool races) {
  Tried t;
  RunOptions o;
  o.races = races;
  o.backwards = backwards, o.jitter = jitter, o.turns = limit_;
  o.folders = options_.folders, o.module_path = s.of.path;
  t.ran = run(s.b(), s.of.m, *s.f, inputs, o, t.outputs, t.fault);
  turns_ += t.fault.endless ? limit_ : t.fault.turns;
  return t;
}

// Compares what both gave; where that is not the same, runs them with noise until the differences are explained.
Verdict Pair::judge(const Tried &x, const Tried &y, const std::vector<Array> &inputs, bool backwards) {
  Verdict v;
  v.loose.resize(x.outputs.size());
  for (size_t i = 0; i < x.outputs.size(); i++)
    if (auto c = mlc::compare(y.outputs[i], x.outputs[i], Tolerance::exact(true)); !c.same() && v.exact)
      v.exact = v.same = false, v.output = i, v.worst = c;
  if (v.exact || options_.strict || !v.worst.mismatch.empty()) return v;
  // Runs with noise of each side: so many at least, so many where a difference is 1000 times what they explain (that
  // a value jumps shows in some of them only), so many at most. A sum with one rounding alone shows nothing in half of
  // them: where nothing is explained all are done.
  constexpr uint64_t kFirst = 3, kClear = 8, kMost = 24;
  Spread of_x(x.outputs), of_y(y.outputs);
  for (uint64_t n = 1; n <= kMost && !v.same; n++) {
    if (n > kClear && limit_ && turns_ > options_.turns) break;
    Tried p = try_run(a_, inputs, false, n), q = try_run(b_, inputs, backwards, kMost + n);
    of_x.include(p.ran, p.outputs), of_y.include(q.ran, q.outputs);
    if (n >= kFirst) v = weigh(x, y, of_x, of_y);
    double far = distance(x.outputs[v.output].type, v.worst.found, v.worst.expected);
    if (n >= kClear && !v.same && v.allowed > 0 && far > 1000 * v.allowed) break;
  }
  return v;
}

Verdict Pair::weigh(const Tried &x, const Tried &y, const Spread &of_x, const Spread &of_y) const {
  Verdict v;
  v.exact = false;
  for (size_t i = 0; i < x.outputs.size(); i++) {
    const Array &value = x.outputs[i];
    auto each = allowed(i, value, of_x, of_y, !licences_.empty(), licences_.count("qdq"));
    Comparison c = mlc::compare(y.outputs[i], value, Tolerance::close(options_.rtol, options_.atol, &each));
    v.loose.push_back(loose(value, each));
    if (!v.same || (c.same() && v.worst.worst_at >= 0 && c.worst <= v.worst.worst)) continue;
    v.same = c.same(), v.output = i, v.worst = c;
    int64_t at = c.same() ? c.worst_at : c.first;
    if (at >= 0)
      v.allowed = each[size_t(at)] + options_.atol + options_.rtol * std::fabs(to_double(value.type, value.get(at)));
  }
  return v;
}

std::string Pair::where(const std::map<std::string, int64_t> &sizes, bool backwards) const {
  std::string s;
  for (const std::string &n : size_names(a_.b(), *a_.f)) s += fmt::format("{}{} = {}", s.empty() ? " at " : ", ", n, sizes.at(n));
  if (backwards) s += s.empty() ? " with order-free loops backwards" : ", order-free loops backwards";
  return s;
}

// Only one of both ran, or a constant has no value.
EquivReport Pair::said(const Tried &x, const Tried &y, const std::string &where) const {
  bool second = y.fault.constant || x.ran;
  const Tried &bad = second ? y : x;
  EquivReport r = refuse(bad.fault.message);
  if (!bad.fault.constant) r.text += fmt::format(" (the other module runs{})", where);
  r.side = second, r.at = bad.fault.at;
  return r;
}

bool has_marked_loops(const Module &m) {
  bool found = false;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i); f && f->func == FuncKind::Kernel)
      each_stmt(f->body, [&](const Stmt *s) {
        auto *l = as<For>(s);
        found |= l && l->loop != LoopKind::Serial && l->loop != LoopKind::Unroll;
      });
  return found;
}

EquivReport Pair::compare() {
  if (std::string s = mismatch(a_, b_); !s.empty()) return refuse("the functions have different signatures: " + s);
  Sizes draws(a_.b(), *a_.f, options_.sizes);
  draws.add_tiles(a_.of.m, *a_.f), draws.add_tiles(b_.of.m, *b_.f);
  std::mt19937_64 random{uint64_t(options_.seed)};
  std::mt19937_64 numbers{uint64_t(options_.seed) ^ 0x5851f42d4c957f2d};  // of the field
  int64_t exact = 0, close = 0, equal = 0, compared = 0, refused = 0, drawn = 0;
  double largest = 0, bound = 0;
  std::vector<int64_t> elements, undecided;  // by output
  std::string refusal;
  bool marked = has_marked_loops(b_.of.m);
  int64_t traced = 0;
  bool small = false;  // larger sizes took too many turns
  // While both refuse nearly all inputs, more are tried.
  constexpr int64_t kPatience = 8, kEnough = 4;
  auto more = [&](int64_t turn) {
    bool few = drawn && refused && compared < std::min(kEnough, options_.runs);
    return turn < options_.runs || (few && turn < kPatience * options_.runs);
  };
  for (int64_t turn = 0; more(turn); turn++) {
    constexpr int64_t kSure = 2;  // runs whatever they take
    if ((exact + close >= kSure || options_.bounded) && turns_ > options_.turns) break;
    // Sizes: the first that no input is too large for.
    std::map<std::string, int64_t> sizes;
    std::vector<InputSpec> specs;
    bool found = false;
    for (int tries = 0; tries < 64 && !found; tries++) {
      std::string error;
      sizes = draws.draw(random, turn == 0 && tries == 0, small || tries >= 32);
      specs.clear();
      double total = 0;
      found = input_specs(a_.b(), *a_.f, sizes, specs, error);
      for (const InputSpec &s : specs) total += double(std::max<int64_t>(0, element_count(s.dims)));
      found &= !draws.free() || total <= double(options_.elements);
    }
    if (!found) continue;
    drawn++;
    bool odd = turn % 6 == 2, backwards = turn % 2 == 1;
    // A run of drawn sizes may take an eighth of all turns; one that takes more is left out, and smaller ones follow.
    limit_ = draws.free() || options_.bounded ? std::max<int64_t>(options_.turns / 8, 1) : 0;
    // Integers may be subscripts: in most runs those of some dimension, negative ones too, else 0 .. 3.
    Inputs draw(a_.b(), a_.of.m, specs, sizes, random, odd);
    // What is chosen by size, as a maximum is, stands at the end in some runs, in front in others; where nan is rare, it
    // is seen who takes it.
    constexpr Inputs::Order kOrders[] = {Inputs::Any,    Inputs::Any,     Inputs::Any,
                                         Inputs::Rising, Inputs::Falling, Inputs::Lone};
    Inputs::Order order = kOrders[turn % 6];
    std::vector<Array> inputs = draw.draw(turn % 3 != 0, order);
    Tried x = try_run(a_, inputs, false), y = try_run(b_, inputs, backwards);
    if (!x.ran && !y.ran && draw.subscripts) {
      inputs = draw.draw(false, order);
      x = try_run(a_, inputs, false), y = try_run(b_, inputs, backwards);
    }
    if (x.fault.endless || y.fault.endless) {
      bool again = !small;
      small = true;
      // At the smallest sizes a side that goes on and on where the other one ends does not end at all.
      if (x.ran != y.ran && !again) {
        limit_ *= 8;
        (x.ran ? y : x) = x.ran ? try_run(b_, inputs, backwards) : try_run(a_, inputs, false);
        if (x.ran != y.ran) return said(x, y, where(sizes, backwards));
      } else {
        if (!x.ran && !y.ran && refusal.empty()) refusal = x.fault.message + where(sizes, backwards);
        continue;
      }
    }
    if (x.ran != y.ran || x.fault.constant || y.fault.constant) return said(x, y, where(sizes, backwards));
    if (!x.ran) {
      refused++;
      if (refusal.empty()) refusal = x.fault.message + where(sizes, backwards);
      continue;
    }
    // A few short runs of B look for turns of its loops that must not come together.
    constexpr int64_t kTraced = 4, kShort = 1000000;
    if (marked && traced < kTraced && y.fault.turns <= kShort) {
      traced++;
      if (Tried t = try_run(b_, inputs, backwards, 0, true); !t.ran && t.fault.race) {
        EquivReport r = refuse(t.fault.message + where(sizes, backwards));
        r.side = 1, r.at = t.fault.at;
        return r;
      }
    }
    Verdict v = judge(x, y, inputs, backwards);
    if (!v.same) {
      std::string limit = v.worst.mismatch.empty() ? fmt::format(" (allowed: {:.3g})", v.allowed) : "";
      std::string output(a_.b().text(outputs_of(*a_.f)[v.output]->name));
      std::string what = describe(v.worst, output, x.outputs[v.output]);
      return refuse(fmt::format("{} against {}: {}{}{}{}", b_.of.name, a_.of.name, what, limit, where(sizes, backwards),
                                nodes_behind(b_, v.output)));
    }
    std::string difference;
    Algebra known = v.exact || options_.strict ? Algebra::Unknown : algebra(inputs, backwards, numbers, &difference);
    if (known == Algebra::Different)
      return refuse(fmt::format("{} against {}: modulo {}, {}{}{}", b_.of.name, a_.of.name, kFieldPrime, difference,
                                where(sizes, backwards), nodes_behind(b_, v.output)));
    equal += known == Algebra::Equal;
    bool any = std::any_of(x.outputs.begin(), x.outputs.end(), [](const Array &o) { return o.size() > 0; });
    compared += any || x.outputs.empty();
    (v.exact ? exact : close)++;
    if (!v.exact && v.worst.worst >= largest) largest = v.worst.worst, bound = v.allowed;
    elements.resize(x.outputs.size()), undecided.resize(x.outputs.size());
    for (size_t i = 0; i < x.outputs.size(); i++)
      elements[i] += x.outputs[i].size(), undecided[i] += v.loose[i];
  }
  if (!exact && !close)
    return refuse(drawn ? fmt::format("nothing was compared: both modules refuse every input, such as: {}", refusal)
                        : "no sizes give inputs of at most --elements");
  if (!compared) {
    EquivReport r = refuse(fmt::format("nothing was compared: all outputs are empty at the sizes that {}",
                                       refusal.empty() ? "were drawn" : "neither refuses, the others with: " + refusal));
    r.empty = refusal.empty();
    return r;
  }
  std::string text = fmt::format("same: {} runs exact", exact);
  if (close)
    text += fmt::format(", {} within the bound of reordered sums (largest difference {:.2g}, allowed {:.2g})", close,
                        largest, bound);
  if (equal) text += fmt::format(", {} of them equal modulo {}", equal, kFieldPrime);
  if (refused) text += fmt::format(", {} refused by both", refused);
  for (size_t i = 0; i < elements.size(); i++) {
    std::string output(a_.b().text(outputs_of(*a_.f)[i]->name));
    if (2 * undecided[i] > elements[i] && equal < close)
      return refuse(fmt::format("nothing is known of {}: {} of {} elements hang on how sums are rounded", output,
                                undecided[i], elements[i]));
    if (undecided[i])
      text += fmt::format("; {} of {} elements of {} hang on how sums are rounded", undecided[i], elements[i], output);
  }
  return {true, text, "", -1, kNowhere};
}

bool can_run(const Func &f) {
  return f.func == FuncKind::Graph || f.func == FuncKind::Group || f.func == FuncKind::Kernel;
}

// Functions that no other one calls.
std::vector<const Func *> outermost(const Module &m) {
  std::set<Sym> inner;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i)) {
      each_stmt(f->body, [&](const Stmt *s) {
        if (auto *c = as<CallStmt>(s); c && c->call->global) inner.insert(c->call->callee);
        auto *l = as<Let>(s);
        if (auto *c = as<Call>(l ? l->value : nullptr); c && c->global) inner.insert(c->callee);
      });
    }
  std::vector<const Func *> out;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i); f && can_run(*f) && !inner.count(f->name)) out.push_back(f);
  return out;
}

std::string bare(const std::string &name) { return name.starts_with("@") ? name.substr(1) : name; }

}  // namespace

EquivReport equiv(const EquivSide &a, const EquivSide &b, const EquivOptions &options) {
  auto fail = [](std::string text) { return EquivReport{false, std::move(text), "", -1, kNowhere}; };
  std::vector<std::pair<const Func *, const Func *>> pairs;
  std::string first = bare(options.entry), second = bare(options.with.empty() ? options.entry : options.with);
  auto named = [](const EquivSide &s, const std::string &name) {
    return name.empty() ? entry_to_run(s.b, s.m) : s.m.func(s.b.sym(name));
  };
  const Func *f = named(a, first), *g = named(b, second);
  if (f && g) {
    pairs.push_back({f, g});
  } else if (first.empty() && second.empty() && !f) {
    std::vector<const Func *> all = outermost(a.m), others = outermost(b.m);
    if (all.empty()) return fail(fmt::format("{}: no graph and no kernel", a.name));
    for (const Func *k : all) {
      std::string name(a.b.text(k->name));
      const Func *other = b.m.func(b.b.sym(name));
      if (all.size() == 1 && others.size() == 1) other = others[0];
      if (!other || !can_run(*other)) return fail(fmt::format("{}: no function @{}", b.name, name));
      pairs.push_back({k, other});
    }
  } else {
    const EquivSide &side = f ? b : a;
    const std::string &name = f ? second : first;
    return fail(name.empty() ? fmt::format("{}: no graph, nor one kernel; --entry NAME names what to compare", side.name)
                             : fmt::format("{}: no function @{}", side.name, name));
  }
  for (auto &[size, n] : options.sizes) {
    std::vector<std::string> known;
    for (auto [x, y] : pairs)
      for (const std::string &s : size_names(a.b, *x))
        if (std::find(known.begin(), known.end(), s) == known.end()) known.push_back(s);
    if (std::find(known.begin(), known.end(), size) != known.end()) continue;
    EquivReport r;
    r.usage = no_such_size(size, a.b.text(pairs[0].first->name), known);
    return r;
  }
  EquivReport all{true, "", "", -1, kNowhere}, empty;
  size_t compared = 0;
  for (auto [x, y] : pairs) {
    EquivReport r = Pair(options, Side{a, x}, Side{b, y}).compare();
    r.text = (pairs.size() > 1 ? fmt::format("@{}: ", a.b.text(x->name)) : "") + r.text;
    if (!r.same && !r.empty) return r;
    compared += r.same;
    all.text += (all.text.empty() ? "" : "\n") + r.text;
    if (r.empty && !empty.empty) empty = r;
  }
  return compared ? all : empty;
}

}  // namespace mlc
