// The expansions that the table of extras.cc names. Included by src/onnx/*.cc only.
#pragma once
#include "onnx/expand.h"

namespace mlc::onnx {

#define EXTRA(domain, op, first, attributes, expansion) void expansion(Expansion &e);
#include "onnx/extras.def"
#undef EXTRA

}  // namespace mlc::onnx
