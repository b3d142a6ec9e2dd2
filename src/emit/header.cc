// NAME.h: plain C.
#include "emit/helpers.h"
#include "emit/model.h"
#include "emit/names.h"
#include "text/text.h"

namespace mlc {
namespace {

// $P is the name of the model.
constexpr std::string_view kContract = R"( *
 * The caller owns all memory: buffers aligned as their elements, the arena and the weights to 64 bytes. Nothing is
 * allocated, no library is called, nothing is written but outputs, arena and context. Two contexts share nothing; one
 * serves one call at a time. After an error the outputs hold no promise. Tensors are dense and row-major; bool is a
 * byte, f16, bf16 and f8 are their bits, types below 8 bits are packed from the low bits. The code belongs to its user.
 */
#ifndef $P_H
#define $P_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

)";

constexpr std::string_view kCudaContract = R"( *
 * NAME_run takes and gives what lies on the host, NAME_run_device what lies on the device; the arena of both is device
 * memory, aligned to 64 bytes. NAME_upload keeps the weights on the device; without it each run copies them. NAME_run
 * waits for its results; NAME_run_device only where the host reads a value or a failure. Other than that: the caller
 * owns all memory, nothing is allocated, nothing is written but outputs, arena and context. Two contexts share nothing;
 * one serves one call at a time. After an error the outputs hold no promise. Tensors are dense and row-major; bool is a
 * byte, f16, bf16 and f8 are their bits, types below 8 bits are packed from the low bits. The code belongs to its user.
 */
#ifndef $P_H
#define $P_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* a cudaStream_t points to it */

)";

constexpr std::string_view kTypes = R"(typedef struct $P_options {
  int threads; /* workers that parallel_for has, at least 1 */
  /* calls task(arg, i, worker) for all i < n, worker < threads; 0: everything runs in the caller */
  void (*parallel_for)(void *user, int64_t n, void (*task)(void *arg, int64_t i, int worker), void *arg);
  void *user;
} $P_options;

typedef struct $P_context { /* not to be looked into */
  const void *weights;$DEVICE
  $P_options options;
} $P_context;

)";

constexpr std::string_view kDevice = R"(/* the arena of $P_run_device: the same, without room for weights, inputs and outputs */
size_t $P_device_arena_bytes(const $P_dims *dims, int threads);
/* the same of pointers to device memory, in a stream (0: the default one); needs $P_upload where there are weights */
int $P_run_device($P_context *context, const $P_in *in, $P_out *out, void *arena, struct CUstream_st *stream);
/* copies the weights to $P_WEIGHTS_BYTES bytes of the device, which must stay; aligned to 64 */
int $P_upload($P_context *context, void *device, struct CUstream_st *stream);
/* codes below 0 are those of CUDA, negative */
)";

constexpr std::string_view kFunctions = R"(
int $P_init($P_context *context, const void *weights, size_t bytes, const $P_options *options);
/* a multiple of 64; 0 only where a size is negative or too large */
size_t $P_arena_bytes(const $P_dims *dims, int threads);
/* 0, or a code that $P_error explains */
int $P_run($P_context *context, const $P_in *in, $P_out *out, void *arena);
$RUN_DEVICEconst char *$P_error(int code);

#ifdef __cplusplus
}
#endif
#endif
)";

}  // namespace

// The libraries that the module's externs are of.
static std::string libraries(const CppModel &model) {
  std::string list;
  for (const std::string &l : model.links) list += (list.empty() ? "" : ", ") + l;
  return list.empty() ? "no library is called" : "no library is called but " + list;
}

std::string header_text(const Build &b, const CppModel &model, const CppOptions &o, int64_t arena_bytes) {
  const std::string &p = o.name;
  auto filled = [&](std::string_view text) {
    std::string s(text);
    auto put = [&](std::string_view word, std::string_view by) {
      for (size_t at; (at = s.find(word)) != s.npos;) s.replace(at, word.size(), by);
    };
    put("$DEVICE", o.cuda ? "\n  void *device_weights;" : "");
    put("$RUN_DEVICE", o.cuda ? kDevice : "");
    put("$P", p);
    if (o.cuda) put("NAME_", p + "_");
    return s;
  };
  auto note = [&](const Def &d) { return comment_text(print_name(b, d.name) + ": " + print(b, d.type)); };
  bool file = model.form == WeightForm::File && !model.weights.empty(), fixed = model.dims.empty();

  std::string s =
      fmt::format("/* {}: the graph @{} as {}.{}\n *\n", p, comment_text(b.text(model.entry->name)),
                  o.cuda ? "CUDA C++" : o.form, o.command.empty() ? "" : " Made by: " + comment_text(o.command));
  const char *weights = file ? "weights, bytes" : "0, 0";
  s += fmt::format(" *   {0}_context context;\n *   {0}_init(&context, {1}, 0);\n", p, weights);
  s += fmt::format(" *   {0}_in in = {{..}};\n *   {0}_out out = {{..}};\n", p);
  if (o.cuda)
    s += fmt::format(" *   void *arena;\n *   cudaMalloc(&arena, {}_arena_bytes({}, 1));\n", p,
                     fixed ? "0" : "&in.dims");
  else s += fmt::format(" *   void *arena = aligned_alloc(64, {}_arena_bytes({}, 1));\n", p, fixed ? "0" : "&in.dims");
  s += fmt::format(" *   int code = {0}_run(&context, &in, &out, arena);\n *   if (code) puts({0}_error(code));\n", p);
  std::string contract = filled(o.cuda ? kCudaContract : kContract);
  constexpr std::string_view kNone = "no library is called";
  if (size_t at = contract.find(kNone); at != contract.npos) contract.replace(at, kNone.size(), libraries(model));
  s += contract;

  s += fmt::format("typedef struct {}_dims {{\n", p);
  for (auto &[sym, member] : model.dims) {
    bool same = member == b.text(sym);
    s += fmt::format("  int64_t {};{}\n", member, same ? "" : " /* " + comment_text(print_name(b, sym)) + " */");
  }
  if (fixed) s += "  int64_t none; /* no dimension is open */\n";
  s += fmt::format("}} {0}_dims;\n\ntypedef struct {0}_in {{\n", p);
  for (const Port &x : model.inputs) {
    bool tensor = x.def.type->tensor;
    s += fmt::format("  {}{} {}{}; /* {}{} */\n", tensor && !x.written ? "const " : "", c_storage(x.def.type->elem),
                     tensor ? "*" : "", x.member, note(x.def), x.written ? ", changed in place" : "");
  }
  if (!fixed || model.inputs.empty()) s += fmt::format("  {}_dims dims;\n", p);
  s += fmt::format("}} {0}_in;\n\ntypedef struct {0}_out {{\n", p);
  for (const Port &x : model.outputs) {
    bool tensor = x.def.type->tensor;
    s += fmt::format("  {} {}{}; /* {} */\n", c_storage(x.def.type->elem), tensor ? "*" : "", x.member, note(x.def));
    if (x.capacity) {
      std::string enough = x.most ? fmt::format("; {} are enough", comment_text(print(b, x.most))) : "";
      s += fmt::format("  int64_t {0}_capacity; /* room at {0}, in elements{1} */\n", x.member, enough);
    }
    if (tensor && x.def.type->rank())
      s += fmt::format("  int64_t {}_dims[{}]; /* set by {}_run */\n", x.member, x.def.type->rank(), p);
  }
  if (model.outputs.empty()) s += "  int64_t none;\n";
  s += fmt::format("}} {}_out;\n\n", p) + filled(kTypes);

  s += fmt::format("#define {0}_CONTEXT_BYTES sizeof({0}_context)\n", p);
  s += fmt::format("#define {0}_WEIGHTS_BYTES {1}\n", p, model.weight_bytes);
  if (fixed) s += fmt::format("#define {}_ARENA_BYTES {}\n", p, arena_bytes);
  if (fixed && o.cuda) s += fmt::format("#define {}_DEVICE_ARENA_BYTES {}\n", p, model.device_arena_bytes);
  auto bytes = [&](const char *side, const Port &x) {
    std::vector<int64_t> dims;
    int64_t count = 1;
    if (!x.def.type->tensor || !(x.most ? int_value(x.most, &count) : all_static(x.def.type, &dims))) return;
    for (int64_t d : dims) count *= d;
    s += fmt::format("#define {}_{}_{}_BYTES {}\n", p, side, x.member, storage_bytes(x.def.type->elem, count));
  };
  for (const Port &x : model.inputs) bytes("IN", x);
  for (const Port &x : model.outputs) bytes("OUT", x);
  s += fmt::format("\nsize_t {}_context_bytes(void);\n", p);
  if (file)
    s += fmt::format("/* weights: the {0}_WEIGHTS_BYTES bytes of {0}.weights, which must stay; options may be 0 */", p);
  else
    s += "/* weights: 0 for those that are linked in; options may be 0 */";
  return s + filled(kFunctions);
}

}  // namespace mlc
