// Sizes that a caller chooses: everything that NAME_arena_bytes computes is checked, so that no index can overflow
// after it.
#pragma once
#include "emit/body.h"
#include "emit/model.h"

namespace mlc {

// The text of an index expression in which every step is checked; `ok`, a bool, is in scope.
std::string checked_size(BodyPrinter &p, Helpers &helpers, const Expr *e);
// unit times the dimensions of t: for each, zero counts as one, so that strides fit too; less than 0 clears `ok`.
std::string checked_product(BodyPrinter &p, Helpers &helpers, const Type *t, int64_t unit, Diag &diag);

// The body of NAME_arena_bytes. `fixed`: the bytes where no symbol is left.
// device: that of NAME_device_arena_bytes, with room for the status in front.
std::string arena_text(Unit &unit, const Func &entry, const CppModel &model, const Def *scratch, bool device,
                       int64_t *fixed);

}  // namespace mlc
