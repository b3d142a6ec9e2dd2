// set_scope, storage_align, unsafe_set_dtype; read_at, write_at.
#include <algorithm>

#include "arith/simplify.h"
#include "ir/solve.h"
#include "ops/expr.h"
#include "sched/copy.h"
#include "sched/macro.h"
#include "sched/primitives.h"

namespace mlc {

namespace {

// The buffer that a step changes: one that the kernel allocates and the block uses.
Place *own_buffer(State &s, Place *n, Sym buffer, std::string_view copy) {
  std::string name = s.text(buffer), block = s.text(n->block()->name);
  if (!reads(s, n, buffer) && !writes(s, n, buffer)) refuse(n, "block {} does not use {}", block, name);
  Place *alloc = s.alloc_of(buffer);
  if (!alloc)
    throw Refused{n->stmt->at, fmt::format("{} belongs to the callers", name),
                  fmt::format("{}({}, {}, {}) makes a buffer of the kernel's own",
                              writes(s, n, buffer) ? "cache_write" : "cache_read", block, name, copy)};
  if (Sym base = to<Alloc>(alloc->stmt).base)
    refuse(alloc, "{} stands in {}: its storage is given", name, s.text(base));
  return alloc;
}

Attrs with_attr(Build &b, Attrs attrs, std::string_view key, const Expr *value) {
  std::vector<Attr> out;
  for (const Attr &x : attrs)
    if (b.text(x.key) != key) out.push_back(x);
  out.push_back({b.sym(key), kNowhere, value});
  return b.list(out);
}

}  // namespace

// alloc t: f32[8, 8]   ->   alloc t: f32[8, 8] in shared
void set_scope(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = a.block(0);
  Sym buffer = a.buffer(1), scope = scope_argument(s, a, 2);
  Place *alloc = own_buffer(s, n, buffer, scope_text(s, scope));
  std::string_view name = s.b.text(scope);
  for (Place *u = alloc->up; u && u->stmt; u = u->up) {
    auto *f = u->loop();
    if (!f || f->loop != LoopKind::Bind) continue;
    bool threads = !s.text(f->tag).starts_with("blockIdx");
    if (name == "local" || (name == "shared" && !threads)) continue;
    refuse(alloc, "{} is allocated inside of {}, and all that its turns do would see it", s.text(buffer), s.name_of(u));
  }
  Type t = *s.type_of_buffer(buffer);
  t.scope = scope;
  s.set_type(buffer, s.b.type(t));
}

// f32[16, 64], dimension 0, factor 32, offset 8   ->   {strides = [72, 1], modulo = [0, 32, 8]}: row after row is 8
// modulo 32, and stays so where mlc-compact makes rows shorter
void storage_align(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0);
  Sym buffer;
  int64_t which;
  std::vector<Sym> written = buffers_written(s, n);
  if (int_value(a.raw(1), &which)) {
    if (which < 0 || size_t(which) >= written.size())
      bad_step(a.at(1), "block {} writes {}, there is no number {}", s.text(n->block()->name),
               counted(written.size(), "buffer"), which);
    buffer = written[size_t(which)];
  } else {
    buffer = a.buffer(1);
  }
  own_buffer(s, n, buffer, "local");
  Type t = *s.type_of_buffer(buffer);
  int64_t dim = a.integer(2), factor = a.integer(3), offset = a.integer(4), rank = int64_t(t.rank());
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank)
    bad_step(a.at(2), "{} has {}, there is no number {}", s.text(buffer), counted(t.rank(), "dimension"), dim);
  if (dim == rank - 1) bad_step(a.at(2), "elements of the last dimension stand side by side; align one further out");
  if (factor < 1) bad_step(a.at(3), "expected a factor of at least 1, found {}", factor);
  if (offset < 0 || offset >= factor) bad_step(a.at(4), "expected an offset in 0 .. {}, found {}", factor - 1, offset);
  Known known(s, s.tree.root());
  Exprs old = strides_of(b, &t);
  std::vector<const Expr *> strides(old.begin(), old.end());
  for (int64_t d = rank - 1; d-- > 0;) {
    X dense = X{b, strides[d + 1]} * X{b, t.dims[d + 1]}, was = X{b, old[d + 1]} * X{b, t.dims[d + 1]};
    X stride = dense + (X{b, old[d]} - was);  // padded as before
    if (d == dim) stride = dense + (lit(b, offset) - dense) % factor;
    strides[d] = simplify(b, stride.e, known);
  }
  t.attrs = with_attr(b, t.attrs, "strides", b.make_list(b.list(strides)));
  std::vector<const Expr *> modulo;
  if (auto *l = as<List>(attr(b, t.attrs, "modulo")))
    for (size_t i = 0; i + 2 < l->items.size(); i += 3)
      if (!is_int(l->items[i], dim)) modulo.insert(modulo.end(), &l->items[i], &l->items[i] + 3);
  for (int64_t i : {dim, factor, offset}) modulo.push_back(b.integer(i));
  t.attrs = with_attr(b, t.attrs, "modulo", b.make_list(b.list(modulo)));
  s.set_type(buffer, b.type(t));
}

// alloc t: f32[n], t[i] = e, .. t[i] ..   ->   alloc t: f16[n], t[i] = f16(e), .. f32(t[i]) ..
void unsafe_set_dtype(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0);
  Sym buffer = a.buffer(1);
  own_buffer(s, n, buffer, "local");
  std::string name = s.text(a.word(2));
  DType to_type = dtype_named(name);
  Type t = *s.type_of_buffer(buffer);
  auto number = [](DType d) { return d != DType::Invalid && d != DType::Str && d != DType::Index && d != DType::Bool; };
  if (!number(to_type)) bad_step(a.at(2), "{} is no type of numbers", name);
  if (!number(t.elem)) refuse(n, "{} holds no numbers", s.text(buffer));
  if (to_type == t.elem) return;
  readers(s, buffer), writers(s, buffer);  // computes become blocks
  std::string was(dtype_name(t.elem));
  auto load = [&](const Expr *e) -> const Expr * {
    auto *l = as<Load>(e);
    if (!l || l->global || l->buffer != buffer) return e;
    return b.call(was, {e});
  };
  for (Place *x : leaves(s.tree.root())) {
    if (!reads(s, x, buffer) && !writes(s, x, buffer)) continue;
    if (!x->block()) refuse(x, "{} uses {} and is no block", s.name_of(x), s.text(buffer));
    auto in = [&](Stmts body) {
      return rewrite_stmts(b, body, [&](const Stmt *st, std::vector<const Stmt *> &out) {
        if (st->kind == Kind::CallStmt || st->kind == Kind::View)
          refuse(x, "{} passes {} on", s.name_of(x), s.text(buffer));
        if (auto *w = as<Store>(st)) {
          bool ours = w->target->buffer == buffer;
          if (ours && w->atomic) refuse(x, "{} adds to {} atomically", s.name_of(x), s.text(buffer));
          out.push_back(edited(b, *w, [&](Store &y) {
            y.value = rewrite(b, w->value, load);
            if (ours) y.value = b.call(name, {y.value});
          }));
          return;
        }
        std::vector<Stmts> inner;
        each_body(st, [&](Stmts l) { inner.push_back(l); });
        const Stmt *now = rewrite_exprs(b, with_bodies(b, st, [&](Stmts) { return Stmts{}; }), load);
        size_t i = 0;
        out.push_back(with_bodies(b, now, [&](Stmts) { return inner[i++]; }));
      });
    };
    s.tree.edit<Block>(x, [&](Block &k) { k.inits = in(k.inits), k.body = in(k.body); });
  }
  t.elem = to_type;
  s.set_type(buffer, b.type(t));
}

// cache_read for one block, and compute_at
void read_at(State &s, Args &a) {
  a.expect_results(1, 1);
  Place *loop = a.loop(0), *n = a.block(1);
  if (!is_below(n, loop)) refuse(n, "block {} does not stand in {}", s.text(n->block()->name), s.name_of(loop));
  Macro m(s, a);
  Attr only = {s.b.sym("consumers"), kNowhere, s.b.make_list(s.b.list({m(n)}))};
  std::string name = a.result(0, s.text(a.buffer(2)) + "." + s.text(a.word(3)));
  Place *copy = m.run("cache_read", {m(n), a.raw(2), a.raw(3)}, {name}, s.b.one(only))[0];
  std::string made = s.text(copy->block()->name);
  if (!is_below(copy, loop)) m.run("compute_at", {m(copy), m(loop)});
  a.set_block(0, s.find_block(s.b.sym(made)));
}

// cache_write, and reverse_compute_at
void write_at(State &s, Args &a) {
  a.expect_results(1, 1);
  Place *loop = a.loop(0), *n = a.block(1);
  if (!is_below(n, loop)) refuse(n, "block {} does not stand in {}", s.text(n->block()->name), s.name_of(loop));
  Macro m(s, a);
  std::string name = a.result(0, s.text(a.buffer(2)) + "." + s.text(a.word(3)));
  Place *copy = m.run("cache_write", {m(n), a.raw(2), a.raw(3)}, {name})[0];
  std::string made = s.text(copy->block()->name);
  if (!is_below(copy, loop)) m.run("reverse_compute_at", {m(copy), m(loop)});
  a.set_block(0, s.find_block(s.b.sym(made)));
}

}  // namespace mlc
