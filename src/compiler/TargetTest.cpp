#include "compiler/Target.h"

#include "base/HostCode.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <gtest/gtest.h>

using namespace costate::compiler;

namespace {

/// What the code of function `name` may use.
std::string featuresOf(const llvm::Module &module, const char *name) {
  return module.getFunction(name)
      ->getFnAttribute("target-features")
      .getValueAsString()
      .str();
}

/// After all that happens to it on the way to machine code; null if that fails.
static std::unique_ptr<llvm::Module> compiled(const char *text,
                                              llvm::LLVMContext &context) {
  llvm::SMDiagnostic error;
  auto module = llvm::parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  auto machine = borrowTargetMachine();
  bool done =
      module && optimise(*module, *machine) && emitObject(*module, *machine);
  EXPECT_TRUE(done);
  return done ? std::move(module) : nullptr;
}

TEST(Target, FunctionsWithoutVectorsDoWithoutAvx512) {
  llvm::LLVMContext context;
  auto module = compiled("define double @alone(double %x) {\n"
                         "  %y = fmul double %x, %x\n"
                         "  ret double %y\n"
                         "}\n"
                         "define void @together(ptr %x) {\n"
                         "  store <8 x double> zeroinitializer, ptr %x\n"
                         "  ret void\n"
                         "}\n",
                         context);
  ASSERT_TRUE(module);
  EXPECT_EQ(featuresOf(*module, "alone"), host().scalarFeatures);
  EXPECT_EQ(featuresOf(*module, "together"), host().features);
  EXPECT_EQ(host().scalarFeatures.find("+avx512"), std::string::npos);
}

/// Each description of a processor takes LLVM time.
TEST(Target, FunctionsOfIntegersAreForTheProcessorAsItIs) {
  llvm::LLVMContext context;
  auto module = compiled("define i64 @alone(i64 %x) {\n"
                         "  %y = mul i64 %x, %x\n"
                         "  ret i64 %y\n"
                         "}\n",
                         context);
  ASSERT_TRUE(module);
  EXPECT_EQ(featuresOf(*module, "alone"), host().features);
}

TEST(Target, FeaturesAreThoseInWhichTheProcessorDiffersFromItsName) {
  llvm::Triple triple(host().triple);
  const llvm::Target *target = &borrowTargetMachine()->getTarget();
  auto bits = [&](llvm::StringRef features) {
    std::unique_ptr<llvm::MCSubtargetInfo> info(
        target->createMCSubtargetInfo(triple, host().cpu, features));
    return info->getFeatureBits();
  };
  std::string all;
  for (const auto &feature : llvm::sys::getHostCPUFeatures()) {
    llvm::StringRef name = feature.first();
    bool isUsed =
        feature.second && !name.starts_with("sve") && !name.starts_with("sme");
    all +=
        (all.empty() ? "" : ",") + std::string(isUsed ? "+" : "-") + name.str();
  }
  if (*costate::chosenVectors() == costate::Vectors::AVX512) {
    EXPECT_EQ(bits(host().features), bits(all));
  }
  if (!all.empty()) // as where QEMU runs this
    EXPECT_LT(host().features.size(), all.size());
}

TEST(Target, AMachineIsForOneCompilationAtATimeAndThenForTheNext) {
  TargetMachinePointer one = borrowTargetMachine();
  TargetMachinePointer other = borrowTargetMachine();
  EXPECT_NE(one.get(), other.get());
  llvm::TargetMachine *known = one.get();
  one.reset();
  TargetMachinePointer again = borrowTargetMachine();
  EXPECT_EQ(again.get(), known);
  EXPECT_NE(borrowTargetMachine().get(), known);
}

} // namespace
