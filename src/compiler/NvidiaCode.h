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

/// Each thread adds the sine of its number, and 1, to shared sums.
inline const char *const sums = R"(
declare double @_Z3sind(double)
define void @sums(ptr %words, i64 %thread, i64 %threads, ptr %memory) "costate-words"="3" {
  %w1 = getelementptr i64, ptr %words, i64 1
  %w2 = getelementptr i64, ptr %words, i64 2
  %out = load ptr, ptr %words
  %a = load i64, ptr %w1
  %sum = inttoptr i64 %a to ptr
  %count = load ptr, ptr %w2
  %i = sitofp i64 %thread to double
  %s = call double @_Z3sind(double %i)
  %p = getelementptr double, ptr %out, i64 %thread
  store double %s, ptr %p
  %old = atomicrmw fadd ptr %sum, double %s monotonic
  %older = atomicrmw add ptr %count, i64 %threads monotonic
  ret void
}
)";

/// Each thread adds the sine of its number and 1, for two sums over the grid.
/// Words: partial sums, their number, ticket, results.
inline const char *const gridSums = R"(
declare double @_Z3sind(double)
declare void @costate_device_add_up(ptr, i64, i64, i64, ptr, i64, i64, double)
declare i64 @costate_device_finish_sums(ptr, i64, ptr, i64, i64, ptr, i64, i64, ptr)
define void @sums(ptr %words, i64 %thread, i64 %threads, ptr %memory) #0 {
  %w1 = getelementptr i64, ptr %words, i64 1
  %w2 = getelementptr i64, ptr %words, i64 2
  %w3 = getelementptr i64, ptr %words, i64 3
  %partials = load ptr, ptr %words
  %count = load i64, ptr %w1
  %ticket = load ptr, ptr %w2
  %to = load ptr, ptr %w3
  %i = sitofp i64 %thread to double
  %s = call double @_Z3sind(double %i)
  call void @costate_device_add_up(ptr %partials, i64 %count, i64 0, i64 %thread, ptr %memory, i64 0, i64 0, double %s)
  call void @costate_device_add_up(ptr %partials, i64 %count, i64 0, i64 %thread, ptr %memory, i64 1, i64 0, double 1.0)
  %done = call i64 @costate_device_finish_sums(ptr %partials, i64 %count, ptr %ticket, i64 %thread, i64 %threads, ptr %memory, i64 2, i64 0, ptr %to)
  ret void
}
attributes #0 = { "costate-words"="4" "costate-sums" }
)";

/// Stores the largest number of the warp and then waits for the block.
inline const std::string warpMaximum =
    "declare i64 @costate_device_warp_max(i64) #1\n"
    "declare void @costate_device_block_barrier() #1\n"
    "define void @f(ptr %words, i64 %thread, i64 %threads, ptr %memory) "
    "#0 {\n  %a = load ptr, ptr %words\n"
    "  %p = getelementptr i64, ptr %a, i64 %thread\n"
    "  %x = load i64, ptr %p\n"
    "  %m = call i64 @costate_device_warp_max(i64 %x)\n"
    "  call void @costate_device_block_barrier()\n"
    "  store i64 %m, ptr %p\n  ret void\n}\n"
    "attributes #0 = { \"costate-words\"=\"1\" }\n"
    "attributes #1 = { convergent }\n";

} // namespace costate::compiler
