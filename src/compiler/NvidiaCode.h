#pragma once
/// What tests compile for NVIDIA GPUs.

#include "compiler/DeviceIr.h"
#include "compiler/targets/cuda/Nvidia.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

namespace costate::compiler {

inline Result<std::string> emit(const std::string &ir,
                                const std::string &chip = "sm_90") {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssemblyString(ir, error, context);
  if (!module)
    return Failure{ErrorCode::Internal, error.getMessage().str()};
  return emitPtx(*module, chip);
}

inline std::string ptx(const std::string &ir,
                       const std::string &chip = "sm_90") {
  Result<std::string> text = emit(ir, chip);
  EXPECT_TRUE(text.ok()) << text.error().text;
  return text ? *text : "";
}

} // namespace costate::compiler
