#include "sync/place.h"

#include <algorithm>

#include "ir/edit.h"
#include "sync/uses.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr int64_t kAlign = 16;

// Bytes as far as the last element stands; -1: not a number.
int64_t bytes_of(const Build &b, const Type *t) {
  std::vector<int64_t> dims;
  if (!all_static(t, &dims)) return -1;
  int64_t n = 1;
  auto *strides = as<List>(attr(b, t->attrs, "strides"));
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 0) return 0;
    int64_t step = 0;
    if (!strides) {
      if (__builtin_mul_overflow(n, dims[d], &n)) return -1;
    } else if (d >= strides->items.size() || !int_value(strides->items[d], &step) || step < 0 ||
               __builtin_mul_overflow(dims[d] - 1, step, &step) || __builtin_add_overflow(n, step, &n)) {
      return -1;
    }
  }
  return storage_bytes(t->elem, n);
}

}  // namespace

const Func *placed(Build &b, const Func *f, const Nest &nest, const TargetInfo &target, Diag &diag) {
  auto fail = [&](const std::string &what) {
    diag.error(f->at, "@{}: {}", b.text(f->name), what);
    return nullptr;
  };
  Fresh fresh(b);
  take_names(f, fresh);
  for (const Thread &t : nest.threads) fresh.take(t.name);
  Sym arena = fresh.make("smem");

  int64_t used = 0;
  std::string bad;
  Stmts body = rewrite_stmts(b, nest.body, [&](const Stmt *s, std::vector<const Stmt *> &out) {
    auto *a = as<Alloc>(s);
    if (!a || a->base || !in_scope(b, a->def.type, "shared")) return out.push_back(s);
    int64_t n = bytes_of(b, a->def.type), align = kAlign;
    if (n < 0)
      bad = fmt::format("{} in shared memory has {}, expected sizes that are numbers", b.text(a->def.name),
                        print(b, a->def.type));
    if (const Expr *e = attr(b, a->def.type->attrs, "align")) int_value(e, &align);
    align = std::clamp<int64_t>(align, kAlign, 1024);
    used = (used + align - 1) / align * align;
    out.push_back(edited(b, *a, [&](Alloc &x) { x.base = arena, x.offset = b.integer(used); }));
    used += std::max<int64_t>(n, 0);
  });
  if (!bad.empty()) return fail(bad);

  auto most = [](const TargetLine *l, int64_t otherwise) { return l && l->max >= 0 ? l->max : otherwise; };
  int64_t threads = 1;
  for (const Thread &t : nest.threads) {
    int64_t limit = most(target.thread(b.text(t.tag)), INT64_MAX);
    if (t.extent > limit)
      return fail(fmt::format("{} has {} threads, {} allows {}", b.text(t.tag), t.extent, target.name, limit));
    threads *= t.extent;
  }
  if (int64_t limit = most(target.thread("block"), INT64_MAX); threads > limit)
    return fail(fmt::format("a block has {} threads, {} allows {}", threads, target.name, limit));
  const TargetLine *shared = target.memory("shared");
  if (shared && shared->bytes >= 0 && used > shared->bytes)
    return fail(fmt::format("a block needs {} bytes of shared memory, {} allows {}", used, target.name, shared->bytes));
  for (size_t i = 0; i < nest.blocks.size(); i++) {
    int64_t n = 0, limit = most(target.thread(b.text(nest.block_tags[i])), INT64_MAX);
    if (int_value(nest.blocks[i].extent, &n) && n > limit)
      return fail(fmt::format("{} has {} blocks, {} allows {}", b.text(nest.block_tags[i]), n, target.name, limit));
  }

  auto loop = [&](const Iter &i, Sym tag, Stmts in) {
    return b.stmts({b.make(For{{}, LoopKind::Bind, i, tag, {}, in})});
  };
  for (size_t i = nest.threads.size(); i-- > 0;) {
    const Thread &t = nest.threads[i];
    body = loop({t.name, b.integer(t.extent), kNowhere}, t.tag, body);
  }
  if (used) {
    const Type *type = b.type({DType::U8, true, b.sym("shared"), {}, -1, b.list({b.integer(used)}), {}});
    std::vector<const Stmt *> with = {b.make(Alloc{{}, {arena, kNowhere, type}, {}, nullptr})};
    with.insert(with.end(), body.begin(), body.end());
    body = b.list(with);
  }
  for (size_t i = nest.blocks.size(); i-- > 0;) body = loop(nest.blocks[i], nest.block_tags[i], body);
  std::vector<const Stmt *> all = nest.head;
  for (const Stmt *s : body) all.push_back(s == body[0] && !nest.comment.empty() ? commented(b, s, nest.comment) : s);
  return edited(b, *f, [&](Func &k) { k.body = b.list(all); });
}

}  // namespace mlc
