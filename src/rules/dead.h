// Dead code: lines whose values nobody uses, buffers that nobody reads, with all that only served them.
#pragma once
#include <functional>
#include <unordered_set>

#include "ir/walk.h"

namespace mlc {

// The body without what is not needed for `roots` (results, parameters that are written), for effects (calls, stores
// into roots, code) and for assumptions, which stay. `must_stay`: of a line that defines values, may it not be dropped
// though nobody uses them? Asked of unused ones only. Dataflow regions give out what is still used. `dropped` counts
// lines.
Stmts drop_dead(Build &b, Stmts body, const std::unordered_set<Sym> &roots,
                const std::function<bool(const Let &)> &must_stay, size_t *dropped);

}  // namespace mlc
