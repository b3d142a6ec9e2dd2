// Quantisation: divides by the scale, rounds ties to even, adds the zero point, saturates (the cast does).
#include "ops/rules.h"

namespace mlc {

X quantized(X real, X zero_point, DType t) {
  return cast(t, call("round_even", {real}) + cast(DType::F32, zero_point));
}

}  // namespace mlc
