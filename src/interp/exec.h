// The statements of a compiled kernel, and how they run (exec.cc).
#pragma once
#include "interp/nodes.h"

namespace mlc::interp {

struct LoopAct { const LoopInfo *loop; Acts body; };
struct IfAct { const Node *cond; Acts body, other; };
struct WhileAct { const Node *cond; Acts body; };
struct AssumeAct { const Node *cond; std::string message; };
struct AxisRun {
  Sym name;
  AxisKind kind;
  int slot;
  const Node *binding;  // null: the slot is a cell
  const Node *domain;
  int proved;           // slot: 1 if a cell stays in the domain; -1: check each time
};
struct BlockAct {
  Sym name;
  std::vector<AxisRun> axes;
  const Node *guard;
  Acts inits, body;
};
struct DomainAct {
  std::vector<std::pair<const Node *, int>> pairs;
  Sym name;
};  // extent of a result, slot of the dimension
struct AllocAct { int buffer, base; const Node *offset; };
struct Operand;
struct ViewAct { int buffer, base; const Operand *region; };

// @r(a, b for k in n), and its combination of two: @r(m0, s0, m1, s1).
struct Fold { const Lambda *fn; std::vector<const LoopInfo *> loops; std::vector<const Node *> args; };
struct FoldAct { const Fold *fold; std::vector<const Access *> targets; std::vector<DType> types; };
struct Apply { const Lambda *fn; std::vector<const Node *> args; };
struct ApplyAct { const Apply *apply; std::vector<int> slots; };
struct Reduction { std::vector<const LoopInfo *> loops; };

void run_loop(const Act &, Frame &);
void run_if(const Act &, Frame &);
void run_while(const Act &, Frame &);
void run_assume(const Act &, Frame &);
void run_block(const Act &, Frame &);
void run_domain(const Act &, Frame &);
void run_alloc(const Act &, Frame &);
void run_view(const Act &, Frame &);
void run_fold(const Act &, Frame &);
void run_apply(const Act &, Frame &);
void run_call(const Act &, Frame &);  // call.cc

// Fills in the pointer of a node: kind is sum, prod, max, min, all or any; more is a Reduction, a Fold, an Apply.
void set_reduction(Node *n, std::string_view kind);
void jitter_reduction(Node *n, std::string_view kind);  // the same of a sum or product of floats, with noise
void set_jittered(Node *n, Op op);                       // + - * of floats with noise
void set_fold(Node *n);
void set_apply(Node *n);

// Runs a compiled kernel whose frame has its dimensions, scalars and buffers.
void start(const Unit &u, Frame &f);
// Names for messages.
std::string_view name_of(const Frame &f, Sym s);

}  // namespace mlc::interp
