// Blocks that dissolve into what reads them, or into what they read.
#pragma once
#include "sched/state.h"

namespace mlc {

// y[i, j] = e, read as y[a, b]  ->  e with i = a, j = b; block and buffer are gone. Refuses what is no such block.
void inline_block(State &s, Place *block);

}  // namespace mlc
