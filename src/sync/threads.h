// Rules R1 and R2 of man/mlc-sync.1: one nest of threads, and reductions across them.
//
//   for b in n bind blockIdx.x {                       for b in n bind blockIdx.x
//     alloc s: f32[] in shared                         for t in 64 bind threadIdx.x {
//     s[] = 0.0                                          s[] = 0.0                                    all threads
//     for k in 4                                         alloc s.own: f32[] in local
//     for t in 64 bind threadIdx.x {            ->       s.own[] = 0.0
//       s[] = s[] + x[b, k * 64 + t]                     for k in 4 { s.own[] = s.own[] + .. }
//     }                                                  .. s.own[] combined over the block's threads
//     y[b] = s[]                                         s[] = s[] + s.own[]
//   }                                                    if t == 0 { y[b] = s[] }
//                                                      }
#pragma once
#include "base/diag.h"
#include "ir/module.h"
#include "ir/walk.h"

namespace mlc {

struct Thread {   // a tag that is bound below a block
  Sym tag, name;  // threadIdx.x, and the loop over it
  int64_t extent;
};

// What a launch is, without barriers and with its buffers where they were: loops over blocks, those over threads, and
// what each thread does.
struct Nest {
  std::vector<const Stmt *> head;     // outermost lines in front of the loops: assumptions, scalars
  std::vector<Iter> blocks;
  std::vector<Sym> block_tags;
  std::vector<Thread> threads;        // z, y, x
  std::string_view comment;
  Stmts body;
};

// False after an error.
bool threads_joined(Build &b, const Module &m, const Func *f, Nest &out, Diag &diag);

}  // namespace mlc
