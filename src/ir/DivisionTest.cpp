#include "ir/Division.h"

#include "ir/Kernel.h"
#include "ir/Registration.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace costate::ir {
namespace {

/// What operations on constants give.
class Evaluator {
public:
  void run(Block &block) {
    for (Operation &op : block)
      if (auto branch = dyn_cast<scf::IfOp>(op))
        choose(branch);
      else if (!isa<scf::YieldOp>(op))
        fold(op);
  }

  int64_t operator[](Value value) const {
    return cast<IntegerAttr>(known.lookup(value)).getValue().getZExtValue();
  }

private:
  void choose(scf::IfOp branch) {
    Block *block = (*this)[branch.getCondition()] ? branch.thenBlock()
                                                  : branch.elseBlock();
    run(*block);
    for (auto [result, value] :
         llvm::zip(branch.getResults(), block->getTerminator()->getOperands()))
      known[result] = known.lookup(value);
  }

  void fold(Operation &op) {
    SmallVector<Attribute> operands;
    for (Value operand : op.getOperands())
      operands.push_back(known.lookup(operand));
    SmallVector<OpFoldResult> results;
    ASSERT_TRUE(succeeded(op.fold(operands, results)));
    for (auto [result, folded] : llvm::zip(op.getResults(), results))
      known[result] = isa<Attribute>(folded)
                          ? cast<Attribute>(folded)
                          : known.lookup(cast<Value>(folded));
  }

  llvm::DenseMap<Value, Attribute> known;
};

class Division : public testing::Test {
protected:
  Division() { context.loadAllAvailableDialects(); }

  static DialectRegistry registry() {
    DialectRegistry dialects;
    registerDialects(dialects);
    return dialects;
  }

  /// Extents that the compiler knows, and such that it does not.
  std::vector<int64_t> indices(int64_t number, std::vector<int64_t> extents,
                               int64_t count) {
    auto known = indices(number, extents, count, /*isKnown=*/true);
    EXPECT_EQ(indices(number, extents, count, /*isKnown=*/false), known);
    return known;
  }

  std::vector<int64_t> indices(int64_t number, std::vector<int64_t> extents,
                               int64_t count, bool isKnown) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    ImplicitLocOpBuilder b(module->getLoc(), module->getBodyRegion());
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
    };
    std::vector<Value> values;
    for (int64_t extent : extents)
      values.push_back(isKnown
                           ? constant(extent)
                           : DivOp::create(b, b.getI64Type(), constant(extent),
                                           constant(1), /*isUnsigned=*/true)
                                 .getResult());
    SmallVector<Divisor> divisors;
    for (Value extent : llvm::drop_begin(values))
      divisors.push_back(Divisor::of(b, extent));
    auto results = indicesOf(b, constant(number), values, divisors,
                             isNarrow(b, constant(count)));
    Evaluator evaluator;
    evaluator.run(*module->getBody());
    std::vector<int64_t> found;
    for (Value result : results)
      found.push_back(evaluator[result]);
    return found;
  }

  MLIRContext context{registry()};
};

constexpr int64_t most = (int64_t(1) << 31) - 1;

TEST_F(Division, IsThatOfNumbersBelow2To31) {
  for (int64_t divisor :
       {int64_t(1), int64_t(2), int64_t(3), int64_t(7), int64_t(641),
        int64_t(65535), int64_t(65536), int64_t(1) << 30, most - 1, most})
    for (int64_t number : {int64_t(0), int64_t(1), divisor - 1, divisor,
                           divisor + 1, most / divisor * divisor - 1,
                           most / divisor * divisor, most - 1, most})
      if (number >= 0 && number <= most)
        EXPECT_EQ(indices(number, {most, divisor}, most),
                  (std::vector{number / divisor, number % divisor}))
            << number << " / " << divisor;
}

TEST_F(Division, TheLastIndexIsTheFastest) {
  EXPECT_EQ(indices(4321, {10, 20, 30}, 6000), (std::vector<int64_t>{7, 4, 1}));
}

TEST_F(Division, LargeNumbersAreDivided) {
  int64_t number = int64_t(3) << 40;
  EXPECT_EQ(indices(number + 5, {int64_t(1) << 31, 1 << 12}, number + 6),
            (std::vector{number >> 12, int64_t(5)}));
}

} // namespace
} // namespace costate::ir
