#include "graph/wide.h"

#include "ir/edit.h"
#include "ir/walk.h"

namespace mlc {

const Func *widened(Build &b, const Func &group, DType t, Fresh &fresh) {
  std::vector<const Stmt *> body;
  Substitution wide;  // of parameters and results: their f32 names
  auto cast = [&](const Def &to, const Expr *from) {
    body.push_back(b.make(Let{{}, b.one(to), b.call("Cast", {from}), {}, {}}));
  };
  auto in_f32 = [&](const Def &d) {
    Sym s = fresh.make(b.text(d.name));
    wide[d.name] = b.name(s);
    return Def{s, kNowhere, b.with_elem(d.type, DType::F32)};
  };
  for (const Param &p : group.params)
    if (p.def.type->tensor && p.def.type->elem == t) cast(in_f32(p.def), b.name(p.def.name));
  std::vector<Def> results;
  for (const Def &r : group.results)
    if (r.type->elem == t) in_f32(r), results.push_back(r);
  for (const Stmt *s : group.body) {
    Let l = to<Let>(substitute(b, b.stmts({s}), wide)[0]);
    l.defs = edit_all(b, l.defs, [&](Def &d) {
      if (d.type->elem == t) d.type = b.with_elem(d.type, DType::F32);
    });
    body.push_back(b.make(l));
  }
  for (const Def &r : results) cast(r, wide.at(r.name));
  Func g = group;
  std::vector<Attr> attrs(g.notes.attrs.begin(), g.notes.attrs.end());
  attrs.push_back({b.sym("licence"), kNowhere, b.make_list(b.list({b.string("wide")}))});
  g.notes.attrs = b.list(attrs), g.body = b.list(body);
  return b.make(g);
}

}  // namespace mlc
