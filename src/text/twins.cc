#include "text/twins.h"

#include "ir/edit.h"
#include "ir/walk.h"
#include "text/text.h"

namespace mlc {

namespace {

using Renames = std::unordered_map<Sym, Sym>;

template <class Each> void each_from(const Func *f, const Each &each) {
  auto all = [&](Syms l) {
    for (Sym s : l) each(s);
  };
  all(f->notes.from);
  each_stmt(f->body, [&](const Stmt *s) {
    switch (s->kind) {
      case Kind::For: return all(to<For>(s).notes.from);
      case Kind::Block: return all(to<Block>(s).notes.from);
      case Kind::Let: return all(to<Let>(s).from);
      case Kind::Store: return all(to<Store>(s).from);
      case Kind::Compute: return all(to<Compute>(s).from);
      case Kind::CallStmt: return all(to<CallStmt>(s).from);
      default: return;
    }
  });
}

const Func *renamed(Build &b, const Func *f, Sym name, const Renames &nodes) {
  auto all = [&](Syms &l) {
    l = edit_all(b, l, [&](Sym &s) {
      if (auto it = nodes.find(s); it != nodes.end()) s = it->second;
    });
  };
  return edited(b, *f, [&](Func &g) {
    g.name = name;
    all(g.notes.from);
    g.body = rewrite_stmts(b, f->body, [&](const Stmt *s, std::vector<const Stmt *> &out) {
      switch (s->kind) {
        case Kind::For: s = edited(b, to<For>(s), [&](For &x) { all(x.notes.from); }); break;
        case Kind::Block: s = edited(b, to<Block>(s), [&](Block &x) { all(x.notes.from); }); break;
        case Kind::Let: s = edited(b, to<Let>(s), [&](Let &x) { all(x.from); }); break;
        case Kind::Store: s = edited(b, to<Store>(s), [&](Store &x) { all(x.from); }); break;
        case Kind::Compute: s = edited(b, to<Compute>(s), [&](Compute &x) { all(x.from); }); break;
        case Kind::CallStmt: s = edited(b, to<CallStmt>(s), [&](CallStmt &x) { all(x.from); }); break;
        default: break;
      }
      out.push_back(s);
    });
  });
}

}  // namespace

const Func *Twins::first(const Func *f, const std::string &also) {
  Renames numbers;
  each_from(f, [&](Sym s) {
    if (!numbers.count(s)) numbers.emplace(s, b_.sym(std::to_string(numbers.size())));
  });
  std::string text = also + "\n" + print(b_, renamed(b_, f, b_.sym("twin"), numbers));
  return by_text_.try_emplace(std::move(text), f).first->second;
}

const Func *Twins::as_of(const Func *f, const Func *first, const Func *made) {
  std::vector<Sym> of_first;
  Renames nodes;
  size_t at = 0;
  each_from(first, [&](Sym s) { of_first.push_back(s); });
  each_from(f, [&](Sym s) { nodes[of_first.at(at++)] = s; });
  return renamed(b_, made, f->name, nodes);
}

}  // namespace mlc
