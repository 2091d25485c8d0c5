#include "compiler/targets/simt/Places.h"

#include "compiler/DeviceIr.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

namespace costate::compiler {
namespace {

std::string told(const std::string &ir) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  auto module = llvm::parseAssemblyString(ir, error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  tellPlaces(*module);
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

TEST(Places, EachCallTellsItsOwn) {
  std::string text = told("declare i64 @costate_device_warp_max(i64)\n"
                          "define i64 @f(i64 %a, i64 %b) {\n"
                          "  %x = call i64 @costate_device_warp_max(i64 %a)\n"
                          "  %y = call i64 @costate_device_warp_max(i64 %b)\n"
                          "  %z = add i64 %x, %y\n  ret i64 %z\n}\n");
  for (std::string place : {"1", "2"})
    EXPECT_TRUE(contains(text, "i64 " + place + ")")) << text;
  EXPECT_TRUE(contains(text, "@costate_device_warp_max_at(i64 %a, ")) << text;
  EXPECT_TRUE(contains(text, "@costate_device_warp_max_at(i64 %b, ")) << text;
  EXPECT_FALSE(contains(text, "call i64 @costate_device_warp_max(")) << text;
}

TEST(Places, OtherCodeStaysAsItIs) {
  EXPECT_FALSE(contains(told("define void @f() {\n  ret void\n}\n"), "_at"));
}

} // namespace
} // namespace costate::compiler
