#include "compiler/targets/simt/Places.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace costate::compiler {

void tellPlaces(Module &module) {
  Function *plain = module.getFunction("costate_device_warp_max");
  if (!plain)
    return;
  Type *i64 = Type::getInt64Ty(module.getContext());
  FunctionCallee telling =
      module.getOrInsertFunction("costate_device_warp_max_at", i64, i64, i64);
  uint64_t place = 0;
  for (User *user : make_early_inc_range(plain->users())) {
    auto *call = cast<CallInst>(user);
    IRBuilder<> builder(call);
    Value *number = builder.getInt64(++place);
    call->replaceAllUsesWith(
        builder.CreateCall(telling, {call->getArgOperand(0), number}));
    call->eraseFromParent();
  }
}

} // namespace costate::compiler
