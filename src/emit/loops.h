// Loops marked unroll and vectorize, and local buffers, in the form in which they are printed.
//
//   for i in 2 unroll { y[i] = x[i] }      ->   y[0] = x[0]
//                                               y[1] = x[1]
//   for v in 40 vectorize { .. v .. }      ->   for v in 16 vectorize { .. v .. }          16 f32 in 64 bytes
//                                               for v in 16 vectorize { .. 16 + v .. }
//                                               for v in 8 vectorize { .. 32 + v .. }
//   for v in n vectorize { .. v .. }       ->   for v_0 in n // 16 { for v in 16 vectorize { .. v_0 * 16 + v .. } }
//                                               for v in n % 16 { .. n // 16 * 16 + v .. }
//
// What is left marked vectorize has as many turns as a vector has lanes, a power of two, and can be printed as vector
// code; any other loop becomes a serial one, with a comment and a remark that say why. `if`s whose condition the
// constants decide are gone, and so are index values that are constant or differ from lane to lane: they stand where
// they are used.
//
// A local buffer whose every element is named by a constant becomes registers: its type gets the attribute
// `registers`, the lanes of one (1: scalars); other local buffers stay arrays.
#pragma once
#include <functional>

#include "base/diag.h"
#include "ir/typing.h"

namespace mlc {

struct Library {
  std::function<const Func *(std::string_view name, DType t)> find;  // @exp.f32; null: there is none
  std::function<const Module &(const Func *f)> home;                  // where its callees are
};

// f is expanded. vector_bytes: of a vector register; 0: a device's threads, loops that is_lane_copy stay.
const Func *shape_loops(Build &b, const Module &m, const Func *f, int vector_bytes, const Library &library,
                        Diag &diag);

// For a device, whose threads work on scalars: short loops marked vectorize are unrolled, others run in order, all but
// those that copy a few elements.
const Func *scalar_loops(Build &b, const Func *f);
// for v in 4 vectorize { y[..] = x[..] }: a device may do it at once.
bool is_lane_copy(const For &f);

// The bytes of the widest values that a body computes with lane by lane; 0: it has none but indices and bools.
int widest_value(const Env &env, Stmts body, const Library &library);

}  // namespace mlc
