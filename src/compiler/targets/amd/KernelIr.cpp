#include "compiler/targets/amd/KernelIr.h"

#include "base/GpuShape.h"
#include "compiler/GpuModule.h"
#include "compiler/targets/amd/Intrinsics.h"
#include "conversion/KernelForm.h"
#include "conversion/LLVMPasses.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {
namespace {

constexpr unsigned flatSpace = 0, globalSpace = 1, constantSpace = 4;

/// Global memory by default, and tables apart.
void placeGlobals(Module &module) {
  for (GlobalVariable &global : make_early_inc_range(module.globals())) {
    if (global.getAddressSpace() == sharedSpace && global.hasInitializer())
      global.setInitializer(PoisonValue::get(global.getValueType()));
    if (global.getAddressSpace() != flatSpace || global.use_empty())
      continue;
    auto *placed = new GlobalVariable(
        module, global.getValueType(), global.isConstant(), global.getLinkage(),
        global.getInitializer(), "", &global, GlobalValue::NotThreadLocal,
        global.isConstant() ? constantSpace : globalSpace);
    placed->setAlignment(global.getAlign());
    placed->takeName(&global);
    global.replaceAllUsesWith(
        ConstantExpr::getAddrSpaceCast(placed, global.getType()));
    global.eraseFromParent();
  }
}

//===-- Atomics -----------------------------------------------------------===//

/// Arrays are in memory that no other device adds to.
void allowInstruction(AtomicRMWInst &update) {
  MDNode *none = MDNode::get(update.getContext(), {});
  for (const char *promise :
       {"amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory",
        "amdgpu.ignore.denormal.mode"})
    update.setMetadata(promise, none);
}

void convertAtomics(Function &function) {
  LLVMContext &context = function.getContext();
  SyncScope::ID agent = context.getOrInsertSyncScopeID("agent");
  for (Instruction &instruction : instructions(function)) {
    if (instruction.isAtomic() && !isa<FenceInst>(instruction))
      setAtomicSyncScopeID(&instruction, agent);
    auto *update = dyn_cast<AtomicRMWInst>(&instruction);
    if (update && update->isFloatingPointOperation())
      allowInstruction(*update);
  }
}

//===-- Kernels -----------------------------------------------------------===//

/// Whether all that is done with `words` is to load some.
bool isOnlyLoaded(const Value &words) {
  return all_of(words.users(), [&](const User *user) {
    if (auto *load = dyn_cast<LoadInst>(user))
      return !load->isVolatile();
    return isa<GetElementPtrInst>(user) && isOnlyLoaded(*user);
  });
}

/// `pointer` is to global memory.
void markGlobal(Instruction &pointer) {
  IRBuilder<> builder(&*std::next(pointer.getIterator()));
  Value *global = builder.CreateAddrSpaceCast(
      &pointer, PointerType::get(pointer.getContext(), globalSpace));
  Value *flat = builder.CreateAddrSpaceCast(global, pointer.getType());
  pointer.replaceUsesWithIf(
      flat, [&](const Use &use) { return use.getUser() != global; });
}

/// Words that are addresses are those of global memory.
void markGlobalWords(Value &words) {
  SmallVector<Instruction *> found;
  auto visit = [&](auto &self, Value &value) -> void {
    for (User *user : value.users()) {
      if (auto *load = dyn_cast<LoadInst>(user)) {
        if (load->getType()->isPointerTy())
          found.push_back(load);
        for (User *use : load->users())
          if (isa<IntToPtrInst>(use))
            found.push_back(cast<Instruction>(use));
      } else {
        self(self, *user);
      }
    }
  };
  visit(visit, words);
  for (Instruction *pointer : found)
    markGlobal(*pointer);
}

Value *copyOf(IRBuilder<> &builder, Value *words, Type *type) {
  AllocaInst *copy = builder.CreateAlloca(type, conversion::privateSpace);
  copy->setAlignment(Align(8));
  builder.CreateMemCpy(
      copy, Align(8), words, Align(8),
      copy->getModule()->getDataLayout().getTypeStoreSize(type));
  return copy;
}

/// Launches are of whole blocks, in one dimension.
void describeBlocks(const Function &from, Function &kernel) {
  constexpr const char *largest = "1024";
  StringRef limit = from.getFnAttribute("nvvm.maxntid").getValueAsString();
  kernel.addFnAttr("amdgpu-flat-work-group-size",
                   ("1," + (limit.empty() ? largest : limit)).str());
  kernel.addFnAttr("uniform-work-group-size", "true");
  for (const char *dimension :
       {"workgroup-id-y", "workgroup-id-z", "workitem-id-y", "workitem-id-z"})
    kernel.addFnAttr(std::string("amdgpu-no-") + dimension);
  kernel.setDoesNotThrow();
}

/// With the words as an argument in constant memory.
void convertKernel(Function &from) {
  LLVMContext &context = from.getContext();
  auto *type =
      FunctionType::get(Type::getVoidTy(context),
                        {PointerType::get(context, constantSpace)}, false);
  Function *kernel = Function::Create(type, GlobalValue::ExternalLinkage, "",
                                      from.getParent());
  kernel->takeName(&from);
  kernel->setCallingConv(CallingConv::AMDGPU_KERNEL);
  kernel->setVisibility(GlobalValue::ProtectedVisibility);
  Type *array = from.getParamByValType(0);
  kernel->addParamAttr(0, Attribute::getWithByRefType(context, array));
  kernel->addParamAttr(0, Attribute::getWithAlignment(context, Align(8)));
  describeBlocks(from, *kernel);
  kernel->splice(kernel->begin(), &from);
  Argument *before = from.getArg(0), *words = kernel->getArg(0);
  IRBuilder<> builder(&*kernel->getEntryBlock().getFirstInsertionPt());
  bool isRead = isOnlyLoaded(*before);
  if (isRead)
    markGlobalWords(*before);
  Value *place = isRead ? words : copyOf(builder, words, array);
  before->replaceAllUsesWith(
      builder.CreateAddrSpaceCast(place, before->getType()));
  from.eraseFromParent();
}

void convertKernels(Module &module) {
  for (Function &function : make_early_inc_range(module))
    if (function.getCallingConv() == CallingConv::PTX_Kernel)
      convertKernel(function);
}

/// Loops end where they say, so that lanes which wait for a lock of others
/// leave it to these.
void hideConditions(Module &module) {
  Function *opaque = module.getFunction("costate_device_opaque");
  if (!opaque)
    return;
  for (User *user : make_early_inc_range(opaque->users())) {
    auto *call = cast<CallInst>(user);
    IRBuilder<> builder(call);
    Type *number = builder.getInt32Ty();
    auto *code = InlineAsm::get(FunctionType::get(number, {number}, false), "",
                                "=v,0", /*hasSideEffects=*/true);
    Value *hidden = builder.CreateCall(
        code, {builder.CreateZExt(call->getArgOperand(0), number)});
    call->replaceAllUsesWith(builder.CreateIsNotNull(hidden));
    call->eraseFromParent();
  }
}

void retarget(Module &module, const TargetMachine &machine) {
  constexpr unsigned version = 500; // of code objects
  for (NamedMDNode &node : make_early_inc_range(module.named_metadata()))
    node.eraseFromParent();
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  module.addModuleFlag(Module::Error, "amdhsa_code_object_version", version);
}

} // namespace

void convertToAmd(Module &module, TargetMachine &machine,
                  const GpuShape &shape) {
  retarget(module, machine);
  placeGlobals(module);
  hideConditions(module);
  replaceIntrinsics(module, shape);
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    for (const char *attribute : {"target-cpu", "target-features"})
      function.removeFnAttr(attribute);
    conversion::endThreadsByReturning(function);
    conversion::markPrivate(function);
    convertAtomics(function);
  }
  convertKernels(module);
  conversion::runPasses(module, machine, [](PassBuilder &builder) {
    return conversion::parsePasses(
        builder, "function(infer-address-spaces,sroa,"
                 "instcombine<no-verify-fixpoint>,simplifycfg,early-cse,dce)");
  });
}

} // namespace costate::compiler
