// What a text that a tool reads by the way, a target or a library, is refused for.
#pragma once
#include "base/diag.h"

namespace mlc {

// The first error, `FILE:LINE:COL: message`, and nothing of the lines that would follow it. Forgets all that there is.
std::string first_error(Diag &diag);

}  // namespace mlc
