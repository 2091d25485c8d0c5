#include "conversion/KernelForm.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace costate::conversion {

static void replaceUnreachable(Function &function) {
  for (BasicBlock &block : function) {
    auto *end = dyn_cast<UnreachableInst>(block.getTerminator());
    if (!end)
      continue;
    IRBuilder<> builder(end);
    Type *type = function.getReturnType();
    if (type->isVoidTy())
      builder.CreateRetVoid();
    else
      builder.CreateRet(Constant::getNullValue(type));
    end->eraseFromParent();
  }
}

static bool isExit(const Instruction &instruction) {
  auto *call = dyn_cast<CallInst>(&instruction);
  return call && call->getCalledFunction() &&
         call->getCalledFunction()->getName() == "costate_device_exit";
}

void endThreadsByReturning(Function &kernel) {
  SmallVector<Instruction *> exits;
  for (Instruction &instruction : instructions(kernel))
    if (isExit(instruction))
      exits.push_back(&instruction);
  for (Instruction *exit : exits)
    changeToUnreachable(exit);
  replaceUnreachable(kernel);
}

static void moveToPrivate(AllocaInst &memory) {
  for (User *user : make_early_inc_range(memory.users()))
    if (auto *lifetime = dyn_cast<LifetimeIntrinsic>(user))
      lifetime->eraseFromParent();
  IRBuilder<> builder(&memory);
  auto *own = builder.CreateAlloca(memory.getAllocatedType(), privateSpace,
                                   memory.getArraySize());
  own->setAlignment(memory.getAlign());
  memory.replaceAllUsesWith(builder.CreateAddrSpaceCast(own, memory.getType()));
  memory.eraseFromParent();
}

void markPrivate(Function &function) {
  SmallVector<AllocaInst *> all;
  for (Instruction &instruction : instructions(function))
    if (auto *memory = dyn_cast<AllocaInst>(&instruction);
        memory && memory->getAddressSpace() != privateSpace)
      all.push_back(memory);
  for (AllocaInst *memory : all)
    moveToPrivate(*memory);
}

} // namespace costate::conversion
