#pragma once
/// Instructions that LLVM does not look into.

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"

namespace costate::compiler {

/// What `text` makes of `args`, and nothing else.
inline llvm::Value *pureAssembly(llvm::IRBuilder<> &builder, llvm::Type *result,
                                 llvm::ArrayRef<llvm::Value *> args,
                                 llvm::StringRef text,
                                 llvm::StringRef constraints) {
  llvm::SmallVector<llvm::Type *> types;
  for (llvm::Value *arg : args)
    types.push_back(arg->getType());
  auto *code = llvm::InlineAsm::get(
      llvm::FunctionType::get(result, types, false), text, constraints,
      /*hasSideEffects=*/false);
  llvm::CallInst *call = builder.CreateCall(code, args);
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();
  call->addFnAttr(llvm::Attribute::WillReturn);
  return call;
}

} // namespace costate::compiler
