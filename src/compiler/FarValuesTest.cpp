#include "compiler/FarValues.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

using namespace costate::compiler;

namespace {

/// `count` values, each used once, in the opposite order; the first one by a
/// phi as well.
std::string there_and_back(int count) {
  std::string text = "define double @f(double %x, i1 %c) {\n"
                     "  %v0 = fmul double %x, 3.0\n";
  auto name = [](const char *prefix, int k) {
    return "%" + std::string(prefix) + std::to_string(k);
  };
  for (int k = 1; k < count; ++k)
    text += name("v", k) + " = fmul double " + name("v", k - 1) + ", 2.0\n";
  text += "%s" + std::to_string(count) + " = fadd double %x, 1.0\n";
  for (int k = count - 1; k >= 0; --k)
    text += name("s", k) + " = fadd double " + name("s", k + 1) + ", " +
            name("v", k) + "\n";
  return text + "  br i1 %c, label %end, label %end\n"
                "end:\n"
                "  %r = phi double [ %v0, %0 ], [ %v0, %0 ]\n"
                "  %t = fadd double %r, %s0\n"
                "  ret double %t\n"
                "}\n";
}

/// The most instructions between a value and its use.
unsigned longestLife(llvm::Function &function) {
  llvm::DenseMap<const llvm::Value *, unsigned> numbers;
  for (llvm::Instruction &instruction : instructions(function))
    numbers[&instruction] = numbers.size();
  unsigned most = 0;
  for (llvm::Instruction &instruction : instructions(function))
    for (llvm::Value *operand : instruction.operands())
      if (llvm::isa<llvm::Instruction>(operand) &&
          !llvm::isa<llvm::AllocaInst>(operand))
        most = std::max(most, numbers[&instruction] - numbers[operand]);
  return most;
}

struct Parsed {
  explicit Parsed(const std::string &text) {
    llvm::SMDiagnostic error;
    module = llvm::parseAssemblyString(text, error, context);
    EXPECT_TRUE(module) << error.getMessage().str();
  }
  llvm::Function &function() { return *module->getFunction("f"); }
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

} // namespace

TEST(FarValues, WaitOnTheStackInLongFunctions) {
  Parsed parsed(there_and_back(3000));
  ASSERT_TRUE(isLong(parsed.function()));
  EXPECT_GT(longestLife(parsed.function()), 5000u);
  spillFarValues(parsed.function());
  EXPECT_FALSE(llvm::verifyFunction(parsed.function(), &llvm::errs()));
  EXPECT_LT(longestLife(parsed.function()), 2000u);
}

TEST(FarValues, StayInRegistersInShortFunctions) {
  Parsed parsed(there_and_back(1000));
  EXPECT_FALSE(isLong(parsed.function()));
}
