// Questions and draws: get_*, sample_*.
#include <algorithm>

#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

static void set_all(Args &a, const std::vector<Place *> &nodes, Handle::Kind kind, std::string_view what) {
  if (a.results() != nodes.size())
    bad_step(a.step().call->at, "{} has {}, {} given", what,
             counted(nodes.size(), kind == Handle::Loop ? "loop" : "block"), counted(a.results(), "name"));
  for (size_t i = 0; i < nodes.size(); i++)
    a.set(i, {kind, nodes[i], {}, {}});
}

void get_loops(State &s, Args &a) {
  Place *n = a.block(0);
  std::vector<Place *> loops = loops_around(n);
  if (a.results() != loops.size()) {
    std::string names;
    for (Place *l : loops)
      names += (names.empty() ? "" : ", ") + s.text(l->loop()->iter.name);
    bad_step(a.step().call->at, "block {} stands in {}{}{}, {} given", s.text(n->block()->name),
             counted(loops.size(), "loop"), names.empty() ? "" : ": ", names, counted(a.results(), "name"));
  }
  for (size_t i = 0; i < loops.size(); i++)
    a.set_loop(i, loops[i]);
}

void get_child_blocks(State &s, Args &a) {
  Place *n = a.loop_or_block(0);
  std::vector<Place *> out;
  std::function<void(Place *)> find = [&](Place *x) {
    for (auto &kids : x->kids)
      for (Place *k : kids)
        if (k->block()) out.push_back(k);
        else find(k);
  };
  find(n);
  set_all(a, out, Handle::Block, s.name_of(n));
}

static std::vector<Place *> blocks_of(const std::vector<Place *> &nodes) {
  std::vector<Place *> out;
  for (Place *n : nodes)
    if (n->block()) out.push_back(n);
  return out;
}

// Computes among them become blocks, so that they can be named.
static void expand_all(State &s) {
  std::vector<Sym> names;
  each_place(s.tree.root(), [&](Place *n) {
    if (auto *c = as<Compute>(n->stmt)) names.push_back(c->results[0].name);
  });
  for (Sym name : names)
    s.find_block(name);
}

void get_producers(State &s, Args &a) {
  Place *n = a.block(0);
  expand_all(s);
  set_all(a, blocks_of(producers(s, n)), Handle::Block, "what " + s.name_of(n) + " reads");
}
void get_consumers(State &s, Args &a) {
  Place *n = a.block(0);
  expand_all(s);
  set_all(a, blocks_of(consumers(s, n)), Handle::Block, "what reads " + s.name_of(n));
}
void get_output_blocks(State &s, Args &a) {
  expand_all(s);
  std::vector<Place *> out;
  for (Place *n : leaf_blocks(s.tree.root()))
    for (Sym w : buffers_written(s, n))
      if (s.is_result(w)) {
        out.push_back(n);
        break;
      }
  set_all(a, out, Handle::Block, "the kernel");
}

// ---- draws; `decision` is what was drawn

static int64_t decision(Args &a, int64_t count, const std::vector<double> *weights = nullptr) {
  if (const Expr *e = a.attr("decision")) {
    int64_t v;
    if (!int_value(e, &v) || v < 0 || v >= count) bad_step(e->at, "decision: expected 0 to {}", count - 1);
    return v;
  }
  double x = double(a.random() >> 11) * 0x1p-53;
  if (!weights) return std::min<int64_t>(count - 1, int64_t(x * double(count)));
  double total = 0;
  for (double w : *weights)
    total += w;
  int64_t i = 0;
  for (x *= total; i + 1 < count && x >= (*weights)[i]; i++)
    x -= (*weights)[i];
  return i;
}

void sample_categorical(State &s, Args &a) {
  a.expect_results(1, 1);
  std::vector<const Expr *> values = a.factors(0), probs = a.factors(1);
  if (values.empty() || values.size() != probs.size())
    bad_step(a.at(1), "expected a probability for each of {}", counted(values.size(), "value"));
  std::vector<double> weights;
  for (const Expr *e : probs) {
    int64_t v;
    double w = e && e->kind == Kind::Float ? to<Float>(e).value : e && int_value(e, &v) ? double(v) : -1;
    if (!(w >= 0 && w < 1e300)) bad_step(e ? e->at : a.at(1), "expected a probability, 0 or more");
    weights.push_back(w);
  }
  int64_t i = decision(a, int64_t(values.size()), &weights);
  a.record("decision", s.b.integer(i));
  a.set(0, {Handle::Value, nullptr, {values[i]}, {}});
}

// All ways to write n as a product of `parts` factors, the last one at most `most`.
static void factorings(int64_t n, size_t parts, int64_t most, std::vector<int64_t> &now,
                       std::vector<std::vector<int64_t>> &out) {
  if (parts == 1) {
    now.push_back(n);
    std::vector<int64_t> l(now.rbegin(), now.rend());
    out.push_back(l);
    now.pop_back();
    return;
  }
  for (int64_t f = 1; f <= n; f++) {
    if (n % f || (now.empty() && f > most)) continue;
    now.push_back(f);
    factorings(n / f, parts - 1, most, now, out);
    now.pop_back();
  }
}

static int64_t static_extent(State &s, Place *loop) {
  int64_t n;
  if (!int_value(loop->loop()->iter.extent, &n) || n < 1 || n > (1 << 20))
    refuse(loop, "{} has {} turns: a tile is drawn for a number of turns, 1 to 2^20", s.name_of(loop),
           s.text(loop->loop()->iter.extent));
  return n;
}

static void set_factors(State &s, Args &a, const std::vector<int64_t> &factors) {
  std::vector<const Expr *> values;
  for (int64_t f : factors)
    values.push_back(s.b.integer(f));
  a.record("decision", s.b.make_list(s.b.list(values)));
  a.set(0, {Handle::Values, nullptr, values, {}});
}

static std::vector<int64_t> drawn(State &s, Args &a, int64_t n, size_t parts,
                                  const std::vector<std::vector<int64_t>> &all) {
  if (const Expr *e = a.attr("decision")) {
    std::vector<int64_t> given;
    int64_t product = 1, v;
    auto *l = as<List>(e);
    for (const Expr *x : l ? l->items : Exprs{})
      if (int_value(x, &v) && v > 0) given.push_back(v), product *= v;
    if (given.size() != parts || product != n)
      bad_step(e->at, "decision: expected {} factors of {}, found {}", parts, n, s.text(e));
    return given;
  }
  return all[decision(a, int64_t(all.size()))];
}

void sample_perfect_tile(State &s, Args &a) {
  a.expect_results(1, 1);
  Place *loop = a.loop(0);
  int64_t n = static_extent(s, loop), parts = a.integer(1), most = a.integer(2);
  if (parts < 1 || parts > 8) bad_step(a.at(1), "expected 1 to 8 factors, found {}", parts);
  if (most < 1) bad_step(a.at(2), "expected the largest innermost factor, 1 or more, found {}", most);
  std::vector<std::vector<int64_t>> all;
  std::vector<int64_t> now;
  if (parts == 1) all.push_back({n});
  else factorings(n, size_t(parts), most, now, all);
  set_factors(s, a, drawn(s, a, n, size_t(parts), all));
}

// Perfect tiles whose factors from `partition_pos` on multiply to a multiple of `innerpart`.
void sample_partitioned_tile(State &s, Args &a) {
  a.expect_results(1, 1);
  Place *loop = a.loop(0);
  int64_t n = static_extent(s, loop), parts = a.integer(1), place = a.integer(2), inner = a.integer(3);
  if (parts < 1 || parts > 8) bad_step(a.at(1), "expected 1 to 8 factors, found {}", parts);
  if (place < 0 || place >= parts)
    bad_step(a.at(2), "expected a place among the factors, 0 to {}, found {}", parts - 1, place);
  std::vector<std::vector<int64_t>> all, good;
  std::vector<int64_t> now;
  if (parts == 1) all.push_back({n});
  else factorings(n, size_t(parts), n, now, all);
  for (auto &l : all) {
    int64_t product = 1;
    for (size_t i = size_t(place); i < l.size(); i++)
      product *= l[i];
    if (inner >= 1 && product % inner == 0) good.push_back(l);
  }
  if (good.empty())
    refuse(loop, "{} turns of {} have no factors whose inner part is a multiple of {}", n, s.name_of(loop), inner);
  set_factors(s, a, drawn(s, a, n, size_t(parts), good));
}

// Where a block may be computed: the loops of its first consumer, from the outermost; -1 inline, -2 where it stands.
void sample_compute_location(State &s, Args &a) {
  a.expect_results(1, 1);
  Place *n = a.block(0);
  std::vector<Place *> users = consumers(s, n), loops;
  if (!users.empty()) loops = loops_around(users[0]);
  int64_t choice;
  if (const Expr *e = a.attr("decision")) {
    if (!int_value(e, &choice) || choice < -2 || choice >= int64_t(loops.size()))
      bad_step(e->at, "decision: expected -2 to {}", int64_t(loops.size()) - 1);
  } else {
    do choice = decision(a, int64_t(loops.size()) + 2) - 2;
    while (choice == -1 && has_reduce(*n->block()));
  }
  a.record("decision", s.b.integer(choice));
  if (choice >= 0) a.set_loop(0, loops[choice]);
  else a.set(0, {Handle::Value, nullptr, {s.b.integer(choice)}, {}});
}

}  // namespace mlc
