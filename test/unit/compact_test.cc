// mlc-compact on random schedules: results keep their bits, and every buffer is as small as its tile.
#include <gtest/gtest.h>

#include <random>

#include "compact/compact.h"
#include "emit_program.h"
#include "interp/sample.h"
#include "ir/walk.h"
#include "pass/pass.h"

namespace mlc {

extern const Pass pass_plan;

namespace {

// A chain of stages over rows, t0 -> t1 -> .. -> y: each reads a window of rows of the one before it, or whole rows.
//   for i0 in (n + F - 1) // F {
//     for i1 in F + halo, j in 12 { block t0 {..} }     computed where it is needed, with the rows that the next ones read
//     for i1 in F, j0 in 4, j1 in 4 { block y {..} }
//   }
class Chain {
 public:
  explicit Chain(uint32_t seed) : r_(seed) {}

  struct Tile {
    std::string buffer;
    int64_t rows, columns;  // what one turn needs; 0: all
  };
  std::vector<Tile> tiles;
  bool symbolic = false;

  std::string text() {
    size_t stages = 2 + r_() % 3;
    symbolic = r_() % 2;
    rows_ = 5 + int64_t(r_() % 14), tile_ = 1 + int64_t(r_() % 6), column_tile_ = 1 + int64_t(r_() % 7);
    for (size_t s = 0; s < stages; s++) {
      int64_t window = 1 + int64_t(r_() % 3);
      bool product = r_() % 4 == 0;
      stages_.push_back({product ? 1 : window, product, product || r_() % 2, 0, 0, r_() % 3 == 0});
    }
    for (size_t s = stages - 1; s-- > 0;) stages_[s].halo = stages_[s + 1].halo + stages_[s + 1].window - 1;
    int64_t input_halo = stages_[0].halo + stages_[0].window - 1;
    // Levels never fall along the chain; below a column tile nobody reads whole rows.
    int level = 0;
    for (Stage &s : stages_) {
      s.level = level = std::max<int>(level, int(r_() % 3));
    }
    stages_.back().level = level = std::max(level, 1);
    for (size_t s = 1; s < stages; s++)
      if (stages_[s].product) stages_[s - 1].level = std::min(stages_[s - 1].level, 1);
    for (size_t s = stages; s-- > 1;) stages_[s - 1].level = std::min(stages_[s - 1].level, stages_[s].level);
    parallel_ = r_() % 3 == 0;

    std::string n = symbolic ? "n" : std::to_string(rows_);
    std::string allocs[2];
    for (size_t s = 0; s + 1 < stages; s++) {
      bool inner = parallel_ && stages_[s].level > 0 && stages_[s].halo > 0;
      std::string scope = r_() % 2 ? " in local" : "";
      allocs[inner] += (inner ? "    alloc " : "  alloc ") + name(s) + ": f32[" + size(s) + ", 12]" + scope + "\n";
      if (stages_[s].level > 0)
        tiles.push_back({name(s), tile_ + stages_[s].halo, stages_[s].level == 2 ? column_tile_ : 12});
    }
    std::string out = "mlc 1\n\nkernel @main" + std::string(symbolic ? "[n]" : "") + "(x: f32[" + plus(n, input_halo) +
                      ", 12], w: f32[12, 12]) -> (y: f32[" + n + ", 12]) {\n" + allocs[0];
    for (size_t s = 0; s < stages; s++)
      if (stages_[s].level == 0) out += stage(s, "  ");
    out += "  for i0 in " + ceil(n, tile_) + (parallel_ ? " parallel" : "") + " {\n" + allocs[1];
    for (size_t s = 0; s < stages; s++)
      if (stages_[s].level == 1) out += stage(s, "    ");
    bool columns = false;
    for (Stage &s : stages_) columns |= s.level == 2;
    if (columns) {
      out += "    for j0 in " + ceil("12", column_tile_) + " {\n";
      for (size_t s = 0; s < stages; s++)
        if (stages_[s].level == 2) out += stage(s, "      ");
      out += "    }\n";
    }
    return out + "  }\n}\n";
  }
  int64_t input_rows(int64_t n) const { return n + stages_[0].halo + stages_[0].window - 1; }
  int64_t rows() const { return rows_; }

 private:
  struct Stage {
    int64_t window;
    bool product, reduces;
    int64_t halo;
    int level;
    bool split_init;
  };
  std::string name(size_t s) const { return s + 1 == stages_.size() ? "y" : "t" + std::to_string(s); }
  static std::string plus(const std::string &n, int64_t k) {
    if (!k) return n;
    return isdigit(n[0]) ? std::to_string(std::stoll(n) + k) : n + " + " + std::to_string(k);
  }
  static std::string ceil(const std::string &n, int64_t f) {
    if (isdigit(n[0])) return std::to_string((std::stoll(n) + f - 1) / f);
    return "(" + n + " + " + std::to_string(f - 1) + ") // " + std::to_string(f);
  }
  std::string size(size_t s) const { return plus(symbolic ? "n" : std::to_string(rows_), stages_[s].halo); }

  // Loops and a block of it, with a guard where tiles go over the end.
  std::string stage(size_t s, const std::string &pad) {
    const Stage &g = stages_[s];
    std::string rows = size(s), i = "i", j = "j", guard, out, from = s ? name(s - 1) : "x";
    struct For { std::string name, extent; bool reduce; };
    std::vector<For> loops;
    int64_t need = tile_ + g.halo;
    auto require = [&](const std::string &c) { guard += (guard.empty() ? "" : " && ") + c; };
    bool fused = g.level == 1 && r_() % 5 == 0;
    if (g.level == 0) {
      loops.push_back({"i", rows, false});
    } else if (fused) {
      loops.push_back({"f", std::to_string(need * 12), false});
      i = "i0 * " + std::to_string(tile_) + " + f // 12", j = "f % 12";
    } else {
      loops.push_back({"i1", std::to_string(need), false});
      i = "i0 * " + std::to_string(tile_) + " + i1";
    }
    if (g.level && (symbolic || g.halo || rows_ % tile_)) require(i + " < " + rows);
    if (g.level < 2) {
      if (!fused && r_() % 3 == 0) {
        loops.push_back({"j0", "3", false}), loops.push_back({"j1", "5", false});
        j = "j0 * 5 + j1", require(j + " < 12");
      } else if (!fused) {
        loops.push_back({"j", "12", false});
      }
    } else {
      loops.push_back({"j1", std::to_string(column_tile_), false});
      j = "j0 * " + std::to_string(column_tile_) + " + j1";
      if (12 % column_tile_) require(j + " < 12");
    }
    std::vector<For> spatial = loops;
    std::string k;
    if (g.reduces && g.product && r_() % 2) {
      loops.push_back({"k0", "3", true}), loops.push_back({"k1", "4", true});
      k = "k0 * 4 + k1";
    } else if (g.reduces) {
      loops.push_back({"k", g.product ? "12" : std::to_string(g.window), true});
      k = "k";
    }
    std::shuffle(loops.begin(), loops.end(), r_);
    auto nest = [&](const std::vector<For> &l, bool vector, const std::string &block) {
      std::string text, inner = pad;
      for (size_t d = 0; d < l.size(); d++) {
        bool last = d + 1 == l.size();
        const char *kinds[] = {"", "", "", " unroll"};
        std::string kind = last && vector && !l[d].reduce && r_() % 3 == 0 ? " vectorize" : kinds[r_() % 4];
        text += inner + "for " + l[d].name + " in " + l[d].extent + kind + " {\n", inner += "  ";
      }
      size_t at = 0;
      for (size_t end; at < block.size(); at = end + 1) {
        end = block.find('\n', at);
        text += inner + block.substr(at, end - at) + "\n";
      }
      for (size_t d = l.size(); d-- > 0;) text += pad + std::string(2 * d, ' ') + "}\n";
      return text;
    };
    std::string axes = "  spatial a in " + rows + " = " + i + "\n  spatial b in 12 = " + j + "\n";
    std::string tail = guard.empty() ? "" : "  guard " + guard + "\n", target = name(s) + "[a, b]";
    if (!g.reduces) {
      std::string value = from + "[a, b]";
      for (int64_t d = 1; d < g.window; d++) value += " + 0.5 * " + from + "[a + " + std::to_string(d) + ", b]";
      return nest(loops, true, "block " + name(s) + " {\n" + axes + tail + "  " + target + " = " + value + "\n}\n");
    }
    if (g.split_init)
      out += nest(spatial, true, "block " + name(s) + ".init {\n" + axes + tail + "  " + target + " = 0.0\n}\n");
    std::string term = g.product ? from + "[a, c] * w[c, b]" : from + "[a + c, b]";
    axes += "  reduce c in " + std::to_string(g.product ? 12 : g.window) + " = " + k + "\n";
    if (!g.split_init) tail += "  init " + target + " = 0.0\n";
    return out + nest(loops, true, "block " + name(s) + " {\n" + axes + tail + "  " + target + " = " + target + " + " +
                                       term + "\n}\n");
  }

  std::mt19937 r_;
  std::vector<Stage> stages_;
  int64_t rows_ = 0, tile_ = 0, column_tile_ = 0;
  bool parallel_ = false;
};

}  // namespace

TEST(Compact, RandomSchedules) {
  const char *turns = getenv("MLC_COMPACT_TURNS");
  for (uint32_t seed = 0; seed < uint32_t(turns ? atoi(turns) : 100); seed++) {
    Chain chain(seed);
    std::string text = chain.text();
    Source source = Source::from_string("random", text);
    Build b;
    Module m, after;
    Diag diag("test", &source);
    ASSERT_TRUE(read(b, source, m, diag) && check(b, m, diag)) << diag.messages()[0] << "\n" << text;
    const Func *before = m.func(b.sym("main")), *small = compacted(b, m, before, diag);
    after.add(small);
    std::string said = print(b, after);
    ASSERT_TRUE(check(b, after, diag)) << diag.messages()[0] << "\n" << text << said;
    for (int64_t n : {chain.rows(), int64_t(1), int64_t(2), int64_t(9)}) {
      if (!chain.symbolic && n != chain.rows()) continue;
      std::mt19937_64 random(seed);
      std::vector<Array> in = {sample(DType::F32, {chain.input_rows(n), 12}, random, false),
                               sample(DType::F32, {12, 12}, random, false)};
      for (bool backwards : {false, true}) {
        RunOptions options;
        options.backwards = backwards;
        std::vector<Array> left, right;
        RunFault fault;
        ASSERT_TRUE(run(b, m, *before, in, options, left, fault)) << seed << ": " << fault.message << "\n" << text;
        ASSERT_TRUE(run(b, after, *small, in, options, right, fault)) << seed << ": " << fault.message << "\n" << text << said;
        Comparison c = compare(right[0], left[0], Tolerance::exact());
        ASSERT_TRUE(c.same()) << seed << ": " << describe(c, "y", left[0]) << "\n" << text << said;
      }
    }
    for (const Chain::Tile &t : chain.tiles) {
      const Type *type = nullptr;
      each_stmt(small->body, [&](const Stmt *s) {
        if (auto *a = as<Alloc>(s); a && b.text(a->def.name) == t.buffer) type = a->def.type;
      });
      std::vector<int64_t> dims;
      int64_t count = 1;
      ASSERT_TRUE(type && all_static(type, &dims)) << seed << ": " << t.buffer << " has no tile\n" << text << said;
      for (int64_t d : dims) count *= d;
      EXPECT_LE(count, t.rows * t.columns) << seed << ": " << t.buffer << "\n" << text << said;
    }
    if (HasFailure()) return;
  }
}

// The same in C++: what they compute has the bits of the interpreter, before and after.
TEST(Compact, EmittedSchedules) {
  std::string kernels, calls, params, results;
  std::vector<Array> in;
  std::mt19937_64 random(1);
  for (uint32_t seed = 0; in.size() < 12; seed++) {
    Chain chain(seed);
    std::string text = chain.text(), id = std::to_string(seed);
    bool inner = text.find("    alloc ") != text.npos;  // not the room of one turn
    if (inner) continue;
    kernels += "kernel @k" + id + text.substr(text.find("@main") + 5) + "\n";
    int64_t n = chain.rows(), rows = chain.input_rows(n);
    params += fmt::format("{}x{}: f32[{}, 12]", in.empty() ? "w: f32[12, 12], " : ", ", id, rows);
    results += fmt::format("{}y{}: f32[{}, 12]", calls.empty() ? "" : ", ", id, n);
    calls += fmt::format("  call @k{0}(x{0}, w) -> y{0}\n", id);
    if (in.empty()) in.push_back(sample(DType::F32, {12, 12}, random, false));
    in.push_back(sample(DType::F32, {rows, 12}, random, false));
  }
  EmitProgram p("mlc 1\n\n" + kernels + "graph @main(" + params + ") -> (" + results + ") {\n" + calls + "}\n");
  ASSERT_TRUE(p.ok);
  std::vector<Array> want = run_interpreted(p, in);
  for (size_t i = 0; i < p.m.items.size(); i++)
    if (auto *f = as<Func>(p.m.items[i]); f && f->func == FuncKind::Kernel)
      p.m.replace(i, compacted(p.b, p.m, f, p.diag));
  pass_plan.run(p.b, p.m, {}, p.diag);
  std::vector<Array> got = run_emitted(p, in);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) {
    Comparison c = compare(got[i], want[i], Tolerance::exact());
    EXPECT_TRUE(c.same()) << describe(c, fmt::format("output {}", i), want[i]);
  }
}

}  // namespace mlc
