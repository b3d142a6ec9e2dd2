// How good are mlc-check and mlc-equiv? mutants [--every N] [--part I/N] [-v] CASE...
//
// Takes the modules in golden cases (the input and what is expected on standard output), makes every mechanical mutant of
// each kernel (mutants.h), and counts those that the verifier refuses, that the comparison tells from the kernel, or of
// which mlc-check -v proves less than of the kernel. The others are listed, with the reason why they are the same program where there is one. Succeeds if at least 99 % of
// those without a reason are found.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "check/check.h"
#include "equiv/equiv.h"
#include "interp/interp.h"
#include "ir/reach.h"
#include "mutants.h"
#include "passes.h"
#include "text/text.h"

namespace mlc {

namespace {

struct Count {
  size_t made = 0, by_check = 0, by_equiv = 0, by_proof = 0, same = 0, missed = 0;
};

EquivOptions effort(int64_t runs) {
  EquivOptions o;
  o.runs = runs, o.elements = 20000, o.turns = 8000000, o.bounded = true;
  return o;
}

Module with(const Module &m, const Func *old, const Func *by) {
  Module n = m;
  for (size_t i = 0; i < n.items.size(); i++)
    if (n.items[i] == old) n.replace(i, by);
  return n;
}

std::string simplified(Build &b, Module m) {
  Diag diag("mutants");
  for (const Pass *p : all_passes())
    if (!strcmp(p->name, "simplify")) p->run(b, m, {}, diag);
  return print(b, m);
}

// Is everything in the loop behind a guard or condition, so that turns beyond its end do nothing?
bool guarded(Stmts l) {
  for (const Stmt *s : l) {
    bool inner = true;
    if (auto *f = as<For>(s)) inner = guarded(f->body);
    else if (auto *k = as<Block>(s)) inner = k->guard != nullptr;
    else inner = as<If>(s) || as<Alloc>(s) || as<View>(s) || as<Let>(s);
    if (!inner) return false;
  }
  return true;
}

// Is all that is stored added to what is there, or all multiplied?
bool combines(Stmts l) {
  bool all = true;
  Op first = Op::Neg;
  each_stmt(l, [&](const Stmt *s) {
    auto *x = as<Store>(s);
    auto *e = as<Binary>(x ? x->value : nullptr);
    bool step = e && (e->op == Op::Add || e->op == Op::Mul) && (equal(e->a, x->target) || equal(e->b, x->target));
    if (step && first == Op::Neg) first = e->op;
    step = step && e->op == first;
    if (x || as<Compute>(s) || as<CallStmt>(s)) all &= step;
  });
  return all;
}

bool used(const For &l) {
  bool found = false;
  each_expr_in(l.body, [&](const Expr *e) {
    auto *n = as<Name>(e);
    return !(found |= n && n->name == l.iter.name);
  });
  return found;
}

class Run {
 public:
  bool verbose = false;
  size_t every = 1, part = 0, parts = 1, number = 0;
  Count counts[6];

  void file(const std::string &path) {
    std::ifstream in(path);
    std::string line, section = "input", texts[2];
    for (bool first = true; std::getline(in, line); first = false) {
      if (line.starts_with("## ")) section = line.substr(3);
      else if (!first || !line.starts_with("# ")) texts[section == "stdout"] += section == "input" || section == "stdout" ? line + "\n" : "";
    }
    for (const std::string &t : texts)
      if (!t.empty()) module(path, t);
  }

  int finish() {
    Count all;
    fmt::print("{:<26}{:>8}{:>8}{:>8}{:>10}{:>12}{:>8}\n", "", "mutants", "check", "equiv", "check -v", "equivalent", "missed");
    auto row = [](const char *name, const Count &c) {
      fmt::print("{:<26}{:>8}{:>8}{:>8}{:>10}{:>12}{:>8}\n", name, c.made, c.by_check, c.by_equiv, c.by_proof, c.same, c.missed);
    };
    for (int k = 0; k < 6; k++) {
      row(kMutantNames[k], counts[k]);
      for (size_t Count::*field : {&Count::made, &Count::by_check, &Count::by_equiv, &Count::by_proof, &Count::same, &Count::missed})
        all.*field += counts[k].*field;
    }
    row("all", all);
    size_t real = all.made - all.same, found = all.by_check + all.by_equiv + all.by_proof;
    fmt::print("{:.2f} % of {} found\n", real ? 100.0 * double(found) / double(real) : 0.0, real);
    bool good = real && found * 100 >= real * 99;
    fmt::print("{} passed, {} failed\n", good ? all.made - all.missed : found, good ? 0 : all.missed);
    return !good;
  }

 private:
  void module(const std::string &path, const std::string &text) {
    if (!seen_.insert(text).second) return;
    Build &b = *new Build;
    Module m;
    Source source = Source::from_string(path, text);
    Diag diag("mutants", &source);
    if (!read(b, source, m, diag) || !check(b, m, diag)) return;
    for (const Item *i : m.items)
      if (auto *f = as<Func>(i); f && f->func == FuncKind::Kernel) kernel(b, m, *f, path);
  }

  void kernel(Build &b, const Module &whole, const Func &f, const std::string &path) {
    Module m = whole;
    keep_only(m, reachable(m, {&f}), false);
    if (!seen_.insert(print(b, m)).second) return;
    EquivSide side{b, m, "kernel", path, nullptr};
    EquivOptions options = effort(12);
    options.entry = std::string(b.text(f.name));
    bool tried = false, runs = false;
    size_t before = 0;
    for (const Mutant &x : mutants_of(b, f)) {
      if (number++ % every || number / every % parts != part) continue;
      if (!tried) tried = true, runs = equiv(side, side, options).same, before = unproved(b, m);
      if (!runs) return;  // nothing to compare with: its inputs are refused, it needs threads, it is wrong by intent
      Count &c = counts[size_t(x.kind)];
      c.made++;
      Module n = with(m, &f, x.func);
      Diag diag("mutants");
      if (!check(b, n, diag)) {
        c.by_check++;
        continue;
      }
      EquivReport r = equiv(side, {b, n, "mutant", path, nullptr}, options);
      if (!r.same) {
        c.by_equiv++;
        continue;
      }
      if (unproved(b, n) > before) {
        c.by_proof++;
        continue;
      }
      std::string why = reason(b, m, n, f, x, options);
      (why.empty() ? c.missed : c.same)++;
      if (verbose || why.empty())
        fmt::print("{}: @{}: {}{}{}\n", path, b.text(f.name), x.what, why.empty() ? ": MISSED" : ": the same, ", why);
    }
  }

  // What mlc-check -v cannot prove, in number.
  static size_t unproved(Build &b, const Module &m) {
    Diag diag("mutants");
    diag.verbose = true;
    check(b, m, diag, true);
    char *text = nullptr;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    diag.print(f);
    fclose(f);
    size_t lines = size_t(std::count(text, text + size, '\n'));
    free(text);
    return lines;
  }

  // Why a mutant that nothing tells from the kernel is the same program.
  std::string reason(Build &b, const Module &m, const Module &n, const Func &f, const Mutant &x, EquivOptions options) {
    if (simplified(b, m) == simplified(b, n)) return "mlc-simplify makes the same text of both";
    if (x.kind == MutantKind::Bound && x.loop && guarded(x.loop->body)) return "more turns are barred by guards";
    if (x.kind == MutantKind::Bound && x.loop && !used(*x.loop)) return "the loop repeats a whole round";
    bool turns = x.kind == MutantKind::Guard || (x.kind == MutantKind::Bound && x.loop);
    if (turns && one_value_each(f)) return "each element has one value, whenever it is stored";
    if (x.wrong && equiv({b, m, "kernel", "", nullptr}, {b, with(m, &f, x.wrong), "mutant", "", nullptr}, options).same)
      return "what is stored in more turns is stored over before it is read";
    if (x.kind == MutantKind::Swap && combines(x.loop->body)) return "sums and products, whose terms have no order";
    if (x.kind == MutantKind::Swap) {
      // All that depends on another turn is in the same turn of the loop that goes outside, or was: it keeps its order.
      auto outer = [&](const Func &g, const Module &whole, const For *l) {
        Func made = g;
        std::function<Stmts(Stmts)> mark = [&](Stmts list) {
          std::vector<const Stmt *> out;
          for (const Stmt *s : list) {
            const Stmt *t = with_bodies(b, s, mark);
            if (s == l) {
              For p = to<For>(t);
              p.loop = LoopKind::Parallel;
              t = b.make(p);
            }
            out.push_back(t);
          }
          return b.list(out);
        };
        made.body = mark(g.body);
        EquivSide side{b, whole, "kernel", "", nullptr};
        return equiv(side, {b, with(whole, &g, b.make(made)), "mutant", "", nullptr}, options).same;
      };
      if (outer(f, m, x.loop) || outer(*x.func, n, x.swapped)) return "what turns depend on keeps its order";
    }
    if (x.kind == MutantKind::Swap || x.kind == MutantKind::Parallel) {
      // Mark the loop and the one inside: if no two turns touch one element, their order is free.
      Func g = f;
      std::function<Stmts(Stmts)> mark = [&](Stmts l) {
        std::vector<const Stmt *> out;
        for (const Stmt *s : l) {
          bool here = s == x.loop || (x.loop && x.loop->body.size() == 1 && s == x.loop->body[0]);
          const Stmt *t = with_bodies(b, s, mark);
          if (here) {
            For p = to<For>(t);
            p.loop = LoopKind::Parallel;
            t = b.make(p);
          }
          out.push_back(t);
        }
        return b.list(out);
      };
      g.body = mark(f.body);
      EquivSide side{b, m, "kernel", "", nullptr};
      Module p = with(m, &f, b.make(g));
      if (equiv(side, {b, p, "mutant", "", nullptr}, options).same) return "no two turns touch one element";
    }
    return "";
  }

  std::set<std::string> seen_;
};

}  // namespace

}  // namespace mlc

int main(int argc, char **argv) {
  mlc::Run run;
  std::vector<std::string> files;
  for (int i = 1; i < argc; i++) {
    std::string a = argv[i];
    if (a == "-v") run.verbose = true;
    else if (a == "--every" && i + 1 < argc) run.every = size_t(std::max(1, atoi(argv[++i])));
    else if (a == "--part" && i + 1 < argc && sscanf(argv[++i], "%zu/%zu", &run.part, &run.parts) == 2) continue;
    else files.push_back(a);
  }
  for (const std::string &f : files) run.file(f);
  return run.finish();
}
