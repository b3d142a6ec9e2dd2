// How many tiles are computed at a time.
#pragma once
#include "target/target.h"
#include "tensorize/match.h"

namespace mlc {

// Tiles of each group of the match that stay in the target's memories together: the fewest transfers for a call, as far
// as the memories hold them and what is padded for it stays small. Throws Refused where not even one of each fits.
std::vector<int64_t> tiles_at_once(State &s, const Match &m, const TargetInfo &target);

// Bytes that one unit of a type takes; symbolic dimensions are no part of an intrinsic that is matched.
int64_t tile_bytes(const Type *t);

}  // namespace mlc
