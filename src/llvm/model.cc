#include "llvm/model.h"

#include "llvm/host.h"
#include "llvm/target.h"

namespace mlc {

bool compile_model(Build &b, const Module &m, const CppOptions &options, const CppModel &model,
                   const std::function<std::span<const std::byte>(const Weight &)> &bytes, bool text, std::string &out,
                   Diag &diag) {
  std::unique_ptr<llvm::TargetMachine> target = ll::machine(false);
  if (!target) return diag.error(kNowhere, "LLVM does not know this machine"), false;
  llvm::LLVMContext context;
  context.setDiagnosticHandlerCallBack([](const llvm::DiagnosticInfo &, void *) {});  // hints that were not taken
  llvm::Module module(options.name, context);
  module.setSourceFileName(options.name);
  module.setDataLayout(target->createDataLayout());
  module.setTargetTriple(target->getTargetTriple().str());
  ll::UnitOptions how;
  how.checks = options.checks, how.fma = ll::has_fma(*target), how.prefix = options.name;
  ll::Unit unit(b, m, module, how, diag);
  llvm::GlobalVariable *data = nullptr;
  if (model.form != WeightForm::File && !model.weights.empty()) {
    std::string all(size_t(model.weight_bytes), '\0');
    for (const Weight &w : model.weights) {
      std::span<const std::byte> from = bytes(w);
      if (diag.errors()) return false;
      memcpy(all.data() + w.offset, from.data(), std::min(from.size(), size_t(w.bytes)));
    }
    auto *value = llvm::ConstantDataArray::getRaw(all, all.size(), llvm::Type::getInt8Ty(context));
    data = new llvm::GlobalVariable(module, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value,
                                    options.name + "_weights_data");
    data->setAlignment(llvm::Align(64));
  }
  ll::Host(unit, options, model, diag).build(data);
  if (diag.errors()) return false;
  if (std::string why = ll::broken(module); !why.empty())
    return diag.error(kNowhere, "the module that was made is none of LLVM's: {}", why), false;
  if (text) return out = ll::assembly(module), true;
  ll::optimize(module, *target);
  out = ll::object(module, *target);
  if (out.empty()) diag.error(kNowhere, "LLVM writes no object files here");
  return !diag.errors();
}

}  // namespace mlc
