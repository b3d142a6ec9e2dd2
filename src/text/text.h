// The two halves of the text: read and print. print(read(t)) == t for canonical t; read(print(m)) equals m for all m.
#pragma once
#include <functional>
#include <string>

#include "base/diag.h"
#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

// Reads a whole module. On an error `diag` has it and the result is false. `source` must outlive the nodes.
bool read(Build &b, const Source &source, Module &m, Diag &diag);

// The canonical text, from the first `mlc 1` to the last newline.
std::string print(const Build &b, const Module &m);
void print(const Build &b, const Module &m, std::string &out);
using Sink = std::function<void(std::string_view)>;
void print(const Build &b, const Module &m, const Sink &sink);  // in pieces, in order

// Parts of it, for messages and comments: one line, no newline at the end.
std::string print(const Build &b, const Expr *e);
std::string print(const Build &b, const Type *t);
std::string print(const Build &b, const Stmt *s);  // may be several lines
std::string print(const Build &b, const Item *i);
std::string print_name(const Build &b, Sym s);     // quoted if it must be
std::string quote(std::string_view s);             // "..." with escapes

// Reads one expression (for rules and tables: no comments, no newline); null and a message on an error.
const Expr *read_expr(Build &b, std::string_view text, std::string *error);

// Counts tokens only: what the bench compares reading with.
size_t scan(std::string_view text_with_nul);

}  // namespace mlc
