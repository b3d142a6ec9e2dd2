#include "emit/model.h"

#include "arith/simplify.h"
#include "emit/checked.h"
#include "emit/cuda.h"
#include "emit/expand.h"
#include "emit/sizes.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr int64_t kAlign = 64, kTextBelow = 64 << 10;

// NVRTC has no headers, and a CPU none of CUDA's: there share/mlc/cuda/mlc_cuda.h runs blocks as fibers.
constexpr std::string_view kPrelude = R"(#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define __builtin_memcpy memcpy
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_nanf(s) __int_as_float(0x7fc00000)
#define __builtin_nan(s) __longlong_as_double(0x7ff8000000000000ll)
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_copysignf copysignf
#define __builtin_copysign copysign
#define __builtin_signbit signbit
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_fmaf fmaf
#define __builtin_fma fma
#else
#if defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#include "$CUDA"
#pragma GCC optimize("fp-contract=off")
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
)";

class ModelPrinter {
 public:
  ModelPrinter(Build &b, const Module &m, const CppOptions &options, CppModel &out, Diag &diag)
      : b_(b), m_(m), o_(options), p_(options.name), out_(out), diag_(diag),
        unit_(b, m, options.name, options.checks, diag, options.cuda) {}

  bool run() {
    const Func *f = out_.entry = entry(b_, m_);
    if (!f) {
      if (!diag_.errors()) diag_.error(kNowhere, "no graph to emit, nor one kernel alone");
      return false;
    }
    f = expand(b_, m_, f, diag_);
    if (!f) return false;
    if (o_.cuda) out_.extension = "cu";
    std::unordered_set<Sym> used;
    for (const Def &d : f->results) used.insert(d.name);
    Func pruned = *f;
    pruned.body = without_unused(b_, f->body, used);
    f = b_.make(pruned);
    if (o_.checks == RunChecks::Subscripts) f = with_checks(b_, m_, f, diag_);
    out_.entry = f;
    ports(*f);
    if (diag_.errors()) return false;
    std::string run_text = print_run(*f);
    std::string arena = arena_text(unit_, *f, out_, scratch_, o_.cuda, &arena_bytes_);
    place_weights();
    if (diag_.errors()) return false;
    if (o_.cuda) {
      out_.device_arena_bytes = arena_bytes_;
      CudaEntries e{out_, *f, codes_, weights_.empty() ? 0 : out_.weight_bytes};
      arena += cuda_entries(unit_, e, &arena_bytes_);
      if (diag_.errors()) return false;
    }
    out_.links = unit_.links;
    out_.header = header_text(b_, out_, o_, arena_bytes_);
    source(arena, run_text);
    return true;
  }

 private:
  template <class... A> int code(fmt::format_string<A...> f, A &&...a) {
    messages_.push_back(fmt::format(f, std::forward<A>(a)...));
    return int(messages_.size());
  }
  std::string_view text(Sym s) const { return b_.text(s); }
  std::string filled(std::string s) const {  // $P is the name of the model
    for (size_t at; (at = s.find("$P")) != s.npos;) s.replace(at, 2, p_);
    return s;
  }

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
        if (x.def.type->elem == DType::Str)
          diag_.error(x.def.at, "input {}: strings cannot be emitted", text(x.def.name));
        out_.inputs.push_back({x.def, in.make(text(x.def.name)), x.mode == Mode::Inout, false});
      }
    }
    for (const Def &d : f.results) {
      bool data = false;
      std::unordered_set<Sym> names;
      for (const Expr *e : d.type->dims) collect_names(e, names);
      for (Sym s : names) data |= std::find(f.dims.begin(), f.dims.end(), s) == f.dims.end();
      if (d.type->elem == DType::Str) diag_.error(d.at, "output {}: strings cannot be emitted", text(d.name));
      std::string member = out.make(text(d.name));
      while (out.is_taken(member + "_dims") || out.is_taken(member + "_capacity")) member = out.make(text(d.name));
      out.reserve(member + "_dims"), out.reserve(member + "_capacity");
      out_.outputs.push_back({d, member, true, data && d.type->tensor});
      if (auto *list = as<List>(attr(b_, d.type->attrs, "capacity")); list && out_.outputs.back().capacity) {
        X most = lit(b_, 1);
        for (const Expr *e : list->items) most = most * X(b_, e);
        out_.outputs.back().most = simplify(most).e;
      }
    }
  }

  // ---- NAME_run

  std::string print_run(const Func &f) {
    BodyPrinter p(unit_, m_, f);
    for (const char *s : {"context", "in", "out", "memory", "weights"}) p.scope.namer.reserve(s);
    p.constant = [&](Sym name) { return constant(name); };
    p.options = "&context->options";
    if (o_.cuda) {
      p.side = Side::Host;
      for (const char *s : {"launch", "stream", "state"}) p.scope.namer.reserve(s);
    }
    int context = code("no context, inputs or outputs, or the context is not initialised");
    int sizes = code("a size is negative, or too large");
    int arena = code("the arena is not given, or not aligned to {} bytes", kAlign);
    codes_ = {context, sizes, arena, {}};

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
    for (const Port &x : out_.outputs)
      if (x.capacity && !out_.capacity_code) out_.capacity_code = code("an output has too little room");
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

    if (o_.cuda) return print_device_run(p, f);
    std::string weights = weights_.empty() ? "" : " || !context->weights";
    std::string head = filled("int $P_run($P_context *context, const $P_in *in, $P_out *out, void *memory) {\n");
    head += fmt::format("  if (!context || !in || !out{}) return {};\n", weights, context);
    if (!out_.dims.empty())
      head += fmt::format("  if ({}_arena_bytes(&in->dims, context->options.threads) == 0) return {};\n", p_, sizes);
    if (scratch_) head += fmt::format("  if (!memory || (uintptr_t)memory % {} != 0) return {};\n", kAlign, arena);
    else head += "  (void)memory;\n";
    if (out_.inputs.empty() && out_.dims.empty()) head += "  (void)in;\n";
    if (!weights_.empty())
      head += filled("  const $P_weights *const weights = (const $P_weights *)context->weights;\n");
    return head + p.out + "  return 0;\n}\n";
  }

  // What is the same for all devices; everything in memory is on the device.
  std::string print_device_run(BodyPrinter &p, const Func &f) {
    std::string s = filled(
        "int $P_run_device($P_context *context, const $P_in *in, $P_out *out, void *memory,\n"
        "    struct CUstream_st *stream) {\n");
    s += fmt::format("  if (!context || !in || !out{}) return {};\n",
                     weights_.empty() ? "" : " || !context->device_weights", codes_.context);
    if (!out_.dims.empty())
      s += fmt::format("  if ({}_device_arena_bytes(&in->dims, context->options.threads) == 0) return {};\n", p_,
                       codes_.sizes);
    s += fmt::format("  if (!memory || (uintptr_t)memory % {} != 0) return {};\n", kAlign, codes_.arena);
    if (out_.inputs.empty() && out_.dims.empty()) s += "  (void)in;\n";
    if (!weights_.empty())
      s += filled("  const $P_weights *const weights = (const $P_weights *)context->device_weights;\n");
    std::string launch = unit_.helpers.need("launch");
    s += fmt::format("  const {0} state = {{stream, (int *)memory}};\n  const {0} *const launch = &state;\n", launch);
    s += fmt::format("  memory = (unsigned char *)memory + {};\n", kAlign);
    bool reads = (p.out + unit_.functions).find(unit_.prefix + "_read(") != std::string::npos;
    if (unit_.device_fails || reads)
      s += fmt::format("  const cudaError_t cleared = cudaMemsetAsync(launch->failed, 0, {}, stream);\n"
                       "  if (cleared != cudaSuccess) return -(int)cleared;\n", kAlign);
    if (!scratch_) s += "  (void)memory;\n";
    s += "  (void)launch;\n" + p.out;
    (void)f;
    return s + (unit_.device_fails ? fmt::format("  return {}(launch);\n}}\n", unit_.helpers.need("finish"))
                                   : "  return 0;\n}\n");
  }

  std::string scalar_input(const Port &x) {
    DType t = x.def.type->elem;
    std::string s = "in->" + x.member;
    if (is_small_float(t)) return fmt::format("{}({})", unit_.helpers.need("decode", t), s);
    return t == DType::Bool ? s + " != 0" : s;
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
      codes_.null[x.def.name] = c;
    } else if (!empty) {
      int c = code("{}put {} is a null pointer", from, quote(text(x.def.name)));
      p.line("if (!{}->{}) return {};", from, x.member, c);
      codes_.null[x.def.name] = c;
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
      p.line("{{");
      p.line("  bool ok = true;");
      p.line("  const int64_t elements = {};", checked_product(p, unit_.helpers, x.def.type, 1, diag_));
      p.line("  if (!ok || elements > out->{}_capacity) return {};", x.member, out_.capacity_code);
      p.line("}}");
      for (Sym n : names) p.scope.find(n)->wild = false;
    }
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

  // ---- weights

  std::string constant(Sym name) {
    const Const *c = m_.constant(name);
    if (auto it = weight_of_.find(name); it != weight_of_.end()) return "weights->" + weights_[it->second].member;
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
    weight_of_[name] = weights_.size();
    weights_.push_back({c, members_.make(text(name)), 0, bytes});
    return "weights->" + weights_.back().member;
  }

  void place_weights() {
    int64_t at = 0;
    std::string s = fmt::format("struct {}_weights {{  // as they lie in memory\n", p_);
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
    bool text = at < kTextBelow || o_.one_file;  // a file that compiles by itself
    out_.form = o_.weights != WeightForm::Auto ? o_.weights : text ? WeightForm::Text : WeightForm::File;
    if (weights_.empty()) out_.form = WeightForm::Text;
    s += filled("};\nstatic_assert(sizeof($P_weights) == $P_WEIGHTS_BYTES, \"the layout of the weights\");\n");
    out_.weight_struct = weights_.empty() ? "" : s;
    out_.weights = weights_;
  }

  // ---- the files

  std::string print_init() {
    int null = 1, size = code("the weights are not {} bytes", out_.weight_bytes);
    int align = code("the weights are not aligned to {} bytes", kAlign);
    bool linked = !weights_.empty() && out_.form != WeightForm::File, object = out_.form == WeightForm::Object;
    std::string s;
    if (linked && object) s += "extern \"C\" const unsigned char $P_weights_data[];\n\n";
    if (linked && !object) s += "extern const $P_weights $P_weights_data;\n\n";
    s += "size_t $P_context_bytes(void) { return $P_CONTEXT_BYTES; }\n\n"
         "int $P_init($P_context *context, const void *weights, size_t bytes, const $P_options *options) {\n";
    s += fmt::format("  if (!context) return {};\n  context->weights = 0;\n", null);
    if (o_.cuda) s += "  context->device_weights = 0;\n";
    std::unordered_set<std::string_view> words;
    collect_identifiers(unit_.functions, words);
    bool wide = words.count(p_ + "_AVX512");
    if (wide || words.count(p_ + "_AVX2"))
      s += fmt::format("  if (!{}({})) return {};\n", unit_.helpers.need("cpu_has"), wide,
                       code("the CPU has no {}", wide ? "AVX-512" : "AVX2 and FMA"));
    for (auto &[cond, message] : unit_.conditions()) s += fmt::format("  if (!({})) return {};\n", cond, code("{}", message));
    if (linked)
      s += fmt::format("  if (!weights) {{\n    weights = {}$P_weights_data;\n    bytes = $P_WEIGHTS_BYTES;\n  }}\n",
                       object ? "" : "&");
    if (weights_.empty()) {
      s += "  (void)weights;\n  (void)bytes;\n";
    } else {
      s += fmt::format("  if (!weights || bytes != $P_WEIGHTS_BYTES) return {};\n", size);
      s += fmt::format("  if ((uintptr_t)weights % {} != 0) return {};\n", kAlign, align);
      s += "  context->weights = weights;\n";
    }
    s += "  context->options = options ? *options : $P_options{1, 0, 0};\n"
         "  if (context->options.threads < 1) context->options.threads = 1;\n  return 0;\n}\n";
    return filled(s);
  }

  void source(const std::string &arena, const std::string &run_text) {
    std::string init = print_init();
    std::string &s = out_.source;
    if (o_.cuda) return cuda_source(init, arena, run_text);
    s = fmt::format("// {}: the graph @{} as C++17.{}\n", p_, comment_text(text(out_.entry->name)),
                    o_.command.empty() ? "" : " Made by: " + comment_text(o_.command));
    for (const std::string &l : out_.links) s += fmt::format("// Link with {}\n", l);
    if (o_.one_file) s += "\n" + out_.header + "\n";
    else s += fmt::format("#include \"{}.h\"\n\n", p_);
    s += includes();
    if (std::string first = unit_.prelude(); !first.empty()) s += first + "\n";
    s += "#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)\n"
         "#error \"-ffast-math and its parts break NaN, infinities and the functions below\"\n"
         "#elif defined(__clang__)\n"
         "#pragma STDC FP_CONTRACT OFF\n"
         "#elif defined(__GNUC__)\n"
         "#pragma GCC optimize(\"fp-contract=off\", \"tree-vectorize\", \"vect-cost-model=dynamic\")\n"
         "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n"
         "#endif\n";
    if (!weights_.empty() && out_.form != WeightForm::Text)
      s += "#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n#error \"the weights are little-endian\"\n#endif\n";
    if (!out_.weight_struct.empty()) s += "\n" + out_.weight_struct;
    if (!unit_.declarations.empty()) s += "\n" + unit_.declarations;
    std::string body = unit_.functions + "\n" + init + "\n" + arena + "\n";
    comment_lines(body, "", comment_text(signature()));
    body += run_text;
    std::string scalars = used_definitions(unit_.scalars, body), helpers = unit_.helpers.text(scalars + body);
    s += (helpers.empty() ? "" : "\n" + helpers) + scalars + body + errors();
  }
  std::string errors() const {
    std::string s = fmt::format("\nconst char *{}_error(int code) {{\n", p_);
    if (o_.cuda) s += "  if (code < 0) return cudaGetErrorString((cudaError_t)-code);\n";
    s += "  switch (code) {\n    case 0: return \"no error\";\n";
    for (size_t i = 0; i < messages_.size(); i++)
      s += fmt::format("    case {}: return {};\n", i + 1, string_literal(messages_[i]));
    return s + "    default: return \"unknown error\";\n  }\n}\n";
  }

  std::string includes() const {  // of the libraries that externs are of
    std::string s;
    for (const std::string &i : unit_.includes) s += fmt::format("#include {}\n", i);
    return s.empty() ? s : s + "\n";
  }

  // prelude | kernels | host
  void cuda_source(const std::string &init, const std::string &arena, const std::string &run_text) {
    std::string &s = out_.source;
    s = fmt::format("// {}: the graph @{} as CUDA C++17, for nvcc -fmad=false.{}\n", p_,
                    comment_text(text(out_.entry->name)),
                    o_.command.empty() ? "" : " Made by: " + comment_text(o_.command));
    std::string prelude(kPrelude);
    s += prelude.replace(prelude.find("$CUDA"), 5, "mlc_cuda.h");
    if (o_.one_file) s += out_.header + "#endif\n";
    else s += fmt::format("#include \"{}.h\"\n#endif\n", p_);
    if (std::string first = unit_.prelude(); !first.empty()) s += "\n" + first;
    std::string host = unit_.functions + "\n" + init + "\n" + arena + "\n";
    comment_lines(host, "", comment_text(signature()));
    host += run_text + errors();
    std::string scalars = used_definitions(unit_.scalars, unit_.kernels), device = scalars + unit_.kernels;
    std::string helpers = unit_.helpers.text(device), more = used_definitions(unit_.scalars, host, unit_.kernels);
    s += (helpers.empty() ? "" : "\n" + helpers) + device + "\n#if !defined(__CUDACC_RTC__)\n" + includes() +
         unit_.declarations;
    if (!out_.weight_struct.empty()) s += "\n" + out_.weight_struct;
    helpers = unit_.helpers.text(more + host, device);
    s += (helpers.empty() ? "" : "\n" + helpers) + more + host + "\n#endif\n";
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
  std::unordered_map<Sym, size_t> weight_of_;
  std::vector<std::string> messages_;
  CudaCodes codes_;
  int64_t arena_bytes_ = 0;
};

}  // namespace

bool emit_model(Build &b, const Module &m, const CppOptions &options, CppModel &out, Diag &diag) {
  return ModelPrinter(b, m, options, out, diag).run();
}

}  // namespace mlc
