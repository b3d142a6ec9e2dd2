// Kernels as a device runs them, and the host that launches them; the rules R1, R2, R7 are told in man/mlc-sync.1.
//
//   for b in 8 bind blockIdx.x {                          attr stage = "synced"
//     alloc s: f32[16] in shared                          for b in 8 bind blockIdx.x
//     for t in 16 bind threadIdx.x { s[t] = x[b, t] }     for t in 16 bind threadIdx.x {
//     for u in 16 bind threadIdx.x {                 ->     alloc smem: u8[64] in shared
//       y[b, u] = s[15 - u]                                 alloc s: f32[16] in shared = smem at 0
//     }                                                     s[t] = x[b, t]
//   }                                                       call barrier("block")
//                                                           y[b, t] = s[15 - t]
//                                                         }
#pragma once
#include "base/diag.h"
#include "ir/module.h"
#include "target/target.h"

namespace mlc {

// All kernels of the module. Those without bound loops get them by a rule (sync/bind.h); what a kernel does in several
// launches becomes a graph of its name; copies and fills of planned graphs become kernels where no transfer does it.
// Errors: what a device of this target cannot run, with what is needed and what there is.
void sync_module(Build &b, Module &m, const TargetInfo &target, Diag &diag);

}  // namespace mlc
