// mlc-equiv: are two modules the same program? Both are run in the interpreter on shared inputs of several sizes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "check/check.h"
#include "data/compare.h"
#include "interp/interp.h"
#include "interp/sample.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "spread.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr OptionSpec kOptions[] = {
    {"entry", "NAME", "compare this function; without it @main, the first graph, or the only kernel"},
    {"with", "NAME", "what it is called in the second module, if something else"},
    {"bind", "NAME=N", "fix a size; the others are drawn from 0 1 2 3 7 17 48 625; repeated"},
    {"seed", "N", "another N, other sizes and inputs; 0"},
    {"runs", "N", "draws of sizes and inputs; 12"},
    {"elements", "N", "the most elements that inputs of drawn sizes may have; 1000000"},
    {"rtol", "X", "accept differences up to X times the value"},
    {"atol", "X", "accept differences up to X"},
    {"strict", nullptr, "accept no difference: every bit is the same"},
    {"include,I", "DIR", "look for weight files here first; repeated"},
};

struct Side {
  std::string path;
  Source source;
  Build *b = new Build;  // the process is the lifetime of the nodes
  Module m;
  const Func *f = nullptr;
  std::set<std::string> licences;
};

int refuse(const std::string &message) {
  fprintf(stderr, "mlc-equiv: error: %s\n", message.c_str());
  return 1;
}

bool load(Side &s, const std::string &path, const std::string &wanted) {
  s.path = path;
  s.source = Source::open(path);
  if (!s.source.error.empty()) {
    fprintf(stderr, "%s: error: %s [mlc-equiv]\n", s.source.name.c_str(), s.source.error.c_str());
    return false;
  }
  Diag diag("equiv", &s.source);
  bool ok = read(*s.b, s.source, s.m, diag) && check(*s.b, s.m, diag);
  diag.print(stderr);
  if (!ok) return false;
  std::string name = wanted.starts_with("@") ? wanted.substr(1) : wanted;
  s.f = name.empty() ? entry_to_run(*s.b, s.m) : s.m.func(s.b->sym(name));
  for (const Item *i : s.m.items) {
    auto *f = as<Func>(i);
    if (!f) continue;
    if (auto *l = as<List>(attr(*s.b, f->notes.attrs, "licence")))
      for (const Expr *e : l->items)
        if (auto *t = as<Str>(e)) s.licences.emplace(t->value);
  }
  if (!s.f)
    return refuse(name.empty() ? fmt::format("{}: no graph, nor one kernel; --entry NAME names what to compare", path)
                               : fmt::format("{}: no function @{}", path, name)),
           false;
  return true;
}

// Parameters that a caller gives, and results, must agree in number, element type and rank.
std::string mismatch(const Side &x, const Side &y) {
  auto params = [](const Side &s) {
    std::vector<const Def *> list;
    for (const Param &p : s.f->params)
      if (p.mode != Mode::Scratch) list.push_back(&p.def);
    return list;
  };
  auto results = [](const Side &s) {
    std::vector<const Def *> list;
    for (const Def &d : s.f->results) list.push_back(&d);
    for (const Param &p : s.f->params)
      if (p.mode == Mode::Inout) list.push_back(&p.def);
    return list;
  };
  auto differ = [&](const char *what, const std::vector<const Def *> &a,
                    const std::vector<const Def *> &b) -> std::string {
    if (a.size() != b.size()) return fmt::format("{} {}s against {}", a.size(), what, b.size());
    for (size_t i = 0; i < a.size(); i++) {
      const Type *t = a[i]->type, *u = b[i]->type;
      if (t->elem != u->elem || t->rank() != u->rank() || t->tensor != u->tensor)
        return fmt::format("{} {} is {} against {}", what, i, print(*x.b, t), print(*y.b, u));
    }
    return "";
  };
  std::string s = differ("input", params(x), params(y));
  return s.empty() ? differ("output", results(x), results(y)) : s;
}

struct Tried {
  bool ran = false;
  std::vector<Array> outputs;
  RunFault fault;
};

Tried try_run(const Side &s, const std::vector<Array> &inputs, bool backwards, const Options &options,
              uint64_t jitter = 0) {
  Tried t;
  RunOptions o;
  o.backwards = backwards, o.jitter = jitter;
  o.folders = options.all("include"), o.module_path = s.path;
  t.ran = run(*s.b, s.m, *s.f, inputs, o, t.outputs, t.fault);
  return t;
}

struct Verdict {
  bool exact = true, same = true;
  size_t output = 0;            // where the largest difference is, or the first that is too large
  Comparison worst;
  double allowed = 0;           // there
  std::vector<int64_t> loose;   // by output
};

// Compares what both gave; where that is not the same, runs them with noise until the differences are explained.
class Judge {
 public:
  Judge(const Options &options, const Side &a, const Side &b) : options_(options), a_(a), b_(b) {
    licences_ = a.licences;
    licences_.insert(b.licences.begin(), b.licences.end());
    rtol_ = options.real("rtol", 0);
    atol_ = options.real("atol", 0);
  }

  Verdict judge(const Tried &x, const Tried &y, const std::vector<Array> &inputs, bool backwards) const {
    Verdict v;
    v.loose.resize(x.outputs.size());
    for (size_t i = 0; i < x.outputs.size(); i++)
      if (auto c = compare(y.outputs[i], x.outputs[i], Tolerance::exact(true)); !c.same() && v.exact)
        v.exact = v.same = false, v.output = i, v.worst = c;
    if (v.exact || options_.has("strict") || !v.worst.mismatch.empty()) return v;
    // Runs with noise of each side: so many at least, so many where a difference is 1000 times what they explain (that
    // a value jumps shows in some of them only), so many at most.
    constexpr uint64_t kFirst = 3, kClear = 8, kMost = 24;
    Spread of_x(x.outputs), of_y(y.outputs);
    for (uint64_t n = 1; n <= kMost && !v.same; n++) {
      Tried p = try_run(a_, inputs, false, options_, n), q = try_run(b_, inputs, backwards, options_, kMost + n);
      of_x.include(p.ran, p.outputs), of_y.include(q.ran, q.outputs);
      if (n >= kFirst) v = weigh(x, y, of_x, of_y);
      double far = distance(x.outputs[v.output].type, v.worst.found, v.worst.expected);
      if (n >= kClear && !v.same && far > 1000 * v.allowed) break;
    }
    return v;
  }

 private:
  Verdict weigh(const Tried &x, const Tried &y, const Spread &of_x, const Spread &of_y) const {
    Verdict v;
    v.exact = false;
    for (size_t i = 0; i < x.outputs.size(); i++) {
      const Array &value = x.outputs[i];
      auto each = allowed(i, value, of_x, of_y, !licences_.empty(), licences_.count("qdq"));
      Comparison c = compare(y.outputs[i], value, Tolerance::close(rtol_, atol_, &each));
      v.loose.push_back(loose(value, each));
      if (!v.same || (c.same() && v.worst.worst_at >= 0 && c.worst <= v.worst.worst)) continue;
      v.same = c.same(), v.output = i, v.worst = c;
      int64_t at = c.same() ? c.worst_at : c.first;
      if (at >= 0) v.allowed = each[size_t(at)] + atol_ + rtol_ * std::fabs(to_double(value.type, value.get(at)));
    }
    return v;
  }

  const Options &options_;
  const Side &a_, &b_;
  std::set<std::string> licences_;
  double rtol_, atol_;
};

std::string output_name(const Side &s, size_t i) {
  const Func &f = *s.f;
  if (i < f.results.size()) return std::string(s.b->text(f.results[i].name));
  i -= f.results.size();
  for (const Param &p : f.params)
    if (p.mode == Mode::Inout && !i--) return std::string(s.b->text(p.def.name));
  return "";
}

// What a function is run on.
struct Inputs {
  const Side &side;
  const std::vector<InputSpec> &specs;
  const std::map<std::string, int64_t> &sizes;
  std::mt19937_64 &random;
  bool odd;
  bool subscripts = false;  // some were drawn

  std::vector<Array> operator()(bool want_subscripts) {
    std::vector<int64_t> dims = extents();
    std::vector<Array> inputs;
    for (const InputSpec &s : specs) {
      bool integers = is_int(s.type) && info(s.type).bits >= 32;
      if (!s.param->def.type->tensor && s.type == DType::Index) {
        inputs.emplace_back(DType::I64, std::vector<int64_t>{});
        inputs.back().set(0, Scalar::of_int(sizes.at(std::string(side.b->text(s.param->def.name)))));
      } else if (integers && is_signed(s.type) && want_subscripts && !dims.empty()) {
        inputs.push_back(sample_subscripts(s.type, s.dims, random, dims[random() % dims.size()]));
        subscripts = true;
      } else {
        inputs.push_back(sample(s.type, s.dims, random, odd, integers));
      }
    }
    return inputs;
  }

  // Dimensions that a subscript may be one of: those of inputs and of constants.
  std::vector<int64_t> extents() const {
    std::set<int64_t> all;
    for (const InputSpec &s : specs)
      for (int64_t d : s.dims) all.insert(d);
    for (const Item *i : side.m.items)
      if (auto *c = as<Const>(i))
        for (const Expr *e : c->type->dims)
          if (int64_t d; int_value(e, &d)) all.insert(d);
    return {all.upper_bound(0), all.end()};
  }
};

int equiv(const Options &options) {
  if (options.files.size() != 2)
    return fprintf(stderr, "mlc-equiv: error: expected two files A B, found %zu\n", options.files.size()), 2;
  std::map<std::string, int64_t> fixed = options.sizes();
  int64_t seed = options.whole("seed", 0), runs = options.whole("runs", 12, 1);
  int64_t most = options.whole("elements", 1000000, 0);
  for (const char *tolerance : {"rtol", "atol"}) options.real(tolerance, 0);
  Side a, b;
  std::string name = options.get("entry");
  if (!load(a, options.files[0], name) || !load(b, options.files[1], options.get("with", name))) return 1;
  if (std::string s = mismatch(a, b); !s.empty()) return refuse("the functions have different signatures: " + s);

  std::vector<std::string> names = size_names(*a.b, *a.f);
  for (auto &[size, n] : fixed)
    if (std::find(names.begin(), names.end(), size) == names.end())
      throw UsageError{no_such_size(size, a.b->text(a.f->name), names)};
  std::mt19937_64 random{uint64_t(seed)};
  Judge judge(options, a, b);
  int64_t exact = 0, close = 0, refused = 0, drawn = 0;
  double largest = 0, bound = 0;
  std::vector<int64_t> elements, undecided;  // by output
  std::string refusal;
  for (int64_t turn = 0; turn < runs; turn++) {
    // Sizes: the first that no input is too large for.
    std::map<std::string, int64_t> sizes;
    std::vector<InputSpec> specs;
    bool found = false;
    for (int tries = 0; tries < 64 && !found; tries++) {
      constexpr int64_t kSizes[] = {1, 2, 3, 7, 17, 48, 625, 0};
      sizes = fixed;
      std::string error;
      for (const std::string &n : names)
        if (!fixed.count(n)) sizes[n] = turn == 0 && tries == 0 ? 3 : kSizes[random() % (tries < 32 ? 8 : 4)];
      specs.clear();
      double total = 0;
      found = input_specs(*a.b, *a.f, sizes, specs, error);
      for (const InputSpec &s : specs) total += double(std::max<int64_t>(0, element_count(s.dims)));
      bool free = std::any_of(names.begin(), names.end(), [&](const std::string &n) { return !fixed.count(n); });
      found &= !free || total <= double(most);
    }
    if (!found) continue;
    drawn++;
    bool odd = turn % 3 == 2, backwards = turn % 2 == 1;
    std::string where;
    for (const std::string &n : names) where += fmt::format("{}{} = {}", where.empty() ? " at " : ", ", n, sizes[n]);
    if (backwards) where += where.empty() ? " with order-free loops backwards" : ", order-free loops backwards";
    // Integers may be subscripts: in most runs those of some dimension, negative ones too, else 0 .. 3.
    Inputs draw{a, specs, sizes, random, odd};
    std::vector<Array> inputs = draw(turn % 3 != 0);
    Tried x = try_run(a, inputs, false, options), y = try_run(b, inputs, backwards, options);
    if (!x.ran && !y.ran && draw.subscripts) {
      inputs = draw(false);
      x = try_run(a, inputs, false, options), y = try_run(b, inputs, backwards, options);
    }
    if (x.ran != y.ran || x.fault.constant || y.fault.constant) {
      bool second = y.fault.constant || x.ran;
      const Tried &bad = second ? y : x;
      const Side &side = second ? b : a;
      Diag diag("equiv", &side.source);
      if (bad.fault.constant) diag.error(bad.fault.at, "{}", bad.fault.message);
      else diag.error(bad.fault.at, "{} (the other module runs{})", bad.fault.message, where);
      diag.print(stderr);
      return 1;
    }
    if (!x.ran) {
      refused++;
      if (refusal.empty()) refusal = x.fault.message + where;
      continue;
    }
    Verdict v = judge.judge(x, y, inputs, backwards);
    if (!v.same) {
      std::string limit = v.worst.mismatch.empty() ? fmt::format(" (allowed: {:.3g})", v.allowed) : "";
      std::string what = describe(v.worst, output_name(a, v.output), x.outputs[v.output]);
      return refuse(fmt::format("{} against {}: {}{}{}", b.path, a.path, what, limit, where));
    }
    (v.exact ? exact : close)++;
    if (!v.exact && v.worst.worst >= largest) largest = v.worst.worst, bound = v.allowed;
    elements.resize(x.outputs.size()), undecided.resize(x.outputs.size());
    for (size_t i = 0; i < x.outputs.size(); i++)
      elements[i] += x.outputs[i].size(), undecided[i] += v.loose[i];
  }
  if (!exact && !close)
    return refuse(drawn ? fmt::format("nothing was compared: both modules refuse every input, such as: {}", refusal)
                        : "no sizes give inputs of at most --elements");
  std::string text = fmt::format("same: {} runs exact", exact);
  if (close)
    text += fmt::format(", {} within the bound of reordered sums (largest difference {:.2g}, allowed {:.2g})", close,
                        largest, bound);
  if (refused) text += fmt::format(", {} refused by both", refused);
  for (size_t i = 0; i < elements.size(); i++) {
    if (2 * undecided[i] > elements[i])
      return refuse(fmt::format("nothing is known of {}: {} of {} elements hang on how sums are rounded",
                                output_name(a, i), undecided[i], elements[i]));
    if (undecided[i])
      text += fmt::format("; {} of {} elements of {} hang on how sums are rounded", undecided[i], elements[i],
                          output_name(a, i));
  }
  printf("%s\n", text.c_str());
  return 0;
}

}  // namespace
}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv, {"equiv", "Are two modules the same program", "A B", mlc::kOptions, mlc::equiv});
}
