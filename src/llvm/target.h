// Machines as LLVM knows them, and what it makes of a module.
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

namespace mlc::ll {

// This machine with all that it has; otherwise what every machine of its kind has.
std::unique_ptr<llvm::TargetMachine> machine(bool native);
bool has_fma(const llvm::TargetMachine &machine);

// Why a module is no module of LLVM's; empty: it is one. A fault of this room.
std::string broken(const llvm::Module &m);
void optimize(llvm::Module &m, llvm::TargetMachine &machine);
std::string assembly(const llvm::Module &m);                              // a .ll file
std::string object(llvm::Module &m, llvm::TargetMachine &machine);  // a .o file

}  // namespace mlc::ll
