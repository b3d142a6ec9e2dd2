// What a target's lines may say.
#pragma once
#include <optional>
#include <string>

#include "ir/build.h"

namespace mlc {

struct TargetFault {
  uint32_t at;  // in the target's text
  std::string message;
};

// The first line of t that says what it cannot: `attr vector_bytes: expected .., found ..`. Keys that nothing knows are
// the user's own, unless they are nearly one that is known.
std::optional<TargetFault> fault_of(const Build &b, const Target &t);

}  // namespace mlc
