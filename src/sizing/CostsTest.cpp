#include "sizing/Costs.h"

#include "ir/Kernel.h"
#include "sizing/ParsedTest.h"

using namespace mlir;

namespace costate::sizing {
namespace {

class CostTable : public Parsed {
protected:
  CostTable()
      : Parsed(R"(
      func.func @twice(%a: f64) -> f64 {
        %s = costate.sin %a : f64
        %t = arith.addf %s, %s : f64
        return %t : f64
      }
      costate.kernel @k(%a: f32, %b: f64) {
        %sine = costate.sin %a : f32
        %tangent = costate.tan %a : f32
        %wide = costate.sin %b : f64
        %sum = arith.addf %a, %a : f32
        %constant = arith.constant 1.0 : f64
        %call = func.call @twice(%b) : (f64) -> f64
      }
    )") {
    module->walk([&](ir::KernelOp kernel) {
      for (Operation &op : kernel.getBody()->without_terminator())
        ops.push_back(&op);
    });
  }

  SmallVector<int64_t> of(Target target) const {
    return llvm::map_to_vector(
        ops, [&](Operation *op) { return Costs(target).of(op); });
  }

  int64_t ofSaving(Target target, unsigned bits) {
    return Costs(target).ofSaving(IntegerType::get(&context, bits));
  }

  SmallVector<Operation *> ops;
};

TEST_F(CostTable, EachTargetHasOne) {
  EXPECT_EQ(of(Target::Cpu), (SmallVector<int64_t>{20, 20, 20, 1, 0, 21}));
  EXPECT_EQ(of(Target::Gpu), (SmallVector<int64_t>{26, 34, 80, 1, 0, 200}));
  EXPECT_EQ(of(Target::GpuFastMath),
            (SmallVector<int64_t>{8, 8, 80, 1, 0, 200}));
}

TEST_F(CostTable, FunctionsOfOneInstructionBeatSaving) {
  EXPECT_GT(Costs(Target::Gpu).of(ops[0]), ofSaving(Target::Gpu, 32));
  EXPECT_LT(Costs(Target::GpuFastMath).of(ops[0]),
            ofSaving(Target::GpuFastMath, 32));
  EXPECT_GT(Costs(Target::Cpu).of(ops[2]), ofSaving(Target::Cpu, 64));
}

TEST_F(CostTable, WideValuesCostMoreToSaveAndBitsLess) {
  for (Target target : {Target::Cpu, Target::Gpu}) {
    EXPECT_GT(ofSaving(target, 64), ofSaving(target, 32));
    EXPECT_GT(ofSaving(target, 32), ofSaving(target, 16));
    EXPECT_GE(ofSaving(target, 16), ofSaving(target, 1));
    EXPECT_GT(ofSaving(target, 1), 0);
  }
}

TEST_F(CostTable, OnlyGpusHaveTheSineOfACosineForLittle) {
  EXPECT_EQ(Costs(Target::Gpu).ofTwin(ops[0]), 4);
  EXPECT_EQ(Costs(Target::Gpu).ofTwin(ops[2]), 80);
  EXPECT_EQ(Costs(Target::Cpu).ofTwin(ops[0]), 20);
}

} // namespace
} // namespace costate::sizing
