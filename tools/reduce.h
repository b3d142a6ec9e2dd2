// Makes a module smaller as long as a test says that it is still of interest.
#pragma once
#include <functional>

#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

// `test`: is this text still of interest? Asked `tries` times at most.
using Interesting = std::function<bool(const std::string &text)>;

// The module with as little as possible of what it had: items, statements, loops around others, expressions in place of
// their operands, sizes, parameters, annotations; to a fixed point. `valid`: what is tried passes the verifier.
Module reduce_module(Build &b, Module m, bool valid, const Interesting &test, int64_t tries);
// Lines of any text, by ddmin (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002).
std::string reduce_lines(const std::string &text, const Interesting &test, int64_t tries);

}  // namespace mlc
