// Copies of nodes with changes, for what rewrites: an unchanged copy is the node itself.
#pragma once
#include <cstring>
#include <vector>

#include "ir/build.h"

namespace mlc {

// Nodes are compared by their bytes; padding too is copied, so that an unchanged copy is seen as one.
template <class T> T copy_of(const T &old) {
  T n = old;
  memcpy(static_cast<void *>(&n), &old, sizeof(T));
  return n;
}
template <class T> bool changed(const T &n, const T &old) { return memcmp(&n, &old, sizeof(T)); }

// The span with each element edited in place; the same span if none changed.
//   edit_all(b, args, [&](const Expr *&e) { e = rewrite(b, e, f); })
template <class T, class Edit> std::span<const T> edit_all(Build &b, std::span<const T> l, const Edit &edit) {
  std::vector<T> out;
  for (size_t i = 0; i < l.size(); ++i) {
    T n = copy_of(l[i]);
    edit(n);
    if (out.empty() && changed(n, l[i])) out.assign(l.begin(), l.end());
    if (!out.empty()) memcpy(static_cast<void *>(&out[i]), &n, sizeof(T));
  }
  return out.empty() ? l : b.list(out);
}

// A copy of a node with the changes that `edit` made, or the node itself if there were none.
//   edited(b, to<If>(s), [&](If &n) { n.cond = other; })
template <class T, class Edit> const T *edited(Build &b, const T &old, const Edit &edit) {
  T n = copy_of(old);
  edit(n);
  return changed(n, old) ? b.arena.make(n) : &old;
}

}  // namespace mlc
