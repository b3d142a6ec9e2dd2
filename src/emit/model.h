// A planned module as host C++: NAME.h, NAME.cc and where its weights lie (design of the interface: man/mlc-codegen.1).
// Nothing here touches files.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/diag.h"
#include "ir/module.h"

namespace mlc {

enum class WeightForm : uint8_t {
  Auto,    // Text below 64 KB, else File
  File,    // NAME.weights, given to NAME_init
  Text,    // NAME_weights.cc
  Object,  // NAME.weights, linked in by NAME_weights.S
};

enum class RunChecks : uint8_t {
  None,
  Assumed,     // what the module assumes
  Subscripts,  // and that subscripts which are not proved inside are so
};

struct CppOptions {
  std::string name;        // prefix of all that is external: a legal identifier
  WeightForm weights = WeightForm::Auto;
  bool one_file = false;   // the header's text and that of the weights stand in the source
  RunChecks checks = RunChecks::Assumed;
  bool cuda = false;       // NAME.cu for a device; kernels are synced
  const char *form = "C++";  // what is emitted beside the header
  std::string command;     // that makes these files, for their first lines
};

struct Port {  // an input or output
  Def def;
  std::string member;  // of NAME_in or NAME_out
  bool written;        // an `inout` parameter
  bool capacity;       // an output whose size is data: NAME_out has `member_capacity`
  const Expr *most = nullptr;  // of such an output: elements that are enough, in the open dimensions; null: not known
};
struct Weight {
  const Const *constant;
  std::string member;
  int64_t offset, bytes;  // in the weights, aligned to 64
};

struct CppModel {
  const Func *entry = nullptr;
  WeightForm form = WeightForm::File;
  std::string header, source;
  std::vector<std::pair<Sym, std::string>> dims;  // symbols and members of NAME_dims
  std::vector<Port> inputs, outputs;
  std::vector<Weight> weights;
  int64_t weight_bytes = 0;
  std::string weight_struct;  // its C++ text
  std::string extension = "cc";  // of the source
  int64_t device_arena_bytes = 0;  // of cuda: where no dimension is open, of NAME_run_device
  std::vector<std::string> links;  // "-lopenblas": what its libraries need
  int capacity_code = 0;      // what NAME_run returns where an output has too little room; 0: nowhere
};

// The entry must be planned. False: diag says why.
bool emit_model(Build &b, const Module &m, const CppOptions &options, CppModel &out, Diag &diag);

// NAME_weights.cc: the constants as text; bytes(w): w.bytes of them.
std::string weight_text(const Build &b, const CppModel &model, const CppOptions &options,
                        const std::function<std::span<const std::byte>(const Weight &)> &bytes);

// The other files of a project, as text. arena_bytes: where no dimension is open.
std::string header_text(const Build &b, const CppModel &model, const CppOptions &options, int64_t arena_bytes);
std::string main_text(Build &b, const CppModel &model, const CppOptions &options);
std::string cmake_text(const CppModel &model, const CppOptions &options, bool with_main);
std::string make_text(const CppModel &model, const CppOptions &options, bool with_main);
std::string assembly_text(const CppOptions &options);

}  // namespace mlc
