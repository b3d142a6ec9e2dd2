// All passes, in alphabetical order of their files: the table that CMake writes.
#pragma once
#include "pass/pass.h"

namespace mlc {

std::span<const Pass *const> all_passes();

}  // namespace mlc
