// What the lexer (grammar/mlc.re) and the parser (grammar/mlc.yy) share: the place in the text, the builder, lists that
// are not finished yet, and comments that no statement has claimed yet. Only these two and read.cc include it.
#pragma once
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/module.h"
#include "base/diag.h"

namespace mlc {

// The semantic value of a symbol: trivially copied, so that Bison's stack is plain memory.
struct Value {
  Value() : any(nullptr), at(0), len(0) {}
  union {
    Sym sym;
    uint32_t mark;            // start of an unfinished list
    const Expr *expr;
    const Stmt *stmt;
    const Type *type;
    const char *text;         // of a string, `len` long
    int64_t number;
    void *any;
  };
  uint32_t at;                // byte offset of the first token
  uint32_t len;               // of a token's text

  // Both in one store, as the parser loads them.
  void place(uint32_t at, uint32_t len) {
    uint64_t both = uint64_t(len) << 32 | at;
    memcpy(static_cast<void *>(&this->at), &both, sizeof both);
  }
};
static_assert(sizeof(Value) == 16 && offsetof(Value, len) == offsetof(Value, at) + 4 &&
              std::endian::native == std::endian::little);

// A list that grows: nested lists finish before the outer one goes on, so one stack a type is enough.
template <class T> class Scratch {
 public:
  uint32_t mark() const { return size_; }
  void push(const T &t) {
    if (size_ == room_) grow();
    items_[size_++] = t;
  }
  std::span<const T> take(Build &b, uint32_t mark) {
    auto s = b.arena.copy(items_.data() + mark, size_ - mark);
    size_ = mark;
    return s;
  }

 private:
  [[gnu::noinline]] void grow() { items_.resize(room_ = 2 * room_ + 64); }
  std::vector<T> items_;  // room_ of them, the first size_ in use
  uint32_t size_ = 0, room_ = 0;
};

struct Reader {
  Reader(Build &b, std::string_view text, Diag &diag, Module *m);

  Build &b;
  Diag &diag;
  Module *m;                        // null: one expression is read (read_expr)
  const Expr *result = nullptr;     // of read_expr

  // The lexer's state is the function that finds the next token; returns its kind.
  int (*lex)(Reader &r, Value *value);

  // The lexer's place.
  const char *begin, *end, *cursor;
  const char *token;                // start of the newest token, for syntax errors
  const char *line_token;           // first token of the line
  int last = 0;                     // kind of the newest token (0: none yet)
  bool failed = false;
  uint32_t offset(const char *p) const { return uint32_t(p - begin); }

  // Types by their text: a whole type is one token, once it has been read.
  Names type_texts;
  std::vector<const Type *> types{nullptr};  // by the Sym of the text
  Value begin_type(Value name);
  Value array_type(Value name, Exprs dims, Value close);

  Scratch<const Expr *> exprs;
  Scratch<const Stmt *> stmts;
  Scratch<Attr> attrs, notes;
  Scratch<Sym> syms, from;
  Scratch<Def> defs;
  Scratch<Param> params;
  Scratch<Iter> iters;
  Scratch<Result> results;
  Scratch<Carry> carries;
  Scratch<Axis> axes;
  Scratch<const Load *> regions;
  Scratch<Part> parts;
  Scratch<Feature> features;
  Scratch<Step> steps;

  // Heads that are read before the node they belong to: values of grammar symbols too big for a Value.
  struct Head {
    const Expr *guard;
    std::span<const Load *const> reads, writes;
  };
  std::vector<Head> heads;

  // What is kept is taken once, and its room is used again.
  template <class T> T *keep(const T &t) {
    static_assert(sizeof(T) <= kRoom && std::is_trivially_destructible_v<T>);
    if (rooms.empty()) rooms.push_back(b.arena.bytes(kRoom));
    void *room = rooms.back();
    rooms.pop_back();
    return new (room) T(t);
  }
  template <class T> T take(void *room) {
    rooms.push_back(room);
    return *static_cast<T *>(room);
  }
  static constexpr size_t kRoom = 48;
  std::vector<void *> rooms;  // free ones

  // Comments: pushed by the lexer under the offset of the line that they stand above (or behind), claimed by the
  // innermost statement or item that begins at or before that offset.
  struct Comment { uint32_t at; std::string_view text; };
  std::vector<Comment> comments;
  std::string_view claim(uint32_t at) {
    return comments.empty() || comments.back().at < at ? std::string_view() : claim_some(at);
  }
  std::string_view claim_some(uint32_t at);

  // A statement or item with its place and comment, copied once.
  template <class T> const T *make(const T &node, uint32_t at) {
    T *made = b.arena.make(node);
    made->kind = T::kKind, made->at = at, made->comment = claim(at);
    return made;
  }

  Sym intern(Value v) { return b.sym({begin + v.at, v.len}); }
  bool error(uint32_t at, const char *message);  // the first one counts; false
  bool start_expr = false;                       // the next token is START_EXPR

 private:
  Value array_type_of(Value name, Exprs dims, bool tensor, uint32_t stop);
};

// grammar/mlc.re
extern int (*const first_token)(Reader &r, Value *value);  // the lexer's first state
size_t scan_all(Reader &r);        // the number of tokens: the lexer alone, nothing interned or built
std::string expected_list(const std::vector<std::string_view> &tokens);

}  // namespace mlc
