#include "ir/words.h"

namespace mlc {

// In the order of the tokens of grammar/mlc.yy; the two numbers last.
static constexpr std::string_view kWords[] = {
    "mlc",    "file",    "device", "const", "graph",  "group",  "kernel",   "scalar",    "reducer", "extern", "intrinsic",
    "target", "schedule", "desc",  "impl",  "code",   "memory", "thread",   "use",       "dataflow", "alloc", "view",
    "call",   "assume",  "compute", "block", "spatial", "reduce", "scan",   "guard",     "reads",   "writes", "init",
    "for",    "in",      "if",     "else",  "while",  "loop",   "carry",    "yield",     "stack",   "parallel", "vectorize",
    "unroll", "bind",    "attr",   "from",  "at",     "on",     "inout",    "scratch",   "atomic",  "none",   "true",
    "false",  "inf",     "nan"};

std::span<const std::string_view> reserved_words() { return kWords; }

}  // namespace mlc
