// fmt: nothing is changed; the printer makes the text canonical. Not verified, so that broken programs can be tidied.
#include "pass/pass.h"

namespace mlc {

extern const Pass pass_fmt;
const Pass pass_fmt = {"fmt", "Print a module in canonical form", {}, [](Build &, Module &, const Options &, Diag &) {},
                       Stage::Planned, false};

}  // namespace mlc
