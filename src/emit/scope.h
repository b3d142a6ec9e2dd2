// What the names of a function mean while it is printed.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "arith/bounds.h"
#include "emit/names.h"
#include "ir/typing.h"

namespace mlc {

struct Entity {
  enum Kind : uint8_t {
    Value,     // a constant scalar
    Variable,  // a buffer of rank 0 that is a local variable
    Buffer,    // a pointer to the first element
    Registers,  // a buffer whose elements, or vectors of `unit` elements, are variables: entities called NAME'k
    Placed,     // in a memory of a target, which intrinsics alone reach
  } kind = Value;
  std::string ident;
  const Type *type = nullptr;
  std::vector<const Expr *> strides;  // of a Buffer, in elements; empty: dense
  std::string first;                  // of a Buffer of packed elements: where it begins, in elements; empty: 0
  bool writable = false;
  bool alone = false;                 // nothing else points to what it does: __restrict
  bool wild = false;                  // an index that comes from data: its arithmetic may wrap
  int lanes = 0;                      // of what each lane has its own: a vector, or an array of vectors
  int mask = 0;                       // of a bool with lanes: the bits of an element of its vector
  int unit = 1;
  size_t seen = 0;                    // how often its value was used
  const Feature *memory = nullptr;    // of what is Placed, from `place` on: units of `step` bytes; of step 0, bytes
  int64_t place = 0, step = 0;
  size_t at = 0;                      // where its definition stands in the text; 0: nowhere
  bool array = false;                 // its elements stand there: only to write them is not to use it
};

// The vectorized loop that is being printed: its turns are the lanes of vectors.
struct Lanes {
  Sym v;              // its variable; Sym{} in a scalar function
  int n = 0;          // 0: none
  std::string at;     // not empty: one lane alone is printed, in scalars
  std::string count;  // not empty: only the lanes before this one take part; there is one at least
  std::string mask;   // not empty: only the lanes where this vector is set
  int mask_bits = 0;  // of its elements
  bool masked() const { return !count.empty() || !mask.empty(); }
  bool whole() const { return n && at.empty(); }  // vectors are printed
};

class Scope {
 public:
  Scope(Build &b, const Module &m, const std::string &prefix) : b(b), env(b, m, nullptr), bounds(b), namer(prefix) {}

  static bool is_host(std::string_view scope) { return scope == "global" || scope == "local" || scope == "shared"; }

  Build &b;
  Env env;
  Bounds bounds;
  Namer namer;
  Lanes lanes;

  Entity *find(Sym name) {
    auto it = names_.find(name);
    return it == names_.end() ? nullptr : &entities_[it->second];
  }
  // Names are never defined twice while the first is visible (the printer renames); an index is known to `bounds` too,
  // by who defines it.
  Entity &define(Sym name, Entity e) {
    env.define(name, e.type);
    names_[name] = entities_.size();
    defined_.push_back(name);
    entities_.push_back(std::move(e));
    return entities_.back();
  }
  struct Mark {
    size_t env, bounds, namer, defined;
  };
  Mark mark() const { return {env.mark(), bounds.mark(), namer.mark(), defined_.size()}; }
  void pop(const Mark &m) {
    env.pop(m.env), bounds.pop(m.bounds), namer.pop(m.namer);
    for (; defined_.size() > m.defined; defined_.pop_back()) names_.erase(defined_.back());
  }
  std::vector<Entity> &entities() { return entities_; }  // all that ever were
  std::vector<const Entity *> visible() const {
    std::vector<const Entity *> l;
    for (Sym s : defined_) l.push_back(&entities_[names_.at(s)]);
    return l;
  }

 private:
  std::unordered_map<Sym, size_t> names_;
  std::vector<Entity> entities_;
  std::vector<Sym> defined_;
};

}  // namespace mlc
