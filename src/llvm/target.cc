#include "llvm/target.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/SubtargetFeature.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/Host.h>
#include <llvm/Support/TargetSelect.h>

namespace mlc::ll {

std::unique_ptr<llvm::TargetMachine> machine(bool native) {
  static const bool ready = !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  std::string triple = llvm::sys::getDefaultTargetTriple(), error;
  const llvm::Target *target = ready ? llvm::TargetRegistry::lookupTarget(triple, error) : nullptr;
  if (!target) return nullptr;
  llvm::SubtargetFeatures features;
  llvm::StringMap<bool> host;
  if (native && llvm::sys::getHostCPUFeatures(host))
    for (auto &f : host) features.AddFeature(f.first(), f.second);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // products and sums stay apart
  std::string cpu = native ? llvm::sys::getHostCPUName().str() : "";
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, cpu, features.getString(), options, llvm::Reloc::PIC_));
}

bool has_fma(const llvm::TargetMachine &machine) {
  return machine.getTargetFeatureString().contains("+fma,") || machine.getTargetTriple().isAArch64();
}

std::string broken(const llvm::Module &m) {
  std::string why;
  llvm::raw_string_ostream out(why);
  return llvm::verifyModule(m, &out) ? out.str() : "";
}

void optimize(llvm::Module &m, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = true;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(m, modules);
}

std::string assembly(const llvm::Module &m) {
  std::string text;
  llvm::raw_string_ostream out(text);
  m.print(out, nullptr);
  return out.str();
}

std::string object(llvm::Module &m, llvm::TargetMachine &machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CGFT_ObjectFile)) return "";
  passes.run(m);
  return {bytes.begin(), bytes.end()};
}

}  // namespace mlc::ll
