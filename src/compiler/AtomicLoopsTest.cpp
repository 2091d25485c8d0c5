#include "compiler/AtomicLoops.h"

#include "compiler/Target.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"

#include <gtest/gtest.h>

using namespace llvm;

namespace costate::compiler {
namespace {

/// A loop that does `update` to `%place`, in column i of a row-major matrix.
std::string loop(const std::string &update) {
  return "define void @f(ptr %x, i64 %n, double %d) {\n"
         "entry:\n  br label %body\n"
         "body:\n"
         "  %i = phi i64 [0, %entry], [%next, %body]\n"
         "  %left = sub i64 %n, %i\n"
         "  %element = mul i64 %left, %n\n"
         "  %place = getelementptr double, ptr %x, i64 %element\n" +
         update +
         "  %next = add i64 %i, 1\n"
         "  %more = icmp ult i64 %next, %n\n"
         "  br i1 %more, label %body, label %end\n"
         "end:\n  ret void\n}\n";
}

/// Whether each iteration multiplies for its address.
bool multiplies(const std::string &update) {
  LLVMContext context;
  SMDiagnostic diagnostic;
  auto module = parseAssemblyString(loop(update), diagnostic, context);
  EXPECT_TRUE(module) << diagnostic.getMessage().str();
  if (!module)
    return false;
  TargetMachinePointer machine = borrowTargetMachine();
  module->setDataLayout(machine->createDataLayout());
  PassBuilder builder(machine.get());
  LoopAnalysisManager loops;
  FunctionAnalysisManager analyses;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(analyses);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, analyses, components, modules);
  Function &function = *module->getFunction("f");
  ReduceAtomicLoops().run(function, analyses);
  const BasicBlock *body = nullptr;
  for (const Instruction &one : instructions(function))
    if (one.mayWriteToMemory())
      body = one.getParent();
  return any_of(*body, [](const Instruction &one) {
    return one.getOpcode() == Instruction::Mul;
  });
}

TEST(AtomicLoops, AddressesAreAddedUp) {
  EXPECT_FALSE(multiplies("  %old = atomicrmw fadd ptr %place, double %d "
                          "monotonic\n"));
}

TEST(AtomicLoops, OthersAreLeftToCodeGeneration) {
  EXPECT_TRUE(multiplies("  store double %d, ptr %place\n"));
}

} // namespace
} // namespace costate::compiler
