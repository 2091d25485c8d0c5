#include "compiler/targets/cuda/Nvidia.h"

#include "compiler/GpuMachine.h"
#include "compiler/GpuModule.h"
#include "compiler/targets/cuda/LateGuards.h"
#include "compiler/targets/cuda/Library.h"
#include "compiler/targets/cuda/NvidiaAssembly.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {
namespace {

/// Parameters of a kernel: 4 KiB, and since PTX 8.1 nearly 32.
constexpr unsigned wordsOfOldPtx = 512;
constexpr unsigned largestWords = 4095;

/// The 90 of `sm_90`; 0 for what is no chip, as `sm_90a`.
unsigned chipNumber(StringRef chip) {
  unsigned number = 0;
  if (!chip.consume_front("sm_") || chip.getAsInteger(10, number))
    return 0;
  return number;
}

/// The newest chip that is no newer than `chip`; 0 if there is none.
unsigned knownChip(const llvm::Target &target, StringRef chip) {
  std::unique_ptr<MCSubtargetInfo> info(
      target.createMCSubtargetInfo(Triple("nvptx64-nvidia-cuda"), "", ""));
  unsigned wanted = chipNumber(chip), best = 0;
  for (const SubtargetSubTypeKV &known : info->getAllProcessorDescriptions())
    if (unsigned number = chipNumber(known.Key); number <= wanted)
      best = std::max(best, number);
  return best;
}

/// Chips after these need a newer PTX than 7.8, which LLVM then chooses itself.
StringRef ptxFeature(unsigned chip, unsigned words) {
  constexpr unsigned newestOfOldPtx = 90;
  if (chip > newestOfOldPtx)
    return "";
  return words > wordsOfOldPtx ? "+ptx81" : "+ptx78";
}

/// Intrinsics for which NVPTX ends the process, gives up, or approximates.
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
bool hasNoCode(const Function &function) {
  if (!function.isIntrinsic())
    return true;
  if (function.isTargetIntrinsic())
    return !function.getName().starts_with("llvm.nvvm.");
  return hasNoCode(function.getIntrinsicID());
}

/// What is left over that has no code on the GPU.
std::string leftOver(const Module &module) {
  SetVector<StringRef> names;
  for (const Function &function : module) {
    if (function.isDeclaration() && !function.use_empty() &&
        hasNoCode(function))
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

bool isExtremum(const User *user) {
  auto *call = dyn_cast<IntrinsicInst>(user);
  return call && (call->getIntrinsicID() == Intrinsic::smin ||
                  call->getIntrinsicID() == Intrinsic::smax);
}

/// -x of 32 bits, for a minimum or a maximum.
bool isNegatedForExtremum(const BinaryOperator &op) {
  auto *zero = dyn_cast<ConstantInt>(op.getOperand(0));
  return op.getOpcode() == Instruction::Sub && op.getType()->isIntegerTy(32) &&
         zero && zero->isZero() && any_of(op.users(), isExtremum);
}

/// NVIDIA's assembler takes -x into a minimum of three, where that of the least
/// integer is 2^31 (VIMNMX3 of sm_90). So -x is ~(x - 1), and nobody may know.
void hideNegations(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction :
         make_early_inc_range(instructions(function))) {
      auto *op = dyn_cast<BinaryOperator>(&instruction);
      if (!op || !isNegatedForExtremum(*op))
        continue;
      IRBuilder<> builder(op);
      Type *type = op->getType();
      Value *before = builder.CreateSub(op->getOperand(1), builder.getInt32(1));
      op->replaceAllUsesWith(
          pureAssembly(builder, type, {before}, "not.b32 $0, $1;", "=r,r"));
      op->eraseFromParent();
    }
}

/// What a product is guarded by: `select(g == 0, g, g * f)`, as strong_mul
/// becomes.
Value *guarded(Value *value, Value *g) {
  auto *product = dyn_cast<SelectInst>(value);
  if (!product || product->getTrueValue() != g ||
      guardingNumber(product->getCondition()) != g)
    return nullptr;
  return product->getFalseValue();
}

/// Whether g is not 0 and `runs` holds: one instruction.
Value *bothHold(IRBuilder<> &builder, Value *g, Value *runs) {
  bool isDouble = g->getType()->isDoubleTy();
  return pureAssembly(builder, runs->getType(), {g, runs},
                      isDouble
                          ? "setp.neu.and.f64 $0, $1, 0d0000000000000000, $2;"
                          : "setp.neu.and.f32 $0, $1, 0f00000000, $2;",
                      isDouble ? "=b,d,b" : "=b,f,b");
}

/// Iterations of a loop that only some lanes have, `select(runs, g * f, g)`:
/// with the guard of the product one comparison and one predicated product.
/// LLVM would make selects of both conditions, one after the other.
void joinGuards(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *choice = dyn_cast<SelectInst>(&instruction);
      if (!choice)
        continue;
      Value *product = guarded(choice->getTrueValue(), choice->getFalseValue());
      if (!product)
        continue;
      IRBuilder<> builder(choice);
      choice->setCondition(
          bothHold(builder, choice->getFalseValue(), choice->getCondition()));
      choice->setTrueValue(product);
    }
}

/// Errors of the back end, which else would end the process.
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

Result<std::string> print(Module &module, TargetMachine &machine) {
  SmallString<0> text;
  raw_svector_ostream stream(text);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  CodeGenFileType::AssemblyFile))
    return Failure{ErrorCode::Internal, "this target emits no text"};
  passes.run(module);
  return text.str().str();
}

/// Collects errors of a context while it lives.
class Watch {
public:
  explicit Watch(LLVMContext &context)
      : context(context), before(context.getDiagnosticHandler()) {
    context.setDiagnosticHandler(std::make_unique<Collector>(errors));
  }
  ~Watch() { context.setDiagnosticHandler(std::move(before)); }
  std::string errors;

private:
  LLVMContext &context;
  std::unique_ptr<DiagnosticHandler> before;
};

} // namespace

Result<std::unique_ptr<TargetMachine>> nvidiaMachine(const std::string &chip,
                                                     unsigned words) {
  std::string error;
  const llvm::Target *target = findNvptx(error);
  if (!target)
    return Failure{ErrorCode::Internal, error};
  unsigned number = knownChip(*target, chip);
  if (number == 0)
    return Failure{ErrorCode::Internal,
                   "there is no NVIDIA chip `" + chip + "`"};
  return nvptxMachine("sm_" + utostr(number), ptxFeature(number, words).str());
}

Result<std::string> emitPtx(Module &module, const std::string &chip) {
  Result<std::unique_ptr<TargetMachine>> machine =
      nvidiaMachine(chip, mostWords(module));
  if (!machine)
    return machine.error();
  joinGuards(module);
  Watch watch(module.getContext());
  GpuForm form{"NVIDIA GPUs", largestWords, cudaLibrary(), nvidiaShape};
  form.unrollsAgain = true;
  if (Result<> made = makeKernels(module, **machine, form); !made)
    return made.error();
  hideNegations(module);
  compareLate(module);
  if (std::string names = leftOver(module); !names.empty())
    return Failure{ErrorCode::Internal,
                   "there is no code for NVIDIA GPUs for `" + names + "`"};
  Result<std::string> text = print(module, **machine);
  if (text && !watch.errors.empty())
    return Failure{ErrorCode::Internal,
                   "code for NVIDIA GPUs cannot be made: " + watch.errors};
  return text;
}

} // namespace costate::compiler
