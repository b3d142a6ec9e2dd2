#include "graph/places.h"

#include <algorithm>

#include "graph/workspace.h"
#include "text/text.h"

namespace mlc {

Line *Places::line(Line l) {
  l.at = l.end = now(), l.loop = loop_;
  lines_.push_back(std::move(l));
  return &lines_.back();
}
size_t Places::open_loop(Line *l) {
  loops_.push_back({l->at, SIZE_MAX, loop_});
  return loop_ = loops_.size() - 1;
}
void Places::close(Line *l) {
  l->end = now();
  ends_++;
  if (l->stmt->kind == Kind::If) return;
  loops_[loop_].end = l->end;
  loop_ = loops_[loop_].parent;
}

Sym Places::root(Sym s) const {
  for (;;) {
    Sym next = buffers.at(s).root;
    if (next == s) return s;
    s = next;
  }
}

bool Places::share(Sym x, Sym y) {
  Sym r = root(x);
  if (buffers[y].where == Buffer::Arena) return buffers[y].root = r, true;
  Buffer &from = buffers[r];
  if (from.where != Buffer::Arena || from.loop != kNoLoop || buffers[y].ready > from.ready) return false;
  return from.root = y, true;
}

const Func *Places::function(Sym name) const {
  auto it = functions_.find(name);
  return it != functions_.end() ? it->second : m_.func(name);
}

// ---- when a buffer is needed

bool Places::inside(size_t loop, size_t outer) const {
  while (loop != outer && loop != kNoLoop) loop = loops_[loop].parent;
  return loop == outer;
}

// The lines over which a touch keeps a buffer that is defined in loop `home`: all of the loops between.
std::pair<size_t, size_t> Places::reach(const Touch &t, size_t home) const {
  size_t first = t.at, last = t.at;
  for (size_t l = t.line->loop; l != home && l != kNoLoop; l = loops_[l].parent)
    first = loops_[l].begin, last = loops_[l].end;
  return {first, last};
}
void Places::add(Group &g, const Touch &t, size_t home) {
  auto [first, last] = reach(t, home);
  g.first = std::min(g.first, first), g.last = std::max(g.last, last);
  g.touches.push_back(t);
}
void Places::touch(Sym s, const Line *l, size_t at, bool use) {
  for (;;) {
    used_.insert(s);
    Sym r = root(s);
    add(groups_[r], {l, at, use}, buffers.at(r).loop);
    if (buffers.at(r).where != Buffer::Part) return;
    s = buffers.at(r).base;
  }
}

// The memory of `child` becomes that of `to`.
void Places::unite(Sym child, Sym to) {
  buffers[child].root = to;
  Group moved = std::move(groups_[child]);
  groups_.erase(child);
  for (Sym s = to;;) {
    for (const Touch &t : moved.touches) add(groups_[s], t, buffers.at(s).loop);
    if (buffers.at(s).where != Buffer::Part) return;
    s = root(buffers.at(s).base);
  }
}

void Places::settle() {
  for (const Line &l : lines_) {
    if (l.kind == Line::Declare) continue;
    // What a loop tests it tests inside; `uses` of a branch are read before it.
    for (Sym s : l.uses) touch(s, &l, l.at, true);
    if (l.kind == Line::Body && l.stmt->kind == Kind::While)
      for (Sym s : l.uses) touch(s, &l, l.end, true);
    for (Sym s : l.defines) touch(s, &l, l.at, false);
  }
  for (Line &l : lines_)
    if (l.kind == Line::Copy) merge_copy(&l);
  for (Line &l : lines_)
    if (l.kind == Line::Call) reuse(&l);
}

//   a: T = @f(..)                  a: T = @f(..), into the memory of y
//   copy a -> y             ->
// Nobody reads a afterwards, and nobody touches y's memory from the line that defines a to the copy; @f itself may
// read there what it writes over.
void Places::merge_copy(Line *l) {
  auto *n = as<Name>(l->source);
  if (!n || !has(n->name)) return;
  Sym from = root(n->name), to = root(l->defines[0]);
  if (from == to) {
    l->gone = true;
    return;
  }
  const Buffer &x = buffers.at(from), &y = buffers.at(to);
  Group &g = groups_[from];
  bool packed = info(x.type->elem).bits < 8 && y.where == Buffer::Part;
  bool early = y.where != Buffer::Arena && y.ready > g.first;  // it has no size yet
  if (x.where != Buffer::Arena || g.last != l->at || packed || early || !inside(x.loop, y.loop)) return;
  const Line *over = nullptr;
  for (const Touch &t : groups_[to].touches) {
    if (t.at < g.first || t.at >= l->at) continue;
    if (t.at != g.first || !t.use || t.line->kind != Line::Call) return;
    over = t.line;
  }
  if (over && !writes_over(over, to, true)) return;
  unite(from, to);
  l->gone = true;
}

// May the kernel that a line calls write its only result over the argument that is in this memory?
bool Places::writes_over(const Line *l, Sym memory, bool mark) {
  auto &c = mlc::to<mlc::Call>(mlc::to<Let>(l->stmt).value);
  size_t arg = SIZE_MAX, readers = 0;
  for (size_t a = 0; a < c.args.size(); a++) {
    auto *n = as<Name>(c.args[a]);
    if (n && has(n->name) && root(n->name) == memory) arg = a, readers++;
  }
  return readers == 1 && over_argument(l, arg, mark);
}

bool Places::over_argument(const Line *l, size_t arg, bool mark) {
  auto &c = mlc::to<mlc::Call>(mlc::to<Let>(l->stmt).value);
  const Func *k = function(c.callee);
  if (!k || k->func != FuncKind::Kernel || l->defines.size() != 1) return false;
  Sym y = l->defines[0], x = mlc::to<Name>(c.args[arg]).name;
  if (type(y)->elem != type(x)->elem || !equal(type(y)->dims, type(x)->dims)) return false;  // in C++ too one object
  if (!can_be_in_place(*k, arg)) return false;
  // The pair may overlap in this call; another call of the kernel may still give it two buffers.
  bool said = attr(b_, k->notes.attrs, "inplace");
  if (mark && !said) functions_[k->name] = with_inplace(b_, *k, arg);
  if (mark) diag_.remark("{} takes the place of {}", b_.text(y), b_.text(x));
  return true;
}

// The result of a call takes the place of an argument that nobody reads afterwards.
void Places::reuse(Line *l) {
  if (l->defines.size() != 1) return;
  Sym y = l->defines[0];
  if (buffers.at(y).where != Buffer::Arena || root(y) != y) return;
  auto &c = mlc::to<mlc::Call>(mlc::to<Let>(l->stmt).value);
  for (const Expr *a : c.args) {
    auto *n = as<Name>(a);
    if (!n || !has(n->name)) continue;
    Sym r = root(n->name);
    if (buffers.at(r).where != Buffer::Arena || groups_.at(r).last != l->at || !writes_over(l, r, true)) continue;
    return unite(y, r);
  }
}

Placement Places::place() {
  std::vector<Life> lives;
  for (Line &l : lines_) {  // in the order of the text
    auto need = [&](Sym s) {
      Sym r = root(s);
      while (buffers.at(r).where == Buffer::Part) r = root(buffers.at(r).base);  // a view needs what it looks at
      const Buffer &x = buffers.at(r);
      if (x.where != Buffer::Arena || !life_of_.try_emplace(r, lives.size()).second) return;
      if (!x.bytes)
        diag_.error(x.at, "the size of `{}`, {}, cannot be planned: {} is known only when running and has no "
                    "upper bound (assume {} <= ..)",
                    print_name(b_, r), print(b_, x.type), print_name(b_, x.open), print_name(b_, x.open));
      const Group &g = groups_.at(r);
      lives.push_back({x.bytes.value_or(lit(b_, 0)), g.first, g.last});
    };
    if (l.kind == Line::Declare || l.gone) continue;
    for (Sym s : l.uses) need(s);
    for (Sym s : l.defines) need(s);
    if (!l.workspace) continue;
    life_of_[l.workspace] = lives.size();
    lives.push_back({l.workspace_most, l.at, l.at});
  }
  return mlc::place(b_, lives);
}

}  // namespace mlc
