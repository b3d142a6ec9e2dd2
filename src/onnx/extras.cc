#include "onnx/extras.h"

namespace mlc::onnx {

namespace {
constexpr Extra kExtras[] = {
#define EXTRA(domain, op, first, attributes, expansion) {domain, {op, first, attributes}, expansion},
#include "onnx/extras.def"
#undef EXTRA
};
}  // namespace

const Extra *find_extra(Text domain, Text op) {
  for (const Extra &e : kExtras)
    if (e.schema.name == op && (e.domain == domain || (e.domain.empty() && is_default_domain(domain)))) return &e;
  return nullptr;
}

}  // namespace mlc::onnx
