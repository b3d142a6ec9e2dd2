// Items of a module.
#include "check/check.h"

#include "check/checker.h"
#include "ops/ops.h"
#include "text/text.h"

namespace mlc {

namespace {

class ModuleChecker {
 public:
  ModuleChecker(Build &b, const Module &m, Diag &diag, bool prove) : b_(b), m_(m), diag_(diag), prove_(prove) {}

  void run() {
    for (const Item *i : m_.items) {
      unique(i);
      if (auto *f = as<File>(i)) file(*f);
    }
    for (const Item *i : m_.items) {
      if (auto *c = as<Const>(i)) constant(*c);
      if (auto *f = as<Func>(i)) FuncChecker(b_, m_, *f, diag_, prove_).run();
    }
    for (const Item *i : m_.items)
      if (auto *f = as<Func>(i)) cycle(f);
  }

 private:
  // A name is defined once; an equal item may come again (cat a.mlc b.mlc).
  void unique(const Item *i) {
    const Item *before = nullptr;
    std::string what;
    if (Sym name = name_of(i)) {
      auto [it, fresh] = names_.try_emplace(name, i);
      if (!fresh) before = it->second, what = "@" + std::string(b_.text(name));
    } else if (auto *d = as<Device>(i)) {
      what = d->index < 0 ? std::string(b_.text(d->name)) : fmt::format("{}:{}", b_.text(d->name), d->index);
      auto [it, fresh] = devices_.try_emplace(what, i);
      if (!fresh) before = it->second;
    } else if (auto *f = as<File>(i)) {
      auto [it, fresh] = files_.try_emplace(f->path, f);
      if (!fresh) before = it->second, what = quote(f->path);
    }
    if (!before || equal(before, i)) return;
    diag_.error(i->at, "{} is defined already", what);
    diag_.note(before->at, "{} is defined here", what);
  }

  void file(const File &f) {
    for (const Attr &a : f.attrs) {
      std::string_view key = b_.text(a.key);
      int64_t n;
      auto *s = as<Str>(a.value);
      if (key == "bytes" ? !int_value(a.value, &n) || n < 0 : key == "sha256" ? !s || s->value.size() != 64 : false)
        diag_.error(a.at, "{} of a file is {}, found {}", key, key == "bytes" ? "its size" : "64 hexadecimal digits",
                    print(b_, a.value));
      else if (key != "bytes" && key != "sha256")
        diag_.error(a.at, "a file has no attribute {}: expected bytes or sha256", key);
    }
  }

  void constant(const Const &c) {
    std::string name = "@" + std::string(b_.text(c.name));
    auto error = [&](uint32_t at, std::string_view message) {
      diag_.error(at == kNowhere ? c.at : at, "{}: {}", name, message);
    };
    std::vector<int64_t> dims;
    if (!c.type->tensor && (c.type->elem == DType::Index || c.type->elem == DType::Mbarrier))
      return error(c.at, "a constant has no such type");
    if (!all_static(c.type, &dims)) return error(c.at, "sizes of a constant are numbers, found " + print(b_, c.type));
    int64_t count = 1, bytes = 0;
    for (int64_t d : dims)
      if (d < 0 || __builtin_mul_overflow(count, d, &count)) return error(c.at, "impossible size " + print(b_, c.type));
    if (c.type->elem != DType::Str && (bytes = storage_bytes(c.type->elem, count)) < 0)
      return error(c.at, "impossible size " + print(b_, c.type));
    if (!c.value) {
      auto f = files_.find(c.path);
      int64_t have;
      if (c.type->elem == DType::Str) error(c.at, "strings stand in the text, not in a file");
      if (c.offset < 0) error(c.at, fmt::format("offset {} in a file", c.offset));
      if (f == files_.end() || !int_value(attr(b_, f->second->attrs, "bytes"), &have)) return;
      if (bytes > have || c.offset > have - bytes)
        error(c.at, fmt::format("ends at byte {} of {}, which has {}", c.offset + bytes, quote(c.path), have));
      return;
    }
    if (auto *call = as<Call>(c.value)) return computed(c, *call);
    Env env(b_, m_, nullptr);
    TypeError err;
    if (auto *l = as<List>(c.value)) {
      if (int64_t(l->items.size()) != count)
        return error(c.value->at, fmt::format("expected {}, found {}", counted(count, "value"), l->items.size()));
      for (const Expr *e : l->items)
        if (!literal(e) || type_of(env, e, c.type->elem, &err) == DType::Invalid)
          return error(e->at, literal(e) ? err.message : "expected a literal, found " + print(b_, e));
      return;
    }
    if (!literal(c.value)) error(c.value->at, "expected a literal, a list or an operator, found " + print(b_, c.value));
    else if (type_of(env, c.value, c.type->elem, &err) == DType::Invalid) error(c.value->at, err.message);
  }
  static bool literal(const Expr *e) {
    return e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool || e->kind == Kind::Str;
  }

  // const @p: T = LayoutTransform(@w) {map = ..}; what it needs stands before or behind it, never in a circle.
  void computed(const Const &c, const Call &call) {
    std::string_view op_name = b_.text(call.callee);
    const OpInfo *op = call.global || !call.iters.empty() ? nullptr : find_op(op_name);
    if (!op) return diag_.error(c.value->at, "@{}: no operator {}", b_.text(c.name), op_name);
    std::vector<const Type *> types;
    for (const Expr *a : call.args) {
      auto *g = as<Global>(a);
      const Const *arg = g ? m_.constant(g->name) : nullptr;
      if (g && !arg) return diag_.error(a->at, "no constant @{} in the module", b_.text(g->name));
      if (!g && a->kind != Kind::None && a->kind != Kind::List && !literal(a))
        return diag_.error(a->at, "expected a constant or a literal, found {}", print(b_, a));
      types.push_back(arg ? arg->type : nullptr);
    }
    if (in_circle(&c)) return diag_.error(c.at, "@{} is computed from itself", b_.text(c.name));
    OpUse use(b_, *op, types, call.args, c.attrs, &m_);
    use.wanted = c.type;
    try {
      auto found = infer(use);
      const Type *plain = b_.tensor(c.type->elem, c.type->dims);
      if (!found.empty() && found[0] != plain)
        diag_.error(c.at, "@{}: expected {} as {} gives it, found {}", b_.text(c.name), print(b_, found[0]), op_name,
                    print(b_, plain));
    } catch (const OpError &e) {
      diag_.error(c.value->at, "{}: {}", op_name, e.what());
    }
  }
  bool in_circle(const Const *start) {
    std::unordered_set<const Const *> seen;
    std::function<bool(const Const *)> reaches = [&](const Const *c) {
      auto *call = as<Call>(c->value);
      for (const Expr *a : call ? call->args : Exprs{}) {
        auto *g = as<Global>(a);
        const Const *next = g ? m_.constant(g->name) : nullptr;
        if (next == start || (next && seen.insert(next).second && reaches(next))) return true;
      }
      return false;
    };
    return reaches(start);
  }

  // No function calls itself, however indirectly: everything is inlined or has its memory planned.
  void cycle(const Func *f) {
    int &state = visited_[f];
    if (state) return;
    state = 1;
    auto look = [&](const Expr *e) {
      auto *c = as<Call>(e);
      const Func *callee = c && c->global ? m_.func(c->callee) : nullptr;
      if (!callee) return true;
      if (visited_[callee] == 1) diag_.error(e->at, "@{} calls itself", b_.text(callee->name));
      cycle(callee);
      return true;
    };
    for (Stmts l : {f->inits, f->body}) each_expr_in(l, look);
    for (const Part &p : f->parts) each_expr_in(p.body, look);
    visited_[f] = 2;
  }

  Build &b_;
  const Module &m_;
  Diag &diag_;
  bool prove_;
  std::unordered_map<Sym, const Item *> names_;
  std::unordered_map<std::string, const Item *> devices_;
  std::unordered_map<std::string_view, const File *> files_;
  std::unordered_map<const Func *, int> visited_;  // 1: under way, 2: done
};

}  // namespace

bool check(Build &b, const Module &m, Diag &diag, bool prove) {
  size_t before = diag.errors();
  ModuleChecker(b, m, diag, prove).run();
  return diag.errors() == before;
}

}  // namespace mlc
