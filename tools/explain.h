// Which node of a failing case is wrong: every intermediate value, computed by the case's route, is compared with the
// interpreter's of operators, and that with ONNX Runtime's or the reference evaluator's of the onnx package, where
// `python` has one of them.
#pragma once
#include <string>

#include "conformance.h"

namespace mlc {

// Some lines, the last without its end. `python`: a command, as `python3`.
std::string explain(const std::string &folder, const CaseOptions &options, const std::string &python);

}  // namespace mlc
