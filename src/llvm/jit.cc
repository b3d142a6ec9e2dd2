#include "llvm/jit.h"

#include <fmt/ranges.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <array>

#include "ir/edit.h"
#include "llvm/target.h"
#include "llvm/unit.h"

namespace mlc {
namespace {

using namespace interp;

// What a kernel that is running asks for: buffers that have no place on its stack.
struct Running {
  Memory *memory;
  std::unordered_map<int64_t, StorageRef> owned;  // by the place of the alloc
  std::optional<Fault> fault;
};
thread_local Running *running = nullptr;

std::byte *allocate(int64_t site, int32_t type, int64_t rank, const int64_t *dims) {
  try {
    int64_t bytes = bytes_of(DType(type), dims, size_t(rank));
    StorageRef &own = running->owned[site];
    if (!own || own->size != bytes) own = nullptr, own = running->memory->make(bytes, true);
    return own->bytes;
  } catch (Fault &e) {
    running->fault = e;
  } catch (const std::bad_alloc &) {
    running->fault = Fault{kNowhere, "out of memory"};
  }
  return nullptr;
}

struct Code {
  int32_t (*run)(const int64_t *) = nullptr;  // null: it is interpreted
  const Func *func = nullptr;
  std::vector<ll::Failure> failures;
  std::vector<Sym> constants;
};

class Jit : public KernelRunner {
 public:
  Jit(std::unique_ptr<llvm::TargetMachine> target, std::unique_ptr<llvm::orc::LLJIT> jit, FILE *remarks)
      : target_(std::move(target)), jit_(std::move(jit)), remarks_(remarks) {}

  bool run(Machine &m, const Func &f, Stmts body, const IndexValues &dims, const std::vector<Value> &args,
           const std::vector<Value> &into) override;

 private:
  Code compile(Machine &m, const Func &f, Stmts body);
  [[noreturn]] void stop(Machine &m, const Code &code, int32_t failed, Running &state);

  std::unique_ptr<llvm::TargetMachine> target_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  FILE *remarks_;
  std::unordered_map<const Func *, Code> codes_;
  std::array<int64_t, ll::UnitOptions::kValues> values_;
  int made_ = 0;
};

// int32 kernelN(slots): dimensions, parameters, results, a table of the constants' addresses.
Code Jit::compile(Machine &m, const Func &f, Stmts body) {
  Code code;
  code.func = &f;
  if (f.func != FuncKind::Kernel)
    code.func = edited(m.b, f, [&](Func &n) { n.func = FuncKind::Kernel, n.body = body, n.parts = {}; });
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("mlc", *context);
  context->setDiagnosticHandlerCallBack([](const llvm::DiagnosticInfo &, void *) {});  // hints that were not taken
  module->setDataLayout(target_->createDataLayout());
  module->setTargetTriple(target_->getTargetTriple().str());
  Diag diag("jit");
  ll::UnitOptions options;
  options.checked = true, options.fma = ll::has_fma(*target_);
  options.alloc = reinterpret_cast<const void *>(&allocate), options.values = values_.data();
  ll::Unit unit(m.b, m.m, *module, options, diag);
  auto &ir = unit.ops.ir;
  unit.constant = [&](ll::V table, Sym name) -> ll::V {
    auto at = std::find(code.constants.begin(), code.constants.end(), name);
    if (at == code.constants.end()) at = code.constants.insert(at, name);
    llvm::Type *pointer = ir.getInt8PtrTy();
    return ir.CreateLoad(pointer, ir.CreateConstInBoundsGEP1_64(pointer, ir.CreateBitCast(table, pointer->getPointerTo()),
                                                                uint64_t(at - code.constants.begin())));
  };
  const ll::Compiled *made = unit.function(*code.func);
  std::string why = made ? "" : diag.messages().empty() ? "it cannot be compiled" : diag.messages()[0];
  std::string name = fmt::format("kernel{}", made_++);
  if (made) {
    for (llvm::Function &g : *module)  // who calls them may have mixed up their buffers
      if (&g != made->fn)
        for (auto &a : g.args()) a.removeAttr(llvm::Attribute::NoAlias);
    made->fn->addFnAttr(llvm::Attribute::NoInline);
    auto *type = llvm::FunctionType::get(ir.getInt32Ty(), {ir.getInt64Ty()->getPointerTo()}, false);
    auto *entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, *module);
    ir.SetInsertPoint(llvm::BasicBlock::Create(*context, "", entry));
    std::vector<ll::V> args;
    for (auto &p : made->fn->args()) {
      ll::V v = ir.CreateLoad(ir.getInt64Ty(), ir.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), entry->getArg(0), args.size()));
      llvm::Type *t = p.getType();
      if (t->isPointerTy()) v = ir.CreateIntToPtr(v, t);
      else if (t->isFloatTy()) v = ir.CreateBitCast(ir.CreateTrunc(v, ir.getInt32Ty()), t);
      else v = t->isDoubleTy() ? ir.CreateBitCast(v, t) : ir.CreateTrunc(v, t);
      args.push_back(v);
    }
    ir.CreateRet(ir.CreateCall(made->fn, args));
    code.failures = made->failures;
    why = ll::broken(*module);
  }
  if (why.empty()) {
    ll::optimize(*module, *target_);
    llvm::Error error = jit_->addIRModule({std::move(module), std::move(context)});
    auto address = error ? llvm::Expected<llvm::JITEvaluatedSymbol>(std::move(error)) : jit_->lookup(name);
    if (address) code.run = reinterpret_cast<int32_t (*)(const int64_t *)>(address->getAddress());
    else why = llvm::toString(address.takeError());
  }
  if (remarks_ && !why.empty()) fmt::print(remarks_, "jit: @{} is interpreted: {}\n", m.b.text(f.name), why);
  return code;
}

bool Jit::run(Machine &m, const Func &f, Stmts body, const IndexValues &dims, const std::vector<Value> &args,
              const std::vector<Value> &into) {
  auto fits = [&](const Def &d, const Value &v) {  // as compiled code takes a buffer to lie
    return v.is_scalar() || (!v.ref.first && (v.ref.is_dense() || attr(m.b, d.type->attrs, "strides")));
  };
  for (size_t i = 0; i < args.size(); i++)
    if (!fits(f.params[i].def, args[i])) return false;
  for (size_t i = 0; i < into.size(); i++)
    if (!fits(f.results[i], into[i])) return false;
  auto it = codes_.find(&f);
  if (it == codes_.end()) it = codes_.emplace(&f, compile(m, f, body)).first;
  const Code &code = it->second;
  if (!code.run) return false;

  std::vector<int64_t> slots;
  std::vector<const std::byte *> table;
  for (Sym d : f.dims) slots.push_back(dims.at(d));
  for (const Value &v : args)
    slots.push_back(v.is_scalar() ? int64_t(v.scalar.bits) : reinterpret_cast<int64_t>(v.ref.data()));
  for (const Value &v : into) slots.push_back(reinterpret_cast<int64_t>(v.ref.data()));
  for (Sym s : code.constants) table.push_back(m.constant(s, kNowhere).data());
  slots.push_back(reinterpret_cast<int64_t>(table.data()));
  Running state{&m.memory, {}, {}}, *outer = running;
  running = &state;
  int32_t failed = code.run(slots.data());
  running = outer;
  if (failed) stop(m, code, failed, state);
  return true;
}

void Jit::stop(Machine &m, const Code &code, int32_t failed, Running &state) {
  const ll::Failure &x = code.failures.at(size_t(failed) - 1);
  Fault fault{x.at, x.what};
  if (state.fault) {
    fault.message += ": " + state.fault->message;
  } else if (x.rank > values_.size() / 2) {
    fault.message += ": an access is outside";
  } else if (x.rank) {
    std::vector<int64_t> index(values_.begin(), values_.begin() + ptrdiff_t(x.rank));
    const int64_t *dims = values_.data() + x.rank;
    size_t d = 0;
    while (d + 1 < index.size() && uint64_t(index[d]) < uint64_t(dims[d])) d++;
    fault.message = fmt::format("{}[{}] is outside: index {} of dimension {} is not in 0 .. {}", x.what,
                                fmt::join(index, ", "), index[d], d, dims[d] - 1);
  }
  if (x.func != code.func)
    fault.message += fmt::format(", in kernel @{}", m.b.text(x.func->name)), fault.named = true;
  throw fault;
}

}  // namespace

std::unique_ptr<KernelRunner> make_jit(FILE *remarks, bool native) {
  std::unique_ptr<llvm::TargetMachine> target = ll::machine(native);
  if (!target) return nullptr;
  llvm::orc::JITTargetMachineBuilder builder(target->getTargetTriple());
  builder.setCPU(target->getTargetCPU().str());
  builder.setOptions(target->Options);
  builder.addFeatures(llvm::SubtargetFeatures(target->getTargetFeatureString()).getFeatures());
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(builder)).create();
  if (!jit) return llvm::consumeError(jit.takeError()), nullptr;
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process) return llvm::consumeError(process.takeError()), nullptr;
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  return std::make_unique<Jit>(std::move(target), std::move(*jit), remarks);
}

}  // namespace mlc
