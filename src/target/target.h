// What a target's text says (man/mlc-target.5): memories, threads, registers, limits, the intrinsics that it has.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/diag.h"
#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

// A `memory` or `thread` line; what it does not say is -1, or empty.
struct TargetLine {
  std::string name;
  std::string kind;  // of memory: cache, register, fragment, scratch; empty: addressable by all
  Attrs attrs;
  int64_t bytes = -1, count = -1, align = -1, max = -1;
};

struct TargetInfo {
  std::string name;
  std::string kind;                   // cpu, cuda, accelerator
  std::string base;                   // the target that it extends; what it says itself goes before
  std::vector<Attr> attrs;            // own ones first, those of the bases behind
  std::vector<TargetLine> memories;   // the same; a name once
  std::vector<TargetLine> threads;
  std::vector<Sym> uses;              // intrinsics and externs, @-names
  std::vector<std::string> features;  // instruction sets, own and the bases'
  // The texts it comes from, bases first: intrinsics and externs that `use` lines name are there, or in the module.
  Module text;

  int64_t number(const Build &b, std::string_view key, int64_t otherwise) const;
  double real(const Build &b, std::string_view key, double otherwise) const;
  std::string string(const Build &b, std::string_view key, std::string_view otherwise = "") const;
  const TargetLine *memory(std::string_view name) const;  // null: it has none of that name
  const TargetLine *thread(std::string_view name) const;
  bool has_feature(std::string_view feature) const;
};

// NAME is that of a target of the module, else of one that mlc ships, or a file FILE.mlc that holds one target (and
// intrinsics). The module may be null. Nothing: `error` says why, in a line, with the names that there are.
std::optional<TargetInfo> find_target(Build &b, const Module *m, std::string_view name, std::string *error);

std::vector<std::string> shipped_targets();  // their names, sorted

}  // namespace mlc
