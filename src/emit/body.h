// The statements of a function as C++.
#pragma once
#include "emit/expr.h"
#include "emit/unit.h"
#include "ir/solve.h"

namespace mlc {

// Where the statements run: on a CPU alone, on the host of a CUDA device, on the device.
enum class Side : uint8_t { Cpu, Host, Device };

class BodyPrinter {
 public:
  BodyPrinter(Unit &unit, const Module &m, const Func &f);

  // Names of the function itself; they are defined in the order in which they are printed.
  Entity &define_dim(Sym name, bool wild = false);
  Entity &define_value(const Def &d, std::string ident);
  Entity &define_buffer(const Def &d, std::string ident, bool writable);
  void body(Stmts stmts);  // expanded
  // `[[maybe_unused]]` where it is due. To be called last.
  void finish() { mark_unused(0); }

  // A line of text at the present indentation.
  template <class... A> void line(fmt::format_string<A...> f, A &&...a) {
    out.append(indent, ' ').append(fmt::format(f, std::forward<A>(a)...)) += '\n';
  }
  // How the function reads a constant; by default a parameter of its own.
  std::function<std::string(Sym)> constant;
  // Called behind the definition of a scalar at the outermost level.
  std::function<void(Sym)> defined;
  Sym latest(Sym name) const;  // the present name of what the text calls so, if it was defined again

  std::string out;
  size_t indent = 2;
  Scope scope;
  ExprPrinter exprs;
  std::vector<Failure> failures;
  std::vector<Sym> constants;
  std::unordered_map<Sym, std::string> constant_idents;
  int first_code = 0;  // what failure 0 returns, less one
  Side side = Side::Cpu;
  std::string first;   // of sides with a device: the variable that first_code is added to; empty: none
  std::string name;    // of the function in C++
  std::string tasks;   // bodies of parallel loops: functions that stand in front of this one
  std::string options = "options";  // how NAME_options is reached
  bool uses_options = false;
  std::unordered_set<const Stmt *> checked;  // assumptions that the host checks
  std::string prologue;            // what memories of targets want at the beginning of a function that uses them
  std::vector<std::string> needs;  // instruction sets of the intrinsics that it calls

 private:
  void stmts(Stmts body);
  void let(const Let &l);
  void store(const Store &s);
  size_t alloc(const Alloc &a, const Stmt *next);  // how many statements it took
  void view(const View &v);
  void call(const CallStmt &c);
  void intrinsic(const CallStmt &c, const Func &f);
  bool placed(const Alloc &a);
  std::string placed_operand(const Entity &e, Exprs index, const Def &param, uint32_t at);
  void foreign(const CallStmt &c, const Emitted &fn, const std::vector<std::string> &args);
  void copy(const CallStmt &c);
  void fill(const CallStmt &c);
  const Expr *element(const Expr *e, Exprs turn);
  void each_element(const CallStmt &c, const std::function<const Expr *(Exprs)> &value);
  void assume(const Assume &a);
  void loop(const For *f);
  void lanes(const For &f);
  void branch_lanes(const If &i);
  void each_lane(const If &i);
  bool stops(Stmts body);
  void registers(const Alloc &a, int64_t unit);
  void own_buffer(const Alloc &a);
  bool can_be_task(const For &f) const;
  void parallel(const For &f);
  std::string leave(int failure) const;  // the statement that ends the function with a failure, counted from 0
  void branch(const If &i);
  void head(const Stmt *s, Syms from = {});
  void block(Stmts body);
  void mark_unused(size_t first);
  Stmts renamed(Sym name, Stmts rest);
  std::string argument(const Expr *e, const Def &param, bool written, uint32_t at);
  std::string buffer_argument(Entity e, Exprs index, const Def &param, bool written, uint32_t at);
  Argument argument_type(const Expr *e, DType want);
  Entity define_local(const Def &d, Entity e);
  void tame(const Expr *cond);
  void untame(size_t first);
  bool wild(const Expr *e);
  // ---- body_cuda.cc: sides with a device
  std::string code(int failure) const;
  const Expr *read_back(const Expr *e);  // on the host: what it loads is read from the device into variables
  void transfer(const CallStmt &c);
  void launch(const CallStmt &c, const Emitted &fn, std::vector<std::string> args);
  bool effect(const CallStmt &c);
  void atomic(const Store &s);
  void bound(const For &f);
  void lane_copy(const For &f);
  bool whole(const Expr *e, std::string *pointer, std::string *bytes);

  void fail(uint32_t at, std::string message);
  const Expr *shortened(const Expr *e) const;

  Unit &u_;
  Build &b_;
  const Module &m_;
  const Func &f_;
  std::unordered_set<Sym> addressed_;  // buffers that need an address
  std::unordered_map<Sym, Sym> latest_;
  std::vector<Sym> tamed_;  // by an assumption that the present body made
  std::map<Sym, int64_t> tops_;  // of memories of targets: what is taken
  const Stmt *alone_ = nullptr;  // in its block
  int depth_ = 0, renames_ = 0;
  bool in_task_ = false;
};

// Definitions that nothing reads, left out. `used`: names that are read outside.
Stmts without_unused(Build &b, Stmts body, std::unordered_set<Sym> &used);

}  // namespace mlc
