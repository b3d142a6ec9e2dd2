// check: the verifier as a tool; the text comes out as mlc-fmt prints it. With --verbose everything is proved that can be,
// and what cannot is listed.
#include "check/check.h"

#include "pass/pass.h"

namespace mlc {

static void run(Build &b, Module &m, const Options &, Diag &diag) { check(b, m, diag, diag.verbose); }

extern const Pass pass_check;
const Pass pass_check = {"check", "Verify a module", {}, run, Stage::Planned, false};

}  // namespace mlc
