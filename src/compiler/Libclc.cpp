#include "compiler/Libclc.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

/// LibclcData.cpp.
extern const unsigned char costateHostLibrary[];
extern const unsigned costateHostLibraryBytes;

namespace costate::compiler {
namespace {

/// What inlining a function may add to a module, in instructions. Sines of f64
/// everywhere would multiply the time of compilation. A call costs what a
/// fourth of a small function does.
constexpr size_t largestInlined = 1000, largestOfSmall = 12000;
constexpr size_t small = 40;

Expected<std::unique_ptr<Module>> parse(StringRef library,
                                        LLVMContext &context) {
  return getOwningLazyBitcodeModule(
      MemoryBuffer::getMemBuffer(library, "libclc", false), context);
}

/// A module of libclc has metadata that says nothing about the user's.
llvm::Error prepare(Module &library, const Module &user) {
  if (llvm::Error error = library.materializeMetadata())
    return error;
  SmallVector<NamedMDNode *> metadata(
      llvm::make_pointer_range(library.named_metadata()));
  for (NamedMDNode *node : metadata)
    node->eraseFromParent();
  library.setTargetTriple(user.getTargetTriple());
  library.setDataLayout(user.getDataLayout());
  return llvm::Error::success();
}

/// libclc lets the compiler choose whether to fuse, and how exactly to divide.
/// The same bits everywhere need one answer.
void makeExact(Instruction &instruction) {
  instruction.setMetadata(LLVMContext::MD_fpmath, nullptr);
  if (isa<FPMathOperator>(instruction))
    instruction.copyFastMathFlags(FastMathFlags());
  auto *call = dyn_cast<CallInst>(&instruction);
  if (call && call->getIntrinsicID() == Intrinsic::fmuladd)
    call->setCalledFunction(Intrinsic::getOrInsertDeclaration(
        call->getModule(), Intrinsic::fma, call->getType()));
}

/// Numbers that do not fit become indices of tables, and are then forgotten:
/// they have to be some number.
void saturate(FPToSIInst &conversion) {
  IRBuilder<> builder(&conversion);
  Value *from = conversion.getOperand(0);
  Value *to = builder.CreateIntrinsic(
      Intrinsic::fptosi_sat, {conversion.getType(), from->getType()}, {from});
  conversion.replaceAllUsesWith(to);
  conversion.eraseFromParent();
}

void makeExact(Function &function) {
  for (StringRef attribute :
       {"target-cpu", "target-features", "frame-pointer",
        "stack-protector-buffer-size", "no-trapping-math", "no-builtins"})
    function.removeFnAttr(attribute);
  for (Instruction &instruction :
       llvm::make_early_inc_range(instructions(function))) {
    makeExact(instruction);
    if (auto *conversion = dyn_cast<FPToSIInst>(&instruction))
      saturate(*conversion);
  }
}

/// Functions that others of the library call are there for rare cases.
bool pays(const Function &function, const DenseSet<Function *> &added) {
  for (const User *user : function.users()) {
    auto *call = dyn_cast<CallInst>(user);
    if (!call || added.contains(call->getFunction()))
      return false;
  }
  size_t instructions = function.getInstructionCount();
  return function.getNumUses() * instructions <=
         (instructions <= small ? largestOfSmall : largestInlined);
}

DenseSet<Function *> definitions(Module &module) {
  DenseSet<Function *> found;
  for (Function &function : module)
    if (!function.isDeclaration())
      found.insert(&function);
  return found;
}

} // namespace

StringRef hostLibrary() {
  return {reinterpret_cast<const char *>(costateHostLibrary),
          costateHostLibraryBytes};
}

Result<> linkLibrary(Module &module, StringRef bitcode) {
  Expected<std::unique_ptr<Module>> library =
      parse(bitcode, module.getContext());
  llvm::Error error =
      library ? prepare(**library, module) : library.takeError();
  if (error)
    return Failure{ErrorCode::Internal,
                   "libclc cannot be read: " + toString(std::move(error))};
  DenseSet<Function *> before = definitions(module);
  if (Linker::linkModules(module, std::move(*library), Linker::LinkOnlyNeeded))
    return Failure{ErrorCode::Internal, "libclc cannot be linked"};
  DenseSet<Function *> added = definitions(module);
  for (Function *function : before)
    added.erase(function);
  for (Function *function : added) {
    function->setLinkage(GlobalValue::InternalLinkage);
    makeExact(*function);
    function->addFnAttr(pays(*function, added) ? Attribute::AlwaysInline
                                               : Attribute::NoInline);
  }
  return {};
}

} // namespace costate::compiler
