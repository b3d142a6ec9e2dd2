// Kernels with the intrinsics of a target in the place of what these describe: schedules, written by rule.
//
//   find blocks that are an intrinsic's description, tile after tile      match.h
//   fuse, pad and pack what they compute into whole tiles                 pack_einsum
//   as many tiles at a time as the target's memories hold                 split, reorder
//   operands and results through the memories that the intrinsic wants    cache_read, cache_write, transform_layout
//   the calls themselves, those that move and clear tiles too             tensorize
//
// All that is done is steps of mlc-sched(5); what cannot be done leaves the kernel as it was.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/diag.h"
#include "target/target.h"

namespace mlc {

struct TensorizeOptions {
  std::string kernel = "*";  // a pattern with * and ?
  std::string intrinsic;     // only this one, with those that move its operands; empty: all of the target
  bool strict = false;       // sums of floats are left: their order is kept
};

// m with the intrinsics of the target's text that it does not have itself.
Module with_intrinsics(const Module &m, const TargetInfo &target);

// The scripts for the kernels of m, which holds the target's intrinsics. Remarks say what was found, and what was left
// and why.
std::vector<const Schedule *> tensorize_scripts(Build &b, const Module &m, const TargetInfo &target,
                                                const TensorizeOptions &options, Diag &diag);

// What a target's intrinsics would take of kernels, for those who leave it to them.
class Takers {
 public:
  Takers(Build &b, const Module &m, const TargetInfo &target, const TensorizeOptions &options);
  ~Takers();
  struct Taken {
    Sym block, intrinsic;
  };
  // The blocks of which tensorize_scripts would make calls; tried out, so that what is refused is not among them.
  std::vector<Taken> of(const Func *kernel) const;

 private:
  struct Found;
  std::unique_ptr<Found> found_;
};

// m with what the scripts call of the target in it (the target too), and the scripts: at the end, for apply_schedules.
std::vector<const Item *> with_instructions(Build &b, const Module &m, const TargetInfo &target,
                                            const std::vector<const Schedule *> &scripts);

}  // namespace mlc
