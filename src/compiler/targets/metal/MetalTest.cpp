/// What becomes of LLVM IR for Metal devices, as text, and what a C++ compiler
/// says of it.

#include "compiler/targets/metal/MetalSource.h"

#include "TemporaryFolder.h"
#include "base/DeviceSymbol.h"
#include "base/MetalChip.h"
#include "compiler/DeviceIr.h"
#include "compiler/targets/TargetBackend.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

namespace costate::compiler {
namespace {

Result<std::string> emit(const std::string &ir) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
      "target datalayout = \"i64:64\"\n" + ir, error, context);
  if (!module)
    return Failure{ErrorCode::Internal, error.getMessage().str()};
  return emitMetal(std::move(module));
}

/// From the kernel on.
std::string kernelOf(const std::string &ir) {
  Result<std::string> text = emit(ir);
  EXPECT_TRUE(text.ok()) << text.error().text << "\n" << ir;
  if (!text)
    return "";
  size_t start = text->find("\nkernel void ");
  EXPECT_NE(start, text->npos);
  return text->substr(std::min(start, text->size()));
}

std::string of(const std::string &type, const std::string &body,
               const std::string &declarations = "") {
  return kernelOf(withNumber(type, body, declarations));
}

} // namespace

TEST(MetalText, TargetsHaveTheirFeaturesInTheirName) {
  const TargetKind &metal = targets::metal();
  EXPECT_TRUE(isOf("metal3.2", metal));
  EXPECT_TRUE(isOf("metal3.2;f64", metal));
  EXPECT_FALSE(isOf("metal2", metal));
  EXPECT_FALSE(isOf("vulkan1.2;subgroup=32", metal));
}

TEST(MetalText, KernelsHaveNamesOfTheirOwn) {
  EXPECT_EQ(metalName(deviceSymbol("f.range0")), "f_f_s2erange0_skernel");
  EXPECT_NE(metalName("a_s"), metalName("a$"));
  EXPECT_NE(metalName("a_"), metalName("a.u"));
}

TEST(MetalText, FloatsAreRoundedOnceAndNothingIsContracted) {
  Result<std::string> text =
      emit(withNumber("float", "  %z = fmul float %x, %x\n"
                               "  %y = fadd float %z, %x\n"));
  ASSERT_TRUE(text.ok()) << text.error().text;
  EXPECT_TRUE(contains(*text, "#pragma METAL fp math_mode(safe)"));
  EXPECT_TRUE(contains(*text, "#pragma METAL fp contract(off)"));
  std::string kernel = text->substr(text->find("\nkernel void "));
  EXPECT_EQ(countOf(kernel, "const float "), 3); // loaded, product, sum
  EXPECT_EQ(countOf(kernel, "fma("), 0);
}

TEST(MetalText, FusedOperationsAreThoseOfMetal) {
  EXPECT_TRUE(
      contains(of("float",
                  "  %y = call float @llvm.fma.f32(float %x, float %x, float "
                  "%x)\n",
                  "declare float @llvm.fma.f32(float, float, float)"),
               " = fma("));
  EXPECT_TRUE(contains(of("float",
                          "  %y = call float @llvm.sqrt.f32(float "
                          "%x)\n",
                          "declare float @llvm.sqrt.f32(float)"),
                       "precise::sqrt("));
}

TEST(MetalText, DoublesAreComputedOfIntegers) {
  Result<std::string> text =
      emit(withNumber("double", "  %y = fadd double %x, 1.0\n"));
  ASSERT_TRUE(text.ok()) << text.error().text;
  std::string kernel = text->substr(text->find("\nkernel void "));
  EXPECT_TRUE(contains(kernel, "costate_f64_add("));
  EXPECT_FALSE(contains(*text, "double "));
  EXPECT_TRUE(contains(of("double", "  %c = fcmp uno double %x, 1.0\n"
                                    "  %y = select i1 %c, double 2.0, double "
                                    "%x\n"),
                       " & 8u) != 0u"));
  EXPECT_FALSE(contains(of("float", "  %y = fadd float %x, 1.0\n"), "f64"));
}

TEST(MetalText, SignsOfNarrowIntegersCount) {
  std::string kernel = of("i8", "  %y = sdiv i8 %x, 3\n");
  EXPECT_TRUE(contains(kernel, "<< 24) >> 24"));
  EXPECT_TRUE(contains(kernel, "& 255u"));
}

TEST(MetalText, AtomicsOfWordsAreThoseOfMetal) {
  EXPECT_TRUE(contains(
      of("float", "  %y = atomicrmw fadd ptr %p, float %x monotonic\n"),
      "costate_atomic32_fadd("));
  EXPECT_TRUE(
      contains(of("i32", "  %y = atomicrmw add ptr %p, i32 %x monotonic\n"),
               "costate_atomic32_add("));
  std::string kernel =
      of("float", "  %y = atomicrmw fmax ptr %p, float %x monotonic\n");
  EXPECT_TRUE(contains(kernel, "while (true)"));
  EXPECT_TRUE(contains(kernel, "costate_atomic32_compare("));
}

TEST(MetalText, AtomicsOf64BitsTakeALock) {
  EXPECT_TRUE(
      contains(of("i64", "  %y = atomicrmw add ptr %p, i64 %x monotonic\n"),
               "costate_atomic64_add(launch, "));
}

TEST(MetalText, OrdersAreFences) {
  std::string kernel =
      of("i32", "  %y = atomicrmw add ptr %p, i32 %x acq_rel\n");
  EXPECT_EQ(countOf(kernel, "costate_device_fence();"), 2);
  kernel = of("i32", "  %y = load atomic i32, ptr %p acquire, align 4\n");
  EXPECT_EQ(countOf(kernel, "costate_device_fence();"), 1);
}

TEST(MetalText, TablesAreConstants) {
  Result<std::string> text = emit(withNumber(
      "i32",
      "  %q = getelementptr [4 x i32], ptr addrspace(4) @table, i64 0, "
      "i32 %x\n  %y = load i32, ptr addrspace(4) %q\n",
      "@table = internal addrspace(4) constant [4 x i32] [i32 7, i32 1234567, "
      "i32 3, i32 -1]\n"));
  ASSERT_TRUE(text.ok()) << text.error().text;
  EXPECT_TRUE(contains(*text, "constant uint costate_tables[] = {"));
  EXPECT_TRUE(contains(*text, "0x7u, 0x12d687u, 0x3u, 0xffffffffu,"));
}

} // namespace costate::compiler
