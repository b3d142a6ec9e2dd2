#include "emit/cuda.h"

#include "arith/simplify.h"
#include "emit/body.h"
#include "emit/sizes.h"
#include "ops/expr.h"

namespace mlc {
namespace {

constexpr int64_t kAlign = 64;

class Entries {
 public:
  Entries(Unit &unit, const CudaEntries &e, int64_t *fixed)
      : u_(unit), b_(unit.b), e_(e), fixed_(fixed), p_(unit.prefix) {}

  std::string run() {
    std::string arena = arena_bytes(), run = run_text();
    return "\n" + arena + "\n" + upload() + "\n" + run;
  }

 private:
  // Elements of a port: what there is, of an output whose size is data the most that there can be; null: not known.
  const Expr *elements(const Port &x) {
    if (x.capacity) {
      if (!x.most)
        u_.diag.error(x.def.at,
                      "output {}: its size is data and has no upper bound, which is not supported here (assume {} "
                      "<= ..)",
                      b_.text(x.def.name), print_name(x));
      return x.most;
    }
    X n = lit(b_, int64_t{1});
    for (const Expr *d : x.def.type->dims) n = n * X(b_, d);
    return simplify(n).e;
  }
  std::string print_name(const Port &x) const {
    std::unordered_set<Sym> names;
    for (const Expr *d : x.def.type->dims) collect_names(d, names);
    std::string first;
    for (Sym s : names)
      if (first.empty() || b_.text(s) < first) first = b_.text(s);
    return first;
  }
  template <class F> void each_port(const F &f) {
    for (const Port &x : e_.model.inputs)
      if (x.def.type->tensor) f(x, true);
    for (const Port &x : e_.model.outputs)
      if (x.def.type->tensor) f(x, false);
  }
  static std::string bytes(DType t, const std::string &elements) {
    int bits = info(t).bits;
    return bits < 8 ? fmt::format("((size_t)({}) * {} + 7) / 8", elements, bits)
           : bits == 8 ? fmt::format("(size_t)({})", elements) : fmt::format("(size_t)({}) * {}", elements, bits / 8);
  }
  // A printer that knows the dimensions as `from` has them.
  void dims(BodyPrinter &p, const std::string &from) {
    for (auto &[sym, member] : e_.model.dims) p.define_dim(sym).ident = from + member;
    for (const Port &x : e_.model.inputs)
      if (!x.def.type->tensor) p.define_value(x.def, "in->" + x.member);
  }

  std::string arena_bytes() {
    std::string head = fmt::format("size_t {0}_arena_bytes(const {0}_dims *dims, int threads) {{\n", p_);
    BodyPrinter p(u_, u_.m, e_.entry);
    dims(p, "dims->");
    int64_t total = *fixed_ + e_.weight_bytes;
    bool fixed = e_.model.dims.empty();
    p.line("size_t bytes = {}_device_arena_bytes(dims, threads);", p_);
    p.line("if (bytes == 0) return 0;");
    if (e_.weight_bytes) p.line("bytes += {}_WEIGHTS_BYTES;", p_);
    bool index_inputs = false;
    each_port([&](const Port &x, bool) {
      const Expr *n = elements(x);
      int64_t count = 0;
      if (!n) return;
      if (int_value(n, &count)) {
        int64_t size = (storage_bytes(x.def.type->elem, count) + kAlign - 1) / kAlign * kAlign;
        total += size;
        if (size) p.line("bytes += {};  // {}", size, x.member);
        return;
      }
      std::unordered_set<Sym> names;
      collect_names(n, names);
      for (Sym s : names)
        index_inputs |= std::none_of(e_.model.dims.begin(), e_.model.dims.end(), [&](auto &d) { return d.first == s; });
      p.line("bytes += ({} + {}) / {} * {};  // {}", bytes(x.def.type->elem, p.exprs.index(n).s), kAlign - 1, kAlign,
             kAlign, x.member);
    });
    if (index_inputs)
      u_.diag.error(e_.entry.at, "@{}: a size that is an input of its own is not supported here",
                    b_.text(e_.entry.name));
    if (fixed) *fixed_ = total;
    p.line("return bytes < (size_t)1 << 62 ? bytes : 0;");
    return head + p.out + "}\n";
  }

  std::string upload() const {
    std::string s =
        fmt::format("int {0}_upload({0}_context *context, void *device, struct CUstream_st *stream) {{\n", p_);
    if (!e_.weight_bytes)
      return s + "  (void)device;\n  (void)stream;\n" +
             fmt::format("  return context ? 0 : {};\n}}\n", e_.codes.context);
    s += fmt::format("  if (!context || !context->weights || !device) return {};\n", e_.codes.context);
    s += fmt::format(
        "  const cudaError_t e = cudaMemcpyAsync(device, context->weights, {}_WEIGHTS_BYTES, cudaMemcpyHostToDevice, "
        "stream);\n",
        p_);
    return s + "  if (e == cudaSuccess) context->device_weights = device;\n  return -(int)e;\n}\n";
  }

  std::string run_text() {
    BodyPrinter p(u_, u_.m, e_.entry);
    dims(p, "in->dims.");
    std::string stage = u_.helpers.need("stage"), back = u_.helpers.need("back");
    std::string weights = e_.weight_bytes ? " || !context->weights" : "";
    p.line("if (!context || !in || !out{}) return {};", weights, e_.codes.context);
    p.line("const size_t device = {}_device_arena_bytes({}, context->options.threads);", p_,
           e_.model.dims.empty() ? "0" : "&in->dims");
    p.line("if (device == 0) return {};", e_.codes.sizes);
    p.line("if (!memory || (uintptr_t)memory % {} != 0) return {};", kAlign, e_.codes.arena);
    p.line("unsigned char *at = (unsigned char *)memory + device;");
    p.line("int code = 0;");
    p.line("{}_context on_device = *context;", p_);
    if (e_.weight_bytes) {
      p.line("if (!on_device.device_weights) {{");
      p.line("  on_device.device_weights = at;");
      p.line("  code = {}(&at, context->weights, {}_WEIGHTS_BYTES);", stage, p_);
      p.line("  if (code) return code;");
      p.line("}}");
    }
    p.line("{}_in device_in = *in;", p_);
    p.line("{}_out device_out = *out;", p_);
    each_port([&](const Port &x, bool input) {
      const Expr *n = elements(x);
      if (!n) return;
      std::string size = bytes(x.def.type->elem, p.exprs.index(n).s), storage(c_storage(x.def.type->elem));
      auto null = e_.codes.null.find(x.def.name);
      const char *side = input ? "in" : "out";
      p.line("{{  // {}", x.member);
      p.line("  const size_t bytes = {};", size);
      if (null != e_.codes.null.end()) p.line("  if (!{}->{} && bytes != 0) return {};", side, x.member, null->second);
      p.line("  device_{}.{} = ({}{} *)at;", side, x.member, input && !x.written ? "const " : "", storage);
      if (input) {
        p.line("  code = {}(&at, in->{}, bytes);", stage, x.member);
        p.line("  if (code) return code;");
      } else {
        if (x.capacity) {
          std::string most = p.exprs.index(n).s;
          p.line("  if (device_out.{0}_capacity > {1}) device_out.{0}_capacity = {1};", x.member, most);
        }
        p.line("  at += (bytes + {}) / {} * {};", kAlign - 1, kAlign, kAlign);
      }
      p.line("}}");
    });
    p.line("code = {}_run_device(&on_device, &device_in, &device_out, memory, 0);", p_);
    p.line("if (code) return code;");
    each_port([&](const Port &x, bool input) {
      if (input && !x.written) return;
      DType t = x.def.type->elem;
      std::string n;
      if (input) {
        n = p.exprs.index(elements(x)).s;
      } else {
        for (size_t d = 0; d < x.def.type->rank(); d++)
          n += fmt::format("{}device_out.{}_dims[{}]", d ? " * " : "", x.member, d);
        if (n.empty()) n = "1";
      }
      p.line("code = {}({}->{}, device_{}.{}, {});", back, input ? "in" : "out", x.member, input ? "in" : "out",
             x.member, bytes(t, n));
      p.line("if (code) return code;");
    });
    for (const Port &x : e_.model.outputs) {
      if (x.def.type->tensor) {
        for (size_t d = 0; d < x.def.type->rank(); d++)
          p.line("out->{0}_dims[{1}] = device_out.{0}_dims[{1}];", x.member, d);
      } else {
        p.line("out->{0} = device_out.{0};", x.member);
      }
    }
    p.line("return -(int)cudaStreamSynchronize(0);");
    return fmt::format("int {0}_run({0}_context *context, const {0}_in *in, {0}_out *out, void *memory) {{\n", p_) +
           p.out + "}\n";
  }

  Unit &u_;
  Build &b_;
  const CudaEntries &e_;
  int64_t *fixed_;
  std::string p_;
};

}  // namespace

std::string cuda_entries(Unit &unit, const CudaEntries &e, int64_t *fixed) { return Entries(unit, e, fixed).run(); }

}  // namespace mlc
