#include "emit/unit.h"

#include "emit/body.h"
#include "emit/checked.h"
#include "emit/expand.h"
#include "emit/foreign.h"
#include "math/math.h"
#include "text/text.h"

namespace mlc {
namespace {

// kernel @f[n](x: f32[n]) -> (y: f32[n])
std::string head_line(Build &b, const Func &f) {
  Func bare = f;
  bare.body = {}, bare.inits = {}, bare.notes = {}, bare.comment = {};
  std::string s = print(b, static_cast<const Item *>(b.make(bare)));
  s.resize(std::min(s.find(" {\n"), s.size()));
  if (s.ends_with(" {}")) s.resize(s.size() - 3);
  return comment_text(s);
}

static std::unordered_set<std::string_view> features(const Build &b, const Func &f) {
  std::unordered_set<std::string_view> has;
  if (auto *l = as<List>(attr(b, f.notes.attrs, "features")))
    for (const Expr *e : l->items)
      if (auto *s = as<Str>(e)) has.insert(s->value);
  return has;
}

// The bytes of a vector: what every x86-64 has, unless the function says `attr features = ["avx2", ..]`.
int vector_bytes(const Build &b, const Func &f) {
  auto has = features(b, f);
  auto all = [&](std::initializer_list<std::string_view> names) {
    return std::all_of(names.begin(), names.end(), [&](std::string_view n) { return has.count(n); });
  };
  return all({"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"}) ? 64 : all({"avx2", "fma"}) ? 32 : 16;
}

static std::string_view fma_helper(const Build &b, const Func &f) {
  return vector_bytes(b, f) > 16 ? "fma_native" : features(b, f).count("neon") ? "fma_neon" : "fma";
}

// Its statements carry the nodes that they come from.
bool says_nodes(const Func &f) {
  bool yes = false;
  each_stmt(f.body, [&](const Stmt *s) { yes |= as<Store>(s) && !to<Store>(s).from.empty(); });
  return yes;
}

}  // namespace

Sym defined_by(const Stmt *s) {
  if (auto *l = as<Let>(s)) return l->defs.size() == 1 ? l->defs[0].name : Sym{};
  if (auto *a = as<Alloc>(s)) return a->def.name;
  if (auto *v = as<View>(s)) return v->def.name;
  return {};
}

std::unordered_set<std::string_view> in_place(const Build &b, const Func &f) {
  std::unordered_set<std::string_view> names;
  if (auto *pairs = as<List>(attr(b, f.notes.attrs, "inplace")))
    for (const Expr *p : pairs->items)
      if (auto *pair = as<List>(p))
        for (const Expr *n : pair->items)
          if (auto *s = as<Str>(n)) names.insert(s->value);
  return names;
}

std::string function_comment(Build &b, const Func &f, Syms nodes) {
  std::string out = "\n";
  comment_lines(out, "", head_line(b, f));
  if (!nodes.empty() && !says_nodes(f)) comment_lines(out, "", "from " + node_list(b, nodes));
  return out;
}

std::string function_head(std::string head, const std::vector<std::string> &params, std::string_view end) {
  head += "(";
  for (size_t i = 0; i < params.size(); i++) {  // four more columns where the line is full
    std::string item = params[i] + std::string(i + 1 < params.size() ? "," : end);
    if (head.size() - (head.rfind('\n') + 1) + item.size() > 119) head += "\n   ";
    head += (i || head.back() == ' ' ? " " : "") + item;
  }
  return params.empty() ? head + std::string(end) : head;
}

Unit::Unit(Build &b, const Module &m, const std::string &prefix, RunChecks checks, Diag &diag, bool cuda)
    : b(b), m(m), prefix(prefix), checks(checks), cuda(cuda), diag(diag), helpers(prefix, cuda) {
  for (std::string_view s : {"dims", "in", "out", "context", "options", "weights", "weights_data", "context_bytes",
                             "init", "arena_bytes", "run", "error", "device_arena_bytes", "run_device", "upload"})
    globals.reserve(fmt::format("{}_{}", prefix, s));
  math_library_.find = [this](std::string_view name, DType t) { return library(name, t); };
  math_library_.home = [this](const Func *f) -> const Module & {
    return math_ && math_->func(f->name) == f ? *math_ : this->m;
  };
}

// PREFIX_name, clear of the macros of the header and of helpers.
std::string Unit::global_name(Sym name) {
  std::string s = identifier(b.text(name));
  bool upper = std::none_of(s.begin(), s.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return globals.make(fmt::format("{}_{}{}", prefix, upper || helpers.may_be(s) ? "fn_" : "", s));
}

void Unit::use(Sym constant) { constants_.insert(constant); }

const Emitted *Unit::function(Sym name, Syms nodes) {
  if (auto it = emitted_.find(name); it != emitted_.end()) return &it->second;
  const Func *f = m.func(name);
  if (!open_.insert(name).second) {
    diag.error(f->at, "@{} calls itself", b.text(name));
    return nullptr;
  }
  if (f->device && !cuda) {
    diag.error(f->at, "@{} runs on {}: it cannot be called in host code", b.text(name), b.text(f->device));
    return nullptr;
  }
  auto *stage = as<Str>(attr(b, f->notes.attrs, "stage"));
  bool synced = stage && stage->value == "synced";
  if (f->func == FuncKind::Kernel && synced != cuda) {
    if (synced) diag.error(f->at, "@{} is synced: it runs on a device, as --target cuda-sm_80 emits it", b.text(name));
    else diag.error(f->at, "@{} is not synced: run mlc-sync first", b.text(name));
    return nullptr;
  }
  if (f->func == FuncKind::Extern) return foreign(*f);
  size_t errors = diag.errors();
  const Func *flat = expand(b, m, f, diag, !cuda);
  if (!flat) return nullptr;
  if (checks == RunChecks::Subscripts) flat = with_checks(b, m, flat, diag);
  if (synced) flat = scalar_loops(b, flat);
  flat = shape_loops(b, m, flat, synced ? 0 : vector_bytes(b, *flat), math_library_, diag);
  Emitted e;
  e.ident = global_name(name);
  std::string text = synced ? print_launch(*flat, e.ident, nodes, e) : print_function(*flat, e.ident, nodes, e);
  if (diag.errors() != errors) return nullptr;
  functions += text;
  open_.erase(name);
  return &emitted_.emplace(name, std::move(e)).first->second;
}

const Emitted *Unit::foreign(const Func &f) {
  Emitted e;
  auto symbol = foreign_symbol(b, f);
  e.ident = symbol ? *symbol : global_name(f.name);
  size_t errors = diag.errors();
  auto made = foreign_function(b, f, e.ident, cuda, diag);
  auto add = [](std::vector<std::string> &all, const std::vector<std::string> &more) {
    for (const std::string &s : more)
      if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  };
  add(includes, foreign_includes(b, f, diag));
  add(links, foreign_links(b, f, diag));
  if (diag.errors() != errors || !made) return nullptr;
  e.dims = made->dims;
  e.stream = made->stream;
  if (made->fails) e.failures.push_back({{}, fmt::format("@{}: the library reports a failure", b.text(f.name))});
  if (symbol) {
    if (declarations.find(made->text) == declarations.npos) declarations += made->text;
  } else {
    functions += "\n";
    comment_lines(functions, "", head_line(b, f));
    functions += made->text;
  }
  open_.erase(f.name);
  return &emitted_.emplace(f.name, std::move(e)).first->second;
}

std::string Unit::print_function(const Func &f, const std::string &ident, Syms nodes, Emitted &info) {
  std::unordered_set<Sym> used;
  for (const Def &d : f.results) used.insert(d.name);
  Stmts body = without_unused(b, f.body, used);
  BodyPrinter p(*this, m, f);
  p.exprs.fma = fma_helper(b, f);
  p.name = ident;
  p.scope.namer.reserve("options");
  if (cuda) {
    p.side = Side::Host, p.first = "first";
    for (const char *word : {"launch", "first"}) p.scope.namer.reserve(word);
  }
  std::vector<std::pair<std::string, std::string>> params;  // "const float *__restrict", "x"
  auto alias = in_place(b, f);
  for (Sym d : f.dims) p.define_dim(d);
  auto buffer = [&](const Def &d, bool written) {
    std::string name = p.scope.namer.make(b.text(d.name));
    std::string type = fmt::format("{}{} *{}", written ? "" : "const ", c_storage(d.type->elem),
                                   alias.count(b.text(d.name)) ? "" : "__restrict ");
    p.define_buffer(d, name, written).alone = !alias.count(b.text(d.name));
    params.push_back({type, name});
  };
  for (const Param &x : f.params) {
    if (x.def.type->tensor) {
      buffer(x.def, x.mode != Mode::In);
    } else {
      std::string name = p.scope.namer.make(b.text(x.def.name));
      p.define_value(x.def, name);
      params.push_back({fmt::format("{} ", c_value(x.def.type->elem)), name});
    }
  }
  for (const Def &d : f.results) {
    if (d.type->tensor) {
      buffer(d, true);
      continue;
    }
    std::string name = p.scope.namer.make(std::string(b.text(d.name)) + "_out");
    params.push_back({fmt::format("{} *__restrict ", c_value(d.type->elem)), name});
  }
  p.body(body);
  size_t next = f.params.size();
  for (const Def &d : f.results) {
    std::string out = params[next++].second;
    if (d.type->tensor) continue;
    Entity *e = p.scope.find(p.latest(d.name));
    if (!e) diag.error(d.at, "@{}: {} is not defined", b.text(f.name), b.text(d.name));
    else e->seen++, p.line("*{} = {};", out, e->ident);
  }
  p.finish();

  info.failures = p.failures, info.constants = p.constants;
  std::vector<std::string> list;
  std::string unused;
  auto add = [&](const std::string &type, const std::string &name) { list.push_back(type + name); };
  for (Sym d : f.dims) {
    Entity *e = p.scope.find(d);
    info.dims.push_back(e->seen);
    if (e->seen) add("int64_t ", e->ident);
  }
  for (auto &[type, name] : params) add(type, name);
  auto check = [&](Sym name) {
    if (Entity *e = p.scope.find(name); e && !e->seen) unused += fmt::format("  (void){};\n", e->ident);
  };
  for (const Param &x : f.params) check(x.def.name);
  for (const Def &d : f.results)
    if (d.type->tensor) check(d.name);
  for (Sym k : p.constants) {
    use(k);
    add(fmt::format("const {} *__restrict ", c_storage(m.constant(k)->type->elem)), p.constant_idents.at(k));
  }
  info.parallel = p.uses_options;
  if (info.parallel) add(fmt::format("const {}_options *", prefix), "options");
  std::string out = p.tasks + function_comment(b, f, nodes);
  bool fails = cuda || !info.failures.empty();
  std::string head = fmt::format("static {}{}__attribute__((noinline)) {} {}", cuda ? "" : helpers.attribute(p.out),
                                 cuda ? "" : needs_attribute(p.needs), fails ? "int" : "void", ident);
  if (cuda) {
    list.insert(list.begin(), {fmt::format("const {} *launch", helpers.need("launch")), "int first"});
    unused += "  (void)launch;\n  (void)first;\n";
  }
  return out + function_head(head, list) + "\n" + unused + p.prologue + p.out + (fails ? "  return 0;\n}\n" : "}\n");
}

const Func *Unit::library(std::string_view name, DType t, bool fused) {
  if (!math_) math_ = math_module(b);
  return scalar_function(b, *math_, name, t, fused);
}

// Lets alone: what can be printed on vectors.
static bool is_straight(const Func &f) {
  return std::all_of(f.body.begin(), f.body.end(), [](const Stmt *s) { return s->kind == Kind::Let; });
}

bool Unit::has_fma_inside(const Func *f, std::unordered_set<const Func *> &seen) const {
  if (!seen.insert(f).second) return false;
  const Module &home = math_library_.home(f);
  bool found = false;
  each_stmt(f->body, [&](const Stmt *s) {
    each_expr_of(s, [&](const Expr *e) {
      each_expr(e, [&](const Expr *x) {
        auto *c = as<Call>(x);
        const Func *callee = c && c->global ? home.func(c->callee) : nullptr;
        found |= c && (callee ? has_fma_inside(callee, seen) : b.text(c->callee) == "fma");
        return !found;
      });
    });
  });
  return found;
}

std::string Unit::scalar(const Func *f, int lanes, std::string_view fma) {
  std::unordered_set<const Func *> seen;
  if (!has_fma_inside(f, seen)) fma = "fma";
  auto [it, fresh] = scalar_names_.try_emplace({f, lanes, fma});
  if (!fresh) {
    if (it->second.empty()) diag.error(f->at, "@{} calls itself", b.text(f->name));
    return it->second;
  }
  const Module &home = math_library_.home(f);
  const Func *flat = expand(b, home, f, diag);
  if (!flat) return "";
  std::vector<DType> types;
  for (const Param &x : f->params) types.push_back(x.def.type->elem);
  DType result = f->results[0].type->elem;
  if (lanes && !is_straight(*flat))
    return scalar_names_[{f, lanes, fma}] = helpers.lane_calls(scalar(f, 0, fma), types, result, lanes);
  std::unordered_set<Sym> used{f->results[0].name};
  BodyPrinter p(*this, home, *flat);
  p.scope.lanes.n = lanes;
  p.exprs.fma = fma;
  std::string list;
  for (const Param &x : f->params) {
    DType t = x.def.type->elem;
    std::string name = p.scope.namer.make(b.text(x.def.name)), type(c_value(t));
    Entity &e = p.define_value(x.def, name);
    e.lanes = lanes, e.mask = lanes && t == DType::Bool ? 32 : 0;
    if (lanes) type = p.exprs.lanes_type(t, e.mask);
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", type, name);
  }
  p.body(without_unused(b, flat->body, used));
  Entity *y = p.scope.find(p.latest(f->results[0].name));
  if (!y) {
    diag.error(f->at, "@{} does not define {}", b.text(f->name), b.text(f->results[0].name));
    return "";
  }
  y->seen++;
  Text value{y->ident, kPrimary, result, false, "", y->lanes, y->mask};
  if (lanes) value = result == DType::Bool ? p.exprs.mask(value, 32) : p.exprs.vector(value, result);
  p.line("return {};", value.s);
  std::string unused;
  for (const Param &x : f->params)
    if (Entity *e = p.scope.find(x.def.name); e && !e->seen) unused += fmt::format("  (void){};\n", e->ident);
  p.finish();
  std::string ident = global_name(f->name), type(c_value(result));
  if (lanes) ident = globals.make(fmt::format("{}x{}", ident, lanes)), type = p.exprs.lanes_type(result, 32);
  std::string text = fmt::format("{} {}({}) {{\n{}{}}}\n", type, ident, list, unused, p.out);
  scalars.push_back({ident, fmt::format("\nstatic inline {}{}", helpers.attribute(text), text)});
  return scalar_names_[{f, lanes, fma}] = ident;
}

}  // namespace mlc
