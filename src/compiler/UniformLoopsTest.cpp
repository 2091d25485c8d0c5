#include "compiler/UniformLoops.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

using namespace llvm;

namespace costate::compiler {
namespace {

/// A loop that computes s * (s + 1) so many times, from `first` on.
std::string loop(int products, const std::string &first) {
  std::string text = "define void @f(ptr %x, ptr %y, i64 %n) {\n"
                     "entry:\n  br label %body\n"
                     "body:\n"
                     "  %i = phi i64 [0, %entry], [%next, %body]\n"
                     "  %place = getelementptr double, ptr %y, i64 %i\n"
                     "  %varying = load double, ptr %place\n"
                     "  %uniform = load double, ptr %x\n"
                     "  %s0 = fmul double " +
                     first + ", 2.0\n";
  for (int k = 0; k < products; ++k) {
    std::string s = "%s" + std::to_string(k), t = "%t" + std::to_string(k);
    text += "  " + t + " = fadd double " + s + ", 1.0\n  %s" +
            std::to_string(k + 1) + " = fmul double " + s + ", " + t + "\n";
  }
  return text + "  store double %s" + std::to_string(products) +
         ", ptr %place\n"
         "  %next = add i64 %i, 1\n"
         "  %more = icmp ult i64 %next, %n\n"
         "  br i1 %more, label %body, label %end\n"
         "end:\n  ret void\n}\n";
}

bool isSpared(int products, const std::string &first) {
  LLVMContext context;
  SMDiagnostic diagnostic;
  auto module = parseAssemblyString(loop(products, first), diagnostic, context);
  EXPECT_TRUE(module) << diagnostic.getMessage().str();
  if (!module)
    return false;
  PassBuilder builder;
  FunctionAnalysisManager analyses;
  builder.registerFunctionAnalyses(analyses);
  Function &function = *module->getFunction("f");
  SpareUniformLoops().run(function, analyses);
  std::string text;
  raw_string_ostream(text) << *module;
  return text.find("llvm.loop.isvectorized") != std::string::npos;
}

TEST(UniformLoops, LongChainsOfInvariantsAreNotVectorised) {
  EXPECT_TRUE(isSpared(40, "%uniform"));
  EXPECT_TRUE(isSpared(100, "%uniform"));
}

TEST(UniformLoops, OthersAre) {
  EXPECT_FALSE(isSpared(5, "%uniform"));
  EXPECT_FALSE(isSpared(100, "%varying"));
}

} // namespace
} // namespace costate::compiler
