// A synced kernel as a __global__ function, and the host function that launches it.
#include "arith/scope.h"
#include "arith/simplify.h"
#include "emit/body.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr int64_t kMostUnrolled = 16;
constexpr std::string_view kTags[2][3] = {{"blockIdx.x", "blockIdx.y", "blockIdx.z"},
                                          {"threadIdx.x", "threadIdx.y", "threadIdx.z"}};

// What stands in front of the bound loops, and these.
struct Shape {
  std::vector<const Stmt *> head;
  const Expr *extents[2][3] = {};
  int64_t shared = 0;  // bytes
};

Shape shape_of(const Build &b, const Func &f) {
  Shape s;
  for (Stmts body = f.body; !body.empty();) {
    auto *l = as<For>(body.back());
    bool bind = l && l->loop == LoopKind::Bind;
    if (!bind) break;
    if (s.head.empty()) s.head.assign(body.begin(), body.end() - 1);
    for (int side = 0; side < 2; side++)
      for (int d = 0; d < 3; d++)
        if (b.text(l->tag) == kTags[side][d]) s.extents[side][d] = l->iter.extent;
    body = l->body;
  }
  each_stmt(f.body, [&](const Stmt *x) {
    auto *a = as<Alloc>(x);
    std::vector<int64_t> dims;
    if (!a || a->base || !a->def.type->scope || b.text(a->def.type->scope) != "shared") return;
    if (all_static(a->def.type, &dims) && dims.size() == 1) s.shared = dims[0];
  });
  return s;
}

}  // namespace

bool is_lane_copy(const For &f) {
  int64_t n = 0;
  auto *s = f.loop == LoopKind::Vectorize && f.body.size() == 1 ? as<Store>(f.body[0]) : nullptr;
  auto *l = s ? as<Load>(s->value) : nullptr;
  bool few = l && !l->global && int_value(f.iter.extent, &n) && n > 1 && n <= kMostUnrolled;
  return few && (n & (n - 1)) == 0;
}

const Func *scalar_loops(Build &b, const Func *f) {
  Stmts body = rewrite_stmts(b, f->body, [&](const Stmt *s, std::vector<const Stmt *> &out) {
    auto *l = as<For>(s);
    int64_t n = 0;
    bool some = l && l->loop == LoopKind::Vectorize && !is_lane_copy(*l);
    bool few = some && int_value(l->iter.extent, &n) && n <= kMostUnrolled;
    out.push_back(!some ? s : edited(b, *l, [&](For &x) { x.loop = few ? LoopKind::Unroll : LoopKind::Serial; }));
  });
  return edited(b, *f, [&](Func &n) { n.body = body; });
}

std::string Unit::print_launch(const Func &f, const std::string &ident, Syms nodes, Emitted &info) {
  std::unordered_set<Sym> used;
  Func bare = f;
  bare.body = without_unused(b, f.body, used);
  Shape shape = shape_of(b, bare);
  auto alias = in_place(b, f);

  // The same parameters under the same names on both sides.
  BodyPrinter device(*this, m, bare), host(*this, m, bare);
  device.side = Side::Device, host.side = Side::Host;
  device.exprs.fma = "fma_native";
  device.name = ident, host.name = ident;
  std::vector<std::pair<std::string, std::string>> params;  // "const float *__restrict ", "x"
  for (BodyPrinter *p : {&host, &device}) {
    for (const char *word : {"failed", "launch", "first", "grid", "block"}) p->scope.namer.reserve(word);
    p->first = "first";
    params.clear();
    for (Sym d : f.dims) p->define_dim(d);
    auto buffer = [&](const Def &d, bool written) {
      std::string name = p->scope.namer.make(b.text(d.name));
      bool alone = !alias.count(b.text(d.name));
      params.push_back(
          {fmt::format("{}{} *{}", written ? "" : "const ", c_storage(d.type->elem), alone ? "__restrict " : ""),
           name});
      p->define_buffer(d, name, written).alone = alone;
    };
    for (const Param &x : f.params) {
      if (x.def.type->tensor) {
        buffer(x.def, x.mode != Mode::In);
        continue;
      }
      std::string name = p->scope.namer.make(b.text(x.def.name));
      p->define_value(x.def, name);
      params.push_back({fmt::format("{} ", c_value(x.def.type->elem)), name});
    }
    for (const Def &d : f.results) buffer(d, true);
  }
  std::vector<const Stmt *> pure;  // of the head: what the host can do
  for (const Stmt *s : shape.head) {
    bool loads = false;
    each_expr_of(s, [&](const Expr *e) { loads |= reads_memory(e); });
    if (!loads && (s->kind == Kind::Let || s->kind == Kind::Assume)) pure.push_back(s);
  }
  host.body(b.list(pure));
  device.checked.insert(pure.begin(), pure.end());
  std::string sizes[2][3];
  for (int side = 0; side < 2; side++)
    for (int d = 0; d < 3; d++)
      sizes[side][d] = shape.extents[side][d]
                           ? host.exprs.index(shorten_inside(b, shape.extents[side][d], host.scope.bounds)).s
                           : "1";
  device.first_code = int(host.failures.size());
  device.body(bare.body);
  host.finish(), device.finish();

  info.failures = host.failures;
  info.failures.insert(info.failures.end(), device.failures.begin(), device.failures.end());
  info.constants = device.constants;
  std::vector<std::string> outer = {fmt::format("const {} *launch", helpers.need("launch")), "int first"}, inner, args;
  std::string unused, host_unused;
  auto add = [&](const std::string &type, const std::string &name) {
    outer.push_back(type + name), inner.push_back(type + name), args.push_back(name);
  };
  for (Sym d : f.dims) {
    Entity *e = device.scope.find(d);
    bool in_kernel = e->seen, needed = in_kernel || host.scope.find(d)->seen;
    info.dims.push_back(needed);
    if (needed) outer.push_back("int64_t " + e->ident);
    if (in_kernel) inner.push_back("int64_t " + e->ident), args.push_back(e->ident);
  }
  for (auto &[type, name] : params) add(type, name);
  auto check = [&](Sym name) {
    if (Entity *e = device.scope.find(name); e && !e->seen) unused += fmt::format("  (void){};\n", e->ident);
  };
  for (const Param &x : f.params) check(x.def.name);
  for (const Def &d : f.results) check(d.name);
  for (Sym k : device.constants) {
    use(k);
    add(fmt::format("const {} *__restrict ", c_storage(m.constant(k)->type->elem)), device.constant_idents.at(k));
  }
  bool fails = !device.failures.empty();
  device_fails |= fails;
  if (fails) {
    inner.push_back("int *failed"), inner.push_back("int first");
    args.push_back("launch->failed"), args.push_back("first");
  } else if (host.failures.empty()) {
    host_unused = "  (void)first;\n";
  }
  int64_t threads = 1;
  for (int d = 0; d < 3; d++) {
    int64_t n = 1;
    if (shape.extents[1][d] && !int_value(shape.extents[1][d], &n))
      diag.error(f.at, "@{}: a block has {} threads, expected a number", b.text(f.name), print(b, shape.extents[1][d]));
    threads *= n;
  }
  std::string kernel = globals.make(ident + "_kernel");
  std::string head = fmt::format("__global__ void __launch_bounds__({}) {}", threads, kernel);
  kernels += function_comment(b, f, nodes) + function_head(head, inner) + "\n" + unused + device.out + "}\n";

  std::string out = "\n" + function_head("static int " + ident, outer) + "\n" + host_unused + host.out;
  out += fmt::format("  const int64_t grid[3] = {{{}, {}, {}}}, block[3] = {{{}, {}, {}}};\n", sizes[0][0], sizes[0][1],
                     sizes[0][2], sizes[1][0], sizes[1][1], sizes[1][2]);
  args.insert(args.begin(), {"launch", kernel, "grid", "block", fmt::format("{}", shape.shared)});
  return out + function_head("  return " + helpers.need("start"), args, ");") + "\n}\n";
}

}  // namespace mlc
