#include "compiler/BackEnd.h"

#include "compiler/GpuModule.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {
namespace {

/// Intrinsics for which back ends end the process, give up, or approximate.
bool hasNoCode(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::sin:
  case Intrinsic::cos:
  case Intrinsic::tan:
  case Intrinsic::asin:
  case Intrinsic::acos:
  case Intrinsic::atan:
  case Intrinsic::atan2:
  case Intrinsic::sinh:
  case Intrinsic::cosh:
  case Intrinsic::tanh:
  case Intrinsic::sincos:
  case Intrinsic::sincospi:
  case Intrinsic::exp:
  case Intrinsic::exp2:
  case Intrinsic::exp10:
  case Intrinsic::log:
  case Intrinsic::log2:
  case Intrinsic::log10:
  case Intrinsic::pow:
  case Intrinsic::powi:
  case Intrinsic::modf:
  case Intrinsic::lrint:
  case Intrinsic::llrint:
  case Intrinsic::lround:
  case Intrinsic::llround:
    return true;
  default:
    return false;
  }
}

/// `frem` is expanded to something that is not exact, wide atomics not at all.
bool hasNoCode(const Instruction &instruction) {
  constexpr unsigned widestAtomic = 64;
  if (instruction.getOpcode() == Instruction::FRem)
    return true;
  return instruction.isAtomic() &&
         (instruction.getType()->isIntegerTy() &&
          instruction.getType()->getIntegerBitWidth() > widestAtomic);
}

/// Functions of others, and intrinsics of other processors.
bool hasNoCode(const Function &function, StringRef own) {
  if (!function.isIntrinsic())
    return true;
  if (function.isTargetIntrinsic())
    return !function.getName().starts_with(own);
  return hasNoCode(function.getIntrinsicID());
}

/// What is left over that has no code on the GPU.
std::string leftOver(const Module &module, StringRef own) {
  SetVector<StringRef> names;
  for (const Function &function : module) {
    if (function.isDeclaration() && !function.use_empty() &&
        hasNoCode(function, own))
      names.insert(function.getName());
    for (const Instruction &instruction : instructions(function))
      if (hasNoCode(instruction))
        names.insert(instruction.getOpcodeName());
  }
  for (const GlobalVariable &global : module.globals())
    if (global.isDeclaration() && !global.use_empty() &&
        global.getAddressSpace() != sharedSpace)
      names.insert(global.getName());
  return join(names, "`, `");
}

class Collector final : public DiagnosticHandler {
public:
  explicit Collector(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const DiagnosticInfo &info) override {
    if (info.getSeverity() != DS_Error)
      return true;
    raw_string_ostream stream(errors);
    DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    stream << "; ";
    return true;
  }

private:
  std::string &errors;
};

} // namespace

Result<> checkHasCode(const Module &module, StringRef own,
                      const std::string &gpus) {
  std::string names = leftOver(module, own);
  if (names.empty())
    return {};
  return Failure{ErrorCode::Internal,
                 "there is no code for " + gpus + " for `" + names + "`"};
}

BackEndErrors::BackEndErrors(LLVMContext &context)
    : context(context), before(context.getDiagnosticHandler()) {
  context.setDiagnosticHandler(std::make_unique<Collector>(errors));
}

BackEndErrors::~BackEndErrors() {
  context.setDiagnosticHandler(std::move(before));
}

Result<> BackEndErrors::check(const std::string &gpus) const {
  if (errors.empty())
    return {};
  return Failure{ErrorCode::Internal,
                 "code for " + gpus + " cannot be made: " + errors};
}

Result<std::string> runBackEnd(Module &module, TargetMachine &machine,
                               CodeGenFileType type) {
  SmallString<0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return Failure{ErrorCode::Internal, "this target emits no such file"};
  passes.run(module);
  return bytes.str().str();
}

} // namespace costate::compiler
