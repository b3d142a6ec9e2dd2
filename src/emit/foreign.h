// Externs in emitted code: library functions that graphs and kernels call (man/mlc.5, man/mlc-dispatch.1).
//
// One with an `impl` becomes a static function of its code; in it `$x` is a parameter, result or dimension, `$$` a
// dollar, `$fail` the statement that ends the run with an error, `$stream` the CUDA stream of a run on the device, else 0. One without is a C function that is linked in:
//
//   extern @my.conv[n](x: f32[n], s: index) -> (y: f32[n])     extern "C" void my_conv(int64_t n, const float *x,
//     { attr symbol = "my_conv"  desc { .. } }                      int64_t s, float *y);
//
// its dimensions, then parameters, then results, in the order of the text; with `attr returns = "int"` it returns 0 if
// all is well. `attr include = "<cblas.h>"` and `attr link = "openblas"`, or lists of these, say what it needs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/diag.h"
#include "emit/names.h"
#include "ir/module.h"

namespace mlc {

struct Foreign {
  std::string text;       // the function, or its declaration
  std::vector<bool> dims;  // which of its dimensions it takes
  bool fails = false;      // it returns an int
  bool stream = false;     // its first parameter is a stream
};

// `ident` is the name that the function gets in the file. Nothing: diag says why.
// cuda: it is called with device memory.
std::optional<Foreign> foreign_function(Build &b, const Func &f, const std::string &ident, bool cuda, Diag &diag);

// What is called: the symbol of one without an impl, else nothing.
std::optional<std::string> foreign_symbol(const Build &b, const Func &f);

std::vector<std::string> foreign_includes(const Build &b, const Func &f, Diag &diag);  // "<cblas.h>"
// "openblas" -> -lopenblas; what begins with `-`, or is a file, stays as it is. An error for what no linker takes.
std::vector<std::string> foreign_links(const Build &b, const Func &f, Diag &diag);

}  // namespace mlc
