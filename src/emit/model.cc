#include "emit/model.h"

#include "arith/simplify.h"
#include "emit/body.h"
#include "emit/expand.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr int64_t kAlign = 64, kTextBelow = 64 << 10;

class ModelPrinter {
 public:
  ModelPrinter(Build &b, const Module &m, const CppOptions &options, CppModel &out, Diag &diag)
      : b_(b), m_(m), o_(options), p_(options.name), out_(out), diag_(diag),
        unit_(b, m, options.name, options.unchecked, diag) {}

  bool run() {
    const Func *f = out_.entry = entry(b_, m_);
    if (!f) {
      if (!diag_.errors()) diag_.error(kNowhere, "no graph to emit");
      return false;
    }
    f = expand(b_, m_, f, diag_);
    if (!f) return false;
    std::unordered_set<Sym> used;
    for (const Def &d : f->results) used.insert(d.name);
    Func pruned = *f;
    pruned.body = without_unused(b_, f->body, used);
    out_.entry = f = b_.make(pruned);
    ports(*f);
    if (diag_.errors()) return false;
    std::string run_text = print_run(*f);
    std::string arena = print_arena(*f);
    place_weights();
    if (diag_.errors()) return false;
    out_.header = header(*f);
    source(arena, run_text);
    return true;
  }

 private:
  template <class... A> int code(fmt::format_string<A...> f, A &&...a) {
    messages_.push_back(fmt::format(f, std::forward<A>(a)...));
    return int(messages_.size());
  }
  std::string_view text(Sym s) const { return b_.text(s); }

  // ---- inputs and outputs

  void ports(const Func &f) {
    Namer dims, in, out;
    in.reserve("dims");
    for (Sym d : f.dims) out_.dims.push_back({d, dims.make(text(d))});
    for (const Param &x : f.params) {
      if (x.mode == Mode::Scratch) {
        if (scratch_) diag_.error(x.def.at, "@{} has two scratch parameters, expected one arena", text(f.name));
        scratch_ = &x.def;
      } else {
        if (x.def.type->elem == DType::Str) diag_.error(x.def.at, "input {}: strings cannot be emitted", text(x.def.name));
        out_.inputs.push_back({x.def, in.make(text(x.def.name)), x.mode == Mode::Inout, false});
      }
    }
    for (const Def &d : f.results) {
      bool data = false;
      std::unordered_set<Sym> names;
      for (const Expr *e : d.type->dims) collect_names(e, names);
      for (Sym s : names) data |= std::find(f.dims.begin(), f.dims.end(), s) == f.dims.end();
      std::string member = out.make(text(d.name));
      out.reserve(member + "_dims"), out.reserve(member + "_capacity");
      out_.outputs.push_back({d, member, true, data && d.type->tensor});
    }
  }

  // ---- NAME_run

  std::string print_run(const Func &f) {
    BodyPrinter p(unit_, m_, f);
    for (const char *s : {"context", "in", "out", "memory", "weights"}) p.scope.namer.reserve(s);
    p.constant = [&](Sym name) { return constant(name); };
    int context = code("no context, inputs or outputs, or the context is not initialised");
    sizes_code_ = code("a size is negative, or too large");
    int arena_code = code("the arena is not given, or not aligned to {} bytes", kAlign);

    for (auto &[sym, member] : out_.dims) {
      Entity &e = p.define_dim(sym);
      e.at = p.out.size() + p.indent;
      p.line("const int64_t {} = in->dims.{};", e.ident, member);
    }
    std::string later;
    for (const Port &x : out_.inputs) {
      std::string ident = p.scope.namer.make(text(x.def.name));
      if (x.def.type->tensor) {
        pointer(p, x, "in", ident, x.written);
      } else {
        p.define_value(x.def, ident).at = p.out.size() + p.indent;
          p.line("const {} {} = {};", c_value(x.def.type->elem), ident, scalar_input(x));
      }
    }
    for (const Port &x : out_.outputs)
      if (x.def.type->tensor) pointer(p, x, "out", p.scope.namer.make(text(x.def.name)), true);
    if (scratch_) {
      std::string ident = p.scope.namer.make(text(scratch_->name));
      p.define_buffer(*scratch_, ident, true).at = p.out.size() + p.indent;
      p.line("{0} *const {1} = ({0} *)memory;", c_storage(scratch_->type->elem), ident);
    }
    p.defined = [&](Sym s) { sized(p, s); };
    p.first_code = int(messages_.size());
    p.body(f.body);
    for (const Failure &x : p.failures) {
      std::string nodes;
      for (Sym s : x.from) nodes += (nodes.empty() ? "node " : ", ") + quote(text(s));
      code("{}{}{}", nodes, nodes.empty() ? "" : ": ", x.what);
    }
    results(p);
    p.finish();

    std::string head = fmt::format("int {0}_run({0}_context *context, const {0}_in *in, {0}_out *out, void *memory) {{\n", p_);
    head += fmt::format("  if (!context || !in || !out{}) return {};\n", weights_.empty() ? "" : " || !context->weights", context);
    if (!out_.dims.empty())
      head += fmt::format("  if ({}_arena_bytes(&in->dims, context->options.threads) == 0) return {};\n", p_, sizes_code_);
    if (scratch_) head += fmt::format("  if (!memory || (uintptr_t)memory % {} != 0) return {};\n", kAlign, arena_code);
    else head += "  (void)memory;\n";
    if (out_.inputs.empty() && out_.dims.empty()) head += "  (void)in;\n";
    if (!weights_.empty()) head += fmt::format("  const {0}_weights *const weights = (const {0}_weights *)context->weights;\n", p_);
    return head + p.out + "  return 0;\n}\n";
  }

  std::string scalar_input(const Port &x) {
    DType t = x.def.type->elem;
    std::string s = "in->" + x.member;
    return is_small_float(t) ? fmt::format("{}({})", unit_.helpers.need("decode", t), s) : t == DType::Bool ? s + " != 0" : s;
  }
  // const float *const x = in->x;
  void pointer(BodyPrinter &p, const Port &x, const char *from, const std::string &ident, bool written) {
    DType t = x.def.type->elem;
    std::vector<int64_t> dims;
    bool fixed = all_static(x.def.type, &dims), empty = std::count(dims.begin(), dims.end(), 0);
    if (!fixed && !x.capacity) {
      X size;
      for (const Expr *d : x.def.type->dims) size = size ? size * X{b_, d} : X{b_, d};
      int c = code("{}put {} is a null pointer", from, quote(text(x.def.name)));
      p.line("if (!{}->{} && {} != 0) return {};", from, x.member, wrap(p.exprs.index(simplify(size).e), kSum), c);
    } else if (!empty) {
      int c = code("{}put {} is a null pointer", from, quote(text(x.def.name)));
      p.line("if (!{}->{}) return {};", from, x.member, c);
    }
    p.define_buffer(x.def, ident, written).at = p.out.size() + p.indent;
    p.line("{}{} *const {} = {}->{};", written ? "" : "const ", c_storage(t), ident, from, x.member);
  }

  // A size that is data is known from here on: is there room for what has it?
  void sized(BodyPrinter &p, Sym s) {
    for (const Port &x : out_.outputs) {
      if (!x.capacity || std::none_of(x.def.type->dims.begin(), x.def.type->dims.end(),
                                      [&](const Expr *e) { return mentions(e, s); }))
        continue;
      std::unordered_set<Sym> names;
      for (const Expr *e : x.def.type->dims) collect_names(e, names);
      if (std::any_of(names.begin(), names.end(), [&](Sym n) { return !p.scope.find(n); })) continue;
      if (!out_.capacity_code) out_.capacity_code = code("an output has too little room");
      p.line("{{");
      p.line("  bool ok = true;");
      p.line("  const int64_t elements = {};", product(p, x.def.type, 1));
      p.line("  if (!ok || elements > out->{}_capacity) return {};", x.member, out_.capacity_code);
      p.line("}}");
    }
    if (Entity *e = p.scope.find(s)) e->wild = false;
  }

  void results(BodyPrinter &p) {
    for (const Port &x : out_.outputs) {
      if (!x.def.type->tensor) {
        Entity *e = p.scope.find(p.latest(x.def.name));
        if (!e) diag_.error(x.def.at, "output {} is not defined", text(x.def.name));
        else e->seen++, p.line("out->{} = {};", x.member, e->ident);
      }
      for (size_t d = 0; x.def.type->tensor && d < x.def.type->rank(); d++)
        p.line("out->{}_dims[{}] = {};", x.member, d, p.exprs.index(x.def.type->dims[d]).s);
    }
  }

  // ---- sizes

  // An index expression with every step checked.
  std::string size(BodyPrinter &p, const Expr *e) {
    if (e->kind == Kind::Int || e->kind == Kind::Name) return p.exprs.index(e).s;
    auto two = [&](const std::string &f, const Expr *a, const Expr *b, bool flag) {
      return fmt::format("{}({}, {}{})", f, size(p, a), size(p, b), flag ? ", &ok" : "");
    };
    if (auto *x = as<Binary>(e)) {
      switch (x->op) {
        case Op::Add: return two(unit_.helpers.need("size_add"), x->a, x->b, true);
        case Op::Sub: return two(unit_.helpers.need("size_sub"), x->a, x->b, true);
        case Op::Mul: return two(unit_.helpers.need("size_mul"), x->a, x->b, true);
        case Op::FloorDiv: return two(unit_.helpers.need("floordiv", DType::I64), x->a, x->b, false);
        case Op::Mod: return two(unit_.helpers.need("mod", DType::I64), x->a, x->b, false);
        default: break;
      }
    }
    if (auto *c = as<Call>(e); c && c->args.size() == 2 && c->iters.empty() && !c->global) {
      std::string_view name = text(c->callee);
      if (name == "min" || name == "max") return two(unit_.helpers.need(name, DType::I64), c->args[0], c->args[1], false);
    }
    return p.exprs.index(e).s;
  }
  std::string product(BodyPrinter &p, const Type *t, int64_t unit) {
    int64_t fixed = unit;
    std::string s;
    for (const Expr *d : t->dims) {
      int64_t v;
      if (!int_value(d, &v)) continue;
      if (v < 0 || __builtin_mul_overflow(fixed, std::max<int64_t>(v, 1), &fixed) || fixed > int64_t(1) << 62)
        diag_.error(kNowhere, "{} is too large", print(b_, t)), fixed = 1;
    }
    s = fmt::format("{}", fixed);
    std::string times = unit_.helpers.need("size_times");
    for (const Expr *d : t->dims)
      if (d->kind != Kind::Int) s = fmt::format("{}({}, {}, &ok)", times, s, size(p, d));
    return s;
  }

  const Expr *arena_expr(const Func &f) {
    if (const Expr *e = attr(b_, f.notes.attrs, "arena_bytes")) return e;
    if (!scratch_) return b_.integer(0);
    X bytes = lit(b_, std::max<int64_t>(info(scratch_->type->elem).bits / 8, 1));
    for (const Expr *d : scratch_->type->dims) bytes = bytes * X{b_, d};
    return bytes.e;
  }

  std::string print_arena(const Func &f) {
    const Expr *bytes = arena_expr(f);
    int64_t fixed;
    std::string head = fmt::format("size_t {0}_arena_bytes(const {0}_dims *dims, int threads) {{\n", p_);
    if (out_.dims.empty()) {
      if (!int_value(simplify(b_, bytes), &fixed) || fixed < 0)
        return diag_.error(f.at, "the arena of @{} is {} bytes, expected a number", text(f.name), print(b_, bytes)), "";
      arena_bytes_ = std::max(kAlign, (fixed + kAlign - 1) / kAlign * kAlign);
      return head + fmt::format("  (void)dims;\n  (void)threads;\n  return {};\n}}\n", arena_bytes_);
    }
    BodyPrinter p(unit_, m_, f);
    for (const char *s : {"dims", "threads", "ok", "bytes"}) p.scope.namer.reserve(s);
    p.line("(void)threads;");
    p.line("bool ok = true;");
    std::unordered_set<Sym> known;
    for (auto &[sym, member] : out_.dims) {
      known.insert(sym);
      Entity &e = p.define_dim(sym);
      p.line("const int64_t {} = dims->{};", e.ident, member);
      p.line("if ({} < 0) return 0;", e.ident);
    }
    std::vector<const Type *> seen;
    auto fits = [&](const Type *t) {
      if (!t->tensor) return;
      int64_t unit = std::max(info(t->elem).bits / 8, 1);
      auto same = [&](const Type *o) { return info(o->elem).bits == info(t->elem).bits && equal(o->dims, t->dims); };
      std::unordered_set<Sym> names;
      for (const Expr *d : t->dims) collect_names(d, names);
      for (Sym s : names)
        if (!known.count(s)) return;  // checked when it is known
      std::string s = product(p, t, unit);
      if (names.empty() || std::any_of(seen.begin(), seen.end(), same)) return;
      seen.push_back(t);
      p.line("{};  // {}", s, comment_text(print(b_, b_.tensor(t->elem, t->dims))));
    };
    for (const Param &x : f.params)
      if (x.mode != Mode::Scratch) fits(x.def.type);
    for (const Def &d : f.results) fits(d.type);
    each_stmt(f.body, [&](const Stmt *s) {
      if (auto *a = as<Alloc>(s)) fits(a->def.type);
      if (auto *v = as<View>(s)) fits(v->def.type);
    });
    std::unordered_set<Sym> names;
    collect_names(bytes, names);
    for (Sym s : names)
      if (!known.count(s)) diag_.error(f.at, "the arena of @{} depends on {}, which is no dimension", text(f.name), text(s));
    if (diag_.errors()) return "";
    p.line("const int64_t bytes = {};", size(p, bytes));
    p.line("if (!ok || bytes < 0 || bytes > (int64_t)1 << 62) return 0;");
    p.line("return bytes < {0} ? {0} : (size_t)(bytes + {1}) / {0} * {0};", kAlign, kAlign - 1);
    return head + p.out + "}\n";
  }

  // ---- weights

  std::string constant(Sym name) {
    const Const *c = m_.constant(name);
    auto it = std::find_if(weights_.begin(), weights_.end(), [&](const Weight &w) { return w.constant == c; });
    if (it != weights_.end()) return "weights->" + it->member;
    std::vector<int64_t> dims;
    int64_t count = 1, bytes = -1;
    bool ok = c->type->elem != DType::Str && all_static(c->type, &dims);
    for (int64_t d : dims) ok = ok && d >= 0 && !__builtin_mul_overflow(count, d, &count);
    if (ok) bytes = storage_bytes(c->type->elem, count);
    if (bytes < 0) {
      diag_.error(c->at, "constant @{}: {} cannot be laid out", text(name), print(b_, c->type));
      return "0";
    }
    if (!bytes) return fmt::format("(const {} *)(const void *)context", c_storage(c->type->elem));
    weights_.push_back({c, members_.make(text(name)), 0, bytes});
    return "weights->" + weights_.back().member;
  }

  void place_weights() {
    int64_t at = 0;
    std::string s = fmt::format("struct {}_weights {{  // as they lie in memory, little-endian\n", p_);
    for (Weight &w : weights_) {
      w.offset = at;
      if (__builtin_add_overflow(at, (w.bytes + kAlign - 1) / kAlign * kAlign, &at))
        return diag_.error(w.constant->at, "the weights are too large");
      DType t = w.constant->type->elem;
      int64_t n = w.bytes / std::max(info(t).bits / 8, 1);
      std::string note = comment_text(print(b_, w.constant->type));
      if (!w.constant->from.empty()) note += " " + node_list(b_, w.constant->from);
      comment_lines(s, "  ", note);
      s += fmt::format("  alignas({}) {} {}[{}];\n", kAlign, c_storage(t), w.member, n);
    }
    out_.weight_bytes = at;
    out_.form = o_.weights != WeightForm::Auto ? o_.weights : at < kTextBelow ? WeightForm::Text : WeightForm::File;
    if (weights_.empty()) out_.form = WeightForm::Text;
    s += fmt::format("}};\nstatic_assert(sizeof({0}_weights) == {0}_WEIGHTS_BYTES, \"the layout of the weights\");\n", p_);
    out_.weight_struct = weights_.empty() ? "" : s;
    out_.weights = weights_;
  }

  // ---- the files

  std::string header(const Func &f) {
    std::string s;
    auto put = [&](std::string_view text) { s.append(text); };
    auto type_of = [&](const Def &d) { return comment_text(print_name(b_, d.name) + ": " + print(b_, d.type)); };
    s += fmt::format("/* {}: the graph @{} as C++.{} The emitted code belongs to its user.\n", p_, comment_text(text(f.name)),
                     o_.command.empty() ? "" : "  Made by: " + comment_text(o_.command) + ".");
    put(" *\n");
    const char *where = out_.form == WeightForm::File ? "weights, bytes" : "0, 0";
    s += fmt::format(" *   {0}_context context;\n *   {0}_init(&context, {1}, 0);\n", p_, where);
    s += fmt::format(" *   {0}_in in = {{..}};\n *   {0}_out out = {{..}};\n", p_);
    s += fmt::format(" *   void *arena = aligned_alloc(64, {0}_arena_bytes({1}, 1));\n", p_, out_.dims.empty() ? "0" : "&in.dims");
    s += fmt::format(" *   int code = {0}_run(&context, &in, &out, arena);   0, or {0}_error(code) says why\n", p_);
    put(" *\n"
        " * The caller owns all memory, aligned as its elements, the arena and the weights to 64 bytes. Nothing is allocated, no\n"
        " * library is called, nothing is written but the outputs, the arena and the context. Two contexts share nothing; a\n"
        " * context serves one call at a time. After an error the outputs hold no promise. Tensors are dense and row-major;\n"
        " * bool is a byte, f16, bf16 and f8 are their bits, types below 8 bits are packed from the low bits.\n"
        " */\n");
    s += fmt::format("#ifndef {0}_H\n#define {0}_H\n#include <stddef.h>\n#include <stdint.h>\n", p_);
    put("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");

    s += fmt::format("typedef struct {}_dims {{{}\n", p_, out_.dims.empty() ? "  /* no symbols */" : "");
    for (auto &[sym, member] : out_.dims)
      s += fmt::format("  int64_t {};{}\n", member, member == text(sym) ? "" : "  /* " + comment_text(print_name(b_, sym)) + " */");
    if (out_.dims.empty()) put("  int64_t none;\n");
    s += fmt::format("}} {}_dims;\n\n", p_);

    s += fmt::format("typedef struct {}_in {{\n", p_);
    for (const Port &x : out_.inputs) {
      bool tensor = x.def.type->tensor;
      s += fmt::format("  {}{} {}{};  /* {} */\n", tensor && !x.written ? "const " : "", c_storage(x.def.type->elem),
                       tensor ? "*" : "", x.member, type_of(x.def));
    }
    if (!out_.dims.empty() || out_.inputs.empty()) s += fmt::format("  {}_dims dims;\n", p_);
    s += fmt::format("}} {}_in;\n\n", p_);

    s += fmt::format("typedef struct {}_out {{\n", p_);
    for (const Port &x : out_.outputs) {
      bool tensor = x.def.type->tensor;
      s += fmt::format("  {} {}{};  /* {} */\n", c_storage(x.def.type->elem), tensor ? "*" : "", x.member, type_of(x.def));
      if (x.capacity) s += fmt::format("  int64_t {0}_capacity;  /* room at {0}, in elements */\n", x.member);
      if (tensor && x.def.type->rank())
        s += fmt::format("  int64_t {}_dims[{}];  /* set by {}_run */\n", x.member, x.def.type->rank(), p_);
    }
    if (out_.outputs.empty()) put("  int64_t none;\n");
    s += fmt::format("}} {}_out;\n\n", p_);

    s += fmt::format("typedef struct {0}_options {{\n"
                     "  int threads;  /* workers that parallel_for has, at least 1 */\n"
                     "  /* calls task(arg, i, worker) for all i < n, worker < threads; 0: everything runs in the caller */\n"
                     "  void (*parallel_for)(void *user, int64_t n, void (*task)(void *arg, int64_t i, int worker), void *arg);\n"
                     "  void *user;\n"
                     "}} {0}_options;\n\n"
                     "typedef struct {0}_context {{  /* not to be looked into */\n"
                     "  const void *weights;\n"
                     "  {0}_options options;\n"
                     "}} {0}_context;\n\n", p_);
    s += fmt::format("#define {0}_CONTEXT_BYTES sizeof({0}_context)\n#define {0}_WEIGHTS_BYTES {1}\n", p_, out_.weight_bytes);
    if (out_.dims.empty()) s += fmt::format("#define {}_ARENA_BYTES {}\n", p_, arena_bytes_);
    for (const Port &x : out_.inputs) bytes_macro(s, "IN", x);
    for (const Port &x : out_.outputs) bytes_macro(s, "OUT", x);
    put("\n");
    s += fmt::format("size_t {}_context_bytes(void);\n", p_);
    if (out_.form == WeightForm::File)
      s += fmt::format("/* weights: the bytes of {0}.weights, {0}_WEIGHTS_BYTES of them, which stay there; options may be 0 */\n", p_);
    else
      put("/* weights: 0 for those that are linked in; options may be 0 */\n");
    s += fmt::format("int {0}_init({0}_context *context, const void *weights, size_t bytes, const {0}_options *options);\n", p_);
    put("/* a multiple of 64, never 0 but where a size is negative or too large */\n");
    s += fmt::format("size_t {0}_arena_bytes(const {0}_dims *dims, int threads);\n", p_);
    s += fmt::format("int {0}_run({0}_context *context, const {0}_in *in, {0}_out *out, void *arena);\n", p_);
    s += fmt::format("const char *{0}_error(int code);\n", p_);
    put("\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    return s;
  }
  void bytes_macro(std::string &s, const char *side, const Port &x) {
    std::vector<int64_t> dims;
    int64_t count = 1;
    if (!x.def.type->tensor || !all_static(x.def.type, &dims)) return;
    for (int64_t d : dims) count *= d;
    s += fmt::format("#define {}_{}_{}_BYTES {}\n", p_, side, x.member, storage_bytes(x.def.type->elem, count));
  }

  std::string print_init() {
    int null = 1, size = code("the weights are not {} bytes", out_.weight_bytes);
    int align = code("the weights are not aligned to {} bytes", kAlign);
    std::string s;
    if (!weights_.empty() && out_.form == WeightForm::Object)
      s += fmt::format("extern \"C\" const unsigned char {}_weights_data[];\n\n", p_);
    if (!weights_.empty() && out_.form == WeightForm::Text)
      s += fmt::format("extern const {0}_weights {0}_weights_data;\n\n", p_);
    s += fmt::format("size_t {0}_context_bytes(void) {{ return {0}_CONTEXT_BYTES; }}\n\n", p_);
    s += fmt::format("int {0}_init({0}_context *context, const void *weights, size_t bytes, const {0}_options *options) {{\n"
                     "  if (!context) return {1};\n", p_, null);
    s += "  context->weights = 0;\n";
    if (weights_.empty()) {
      s += "  (void)weights;\n  (void)bytes;\n";
    } else {
      if (out_.form != WeightForm::File)
        s += fmt::format("  if (!weights) {{\n    weights = {0}{1}_weights_data;\n    bytes = {1}_WEIGHTS_BYTES;\n  }}\n",
                         out_.form == WeightForm::Text ? "&" : "", p_);
      s += fmt::format("  if (!weights || bytes != {}_WEIGHTS_BYTES) return {};\n", p_, size);
      s += fmt::format("  if ((uintptr_t)weights % {} != 0) return {};\n", kAlign, align);
      s += "  context->weights = weights;\n";
    }
    s += fmt::format("  context->options = options ? *options : {}_options{{1, 0, 0}};\n", p_);
    s += "  if (context->options.threads < 1) context->options.threads = 1;\n  return 0;\n}\n";
    return s;
  }

  void source(const std::string &arena, const std::string &run_text) {
    std::string init = print_init();
    std::string &s = out_.source;
    s = fmt::format("// {}: the graph @{} as C++17.{}\n", p_, comment_text(text(out_.entry->name)),
                    o_.command.empty() ? "" : "  Made by: " + comment_text(o_.command));
    s += "// Needs no library and no header but these two; results do not depend on the compiler's choice to contract a * b + c.\n";
    if (o_.one_file) s += "\n" + out_.header + "\n";
    else s += fmt::format("#include \"{}.h\"\n\n", p_);
    s += "#if defined(__FAST_MATH__)\n"
         "#error \"-ffast-math breaks NaN, infinities and the functions below\"\n"
         "#elif defined(__clang__)\n"
         "#pragma STDC FP_CONTRACT OFF\n"
         "#elif defined(__GNUC__)\n"
         "#pragma GCC optimize(\"fp-contract=off\")\n"
         "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n"
         "#endif\n";
    if (!out_.weight_struct.empty()) s += "\n" + out_.weight_struct;
    if (!unit_.helpers.text().empty()) s += "\n" + unit_.helpers.text();
    s += unit_.scalars + unit_.functions;
    s += "\n" + init + "\n" + arena + "\n";
    comment_lines(s, "", comment_text(signature()));
    s += run_text;
    s += fmt::format("\nconst char *{}_error(int code) {{\n  switch (code) {{\n    case 0: return \"no error\";\n", p_);
    for (size_t i = 0; i < messages_.size(); i++)
      s += fmt::format("    case {}: return {};\n", i + 1, string_literal(messages_[i]));
    s += "    default: return \"unknown error\";\n  }\n}\n";
  }
  std::string signature() {
    Func bare = *out_.entry;
    bare.body = {}, bare.notes = {}, bare.comment = {};
    std::string t = print(b_, static_cast<const Item *>(b_.make(bare)));
    t.resize(std::min(t.find(" {\n"), t.size()));
    return t;
  }

  Build &b_;
  const Module &m_;
  const CppOptions &o_;
  const std::string p_;
  CppModel &out_;
  Diag &diag_;
  Unit unit_;
  Namer members_;
  const Def *scratch_ = nullptr;
  std::vector<Weight> weights_;
  std::vector<std::string> messages_;
  int sizes_code_ = 0;
  int64_t arena_bytes_ = 0;
};

}  // namespace

bool emit_model(Build &b, const Module &m, const CppOptions &options, CppModel &out, Diag &diag) {
  return ModelPrinter(b, m, options, out, diag).run();
}

}  // namespace mlc
