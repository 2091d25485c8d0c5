#include "compiler/ByteMasks.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace llvm;

namespace {

std::string widened(const std::string &body) {
  LLVMContext context;
  SMDiagnostic error;
  auto module = parseAssemblyString(
      "declare <8 x i8> @llvm.masked.load.v8i8.p0(ptr, <8 x i1>, <8 x i8>)\n"
      "declare void @llvm.masked.store.v8i8.p0(<8 x i8>, ptr, <8 x i1>)\n"
      "declare void @llvm.masked.store.v8i16.p0(<8 x i16>, ptr, <8 x i1>)\n"
      "declare void @llvm.masked.store.v4i8.p0(<4 x i8>, ptr, <4 x i1>)\n"
      "define void @f(ptr %x, <8 x i1> %m, <4 x i1> %n) {\n" +
          body + "  ret void\n}\n",
      error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  Function &function = *module->getFunction("f");
  costate::compiler::widenByteMasks(function);
  EXPECT_FALSE(verifyModule(*module, &errs()));
  std::string text;
  raw_string_ostream stream(text);
  function.print(stream);
  return text;
}

bool contains(const std::string &text, const char *part) {
  return text.find(part) != text.npos;
}

TEST(ByteMasks, OfEightBytesComeFromAGeneralRegister) {
  std::string text = widened(
      "  %a = call <8 x i8> @llvm.masked.load.v8i8.p0(ptr align 1 %x, <8 x i1> "
      "%m, <8 x i8> zeroinitializer)\n"
      "  call void @llvm.masked.store.v8i8.p0(<8 x i8> %a, ptr align 1 %x, "
      "<8 x i1> %m)\n");
  EXPECT_TRUE(contains(text, "@llvm.masked.load.v16i8.p0(ptr align 1 %x"));
  EXPECT_TRUE(contains(text, "@llvm.masked.store.v16i8.p0("));
  EXPECT_TRUE(contains(text, "asm \"\", \"=r,0\""));
  EXPECT_FALSE(contains(text, "v8i8")) << text;
}

TEST(ByteMasks, OfOtherAccessesStay) {
  std::string text = widened(
      "  call void @llvm.masked.store.v8i16.p0(<8 x i16> zeroinitializer, ptr "
      "align 2 %x, <8 x i1> %m)\n"
      "  call void @llvm.masked.store.v4i8.p0(<4 x i8> zeroinitializer, ptr "
      "align 1 %x, <4 x i1> %n)\n");
  EXPECT_FALSE(contains(text, "asm")) << text;
}

} // namespace
