// The stage of a function, seen from its text (man/mlc.5, "Stages").
#pragma once
#include <string_view>

#include "ir/module.h"

namespace mlc {

class Build;

enum class Stage : uint8_t {
  Operators,  // graphs: values, and calls outside `dataflow`
  Groups,     // a graph that is to become one kernel
  Computes,   // kernels of `alloc` and `compute`
  Blocks,     // loops and blocks: what can be scheduled
  Compacted,  // no blocks; buffers in the shape of their storage
  Planned,    // graphs of calls into buffers that the caller gave
};

// `attr stage = "compacted"` decides, else what stands in the body. Of an extern, intrinsic, reducer or scalar
// function: the stage of its description.
Stage stage_of(const Build &b, const Func &f);
std::string_view stage_name(Stage s);  // "operators" ...
// False if there is no stage of that name. "synced" is Compacted.
bool stage_named(std::string_view name, Stage *s);
// `attr stage = "synced"`: compacted, and flat: the bound loops are outermost, each thread's share is spelt out.
bool is_synced(const Build &b, const Func &f);

}  // namespace mlc
