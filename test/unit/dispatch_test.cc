// Every kernel is what its own text describes: an extern with the same loops, other names, and parameters turned round.
#include <gtest/gtest.h>

#include "check/check.h"
#include "dispatch/dispatch.h"
#include "ir/edit.h"
#include "ops/ops.h"
#include "text/text.h"

namespace mlc {
namespace {

class Dispatch : public ::testing::Test {
 protected:
  Build b;

  Module module(const std::string &text) {
    auto *source = new Source(Source::from_string("test", text));
    Diag diag("test", source);
    Module m;
    EXPECT_TRUE(read(b, *source, m, diag) && check(b, m, diag)) << diag.messages().at(0) << "\n" << text;
    return m;
  }

  // The text after the pass.
  std::string dispatched(Module m, const std::vector<Module> &libraries = {}) {
    Diag diag("test");
    dispatch(b, m, libraries, [](const Func &) { return true; }, diag);
    std::string text = print(b, m);
    module(text);
    return text;
  }
};

// The kernel's names with `other.` in front of them: buffers, loops, dimensions.
const Func *renamed(Build &b, const Func &k) {
  std::unordered_set<Sym> names;
  collect_all_names(&k, names);
  Substitution all;
  for (Sym s : names) all[s] = b.name(b.sym("other." + std::string(b.text(s))));
  auto other = [&](Sym s) { return to<Name>(all.at(s)).name; };
  auto def = [&](Def d) { return Def{other(d.name), d.at, substitute(b, d.type, all)}; };
  Func f = k;
  std::vector<Sym> dims;
  for (Sym d : k.dims) dims.push_back(other(d));
  std::vector<Param> params;
  for (size_t i = k.params.size(); i-- > 0;) params.push_back({k.params[i].mode, def(k.params[i].def)});
  std::vector<Def> results;
  for (const Def &d : k.results) results.push_back(def(d));
  f.func = FuncKind::Extern, f.name = b.sym("library"), f.notes = {};
  f.dims = b.list(dims), f.params = b.list(params), f.results = b.list(results);
  f.parts = b.one(Part{true, kNowhere, {}, substitute(b, k.body, all)});
  f.body = {};
  return b.make(f);
}

TEST_F(Dispatch, EveryKernelIsWhatItsTextDescribes) {
  constexpr const char *kBodies[] = {
      "kernel @k[n, m](x: f32[n, m], w: f32[m]) -> (y: f32[n]) {\n"
      "  compute y[i in n] = sum(x[i, k] * w[k] for k in m) + 1.0\n}\n",
      "kernel @k[n](x: f32[n, 10]) -> (y: f32[n, 10]) {\n"
      "  alloc m: f32[n]\n  compute m[i in n] = max(x[i, j] for j in 10)\n"
      "  alloc s: f32[n]\n  compute s[i in n] = sum(exp(x[i, j] - m[i]) for j in 10)\n"
      "  compute y[i in n, j in 10] = exp(x[i, j] - m[i]) / s[i]\n}\n",
      "kernel @k[n](x: f32[n], ids: i64[4]) -> (y: f32[4], z: f32[n]) {\n"
      "  for i in 4 {\n    r: index = index(ids[i])\n    assume r >= 0 && r < n\n    y[i] = x[r]\n  }\n"
      "  for i in n {\n    if i < 3 {\n      z[i] = x[i]\n    } else {\n      z[i] = x[i - 1] * x[i]\n    }\n  }\n}\n",
      "kernel @k[n, h](x: f32[n, 2 * h], a: f32[2 * h]) -> (y: f32[n, h]) {\n"
      "  compute y[i in n, j in h] = where(x[i, 2 * j + 1] > 0.0, x[i, 2 * j], a[2 * j])\n}\n",
  };
  for (const char *body : kBodies) {
    SCOPED_TRACE(body);
    Module m = module(std::string("mlc 1\n\n") + body);
    const Func *k = m.func(b.sym("k"));
    std::string params, args, results;
    for (const Param &p : k->params) {
      params += (params.empty() ? "" : ", ") + print_name(b, p.def.name) + ": " + print(b, p.def.type);
      args += (args.empty() ? "" : ", ") + print_name(b, p.def.name);
    }
    for (const Def &d : k->results)
      results += (results.empty() ? "" : ", ") + print_name(b, d.name) + ": " + print(b, d.type);
    std::string dims;
    for (Sym d : k->dims) dims += (dims.empty() ? "" : ", ") + print_name(b, d);
    m = module(fmt::format("mlc 1\n\n{}\ngraph @main[{}]({}) -> ({}) {{\n  {} = @k({})\n}}\n", body, dims, params,
                           results, results, args));
    Module library;
    library.add(renamed(b, *m.func(b.sym("k"))));
    std::string text = dispatched(m, {library});
    EXPECT_NE(text.find("= @library("), text.npos) << text;
    EXPECT_EQ(text.find("kernel @k"), text.npos);
  }
}

// A tree of 63 sums has 2^63 orders, and none of them fits: there is an end to trying them.
TEST_F(Dispatch, ManyOrders) {
  std::function<std::string(int, int)> sum = [&](int low, int n) {
    return n == 1 ? fmt::format("x[{}]", low) : fmt::format("({} + {})", sum(low, n / 2), sum(low + n / 2, n / 2));
  };
  Module m = module(fmt::format("mlc 1\n\nextern @e(x: f32[64]) -> (y: f32[]) {{\n  desc {{\n    {}\n  }}\n}}\n\n"
                                "kernel @k(x: f32[64]) -> (y: f32[]) {{\n  {}\n}}\n\n"
                                "graph @main(x: f32[64]) -> (y: f32[]) {{\n  y: f32[] = @k(x)\n}}\n",
                                "y[] = " + sum(0, 64), "y[] = " + sum(0, 32) + " + " + sum(0, 32)));
  EXPECT_NE(dispatched(m).find("= @k(x)"), std::string::npos);
}

}  // namespace
}  // namespace mlc
