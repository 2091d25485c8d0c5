#include "compiler/targets/cuda/Nvidia.h"

#include "compiler/BackEnd.h"
#include "compiler/GpuMachine.h"
#include "compiler/GpuModule.h"
#include "compiler/targets/cuda/LateGuards.h"
#include "compiler/targets/cuda/Library.h"
#include "compiler/targets/cuda/NvidiaAssembly.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"
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
  BackEndErrors errors(module.getContext());
  GpuForm form{"NVIDIA GPUs", largestWords, cudaLibrary(), nvidiaShape};
  form.unrollsAgain = true;
  if (Result<> made = makeKernels(module, **machine, form); !made)
    return made.error();
  hideNegations(module);
  compareLate(module);
  if (Result<> has = checkHasCode(module, "llvm.nvvm.", form.gpus); !has)
    return has.error();
  Result<std::string> text =
      runBackEnd(module, **machine, CodeGenFileType::AssemblyFile);
  if (Result<> made = errors.check(form.gpus); !made)
    return made.error();
  return text;
}

} // namespace costate::compiler
