#include "conversion/KernelToLLVM/Passes.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_SPLITROWS
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// The loop over a row, whose iterations of the interior are neighbours.
class Row {
public:
  Row(scf::ForOp loop, scf::IfOp branch, int64_t vectorBits)
      : loop(loop), branch(branch), b(loop.getLoc(), loop),
        vectorBits(vectorBits) {}

  bool split() {
    moveLoopInvariantCode(loop);
    first = loop.getLowerBound();
    last = loop.getUpperBound();
    if (!addBounds(branch.getCondition()))
      return false;
    Value lo = loop.getLowerBound(), hi = loop.getUpperBound();
    if (outer)
      last = arith::SelectOp::create(b, outer, last, lo);
    first = arith::MinSIOp::create(b, first, hi);
    last = arith::MaxSIOp::create(b, last, first);
    roundToVectors();
    emitBorders(lo, hi);
    emit(b, first, last, *branch.thenBlock());
    loop.erase();
    return true;
  }

private:
  /// Whole vectors at places that are multiples of them, unless most of the row
  /// would be border then.
  void roundToVectors() {
    Value mask = constant(~(lanes() - 1)), most = constant(lanes() - 1);
    Value up = arith::AddIOp::create(b, at(first, 1), most);
    Value rounded[] = {at(arith::AndIOp::create(b, up, mask), -1),
                       at(arith::AndIOp::create(b, at(last, 1), mask), -1)};
    Value length = arith::SubIOp::create(b, last, first);
    Value left = arith::SubIOp::create(b, rounded[1], rounded[0]);
    Value twice = arith::AddIOp::create(b, left, left);
    Value serves =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, twice, length);
    first = arith::SelectOp::create(b, serves, rounded[0], first);
    last = arith::SelectOp::create(b, serves, rounded[1], last);
  }

  /// How many numbers of the narrowest type that is loaded a vector holds.
  int64_t lanes() {
    int64_t bits = 64;
    branch.thenBlock()->walk([&](ir::LoadOp load) {
      bits = std::min<int64_t>(bits, load.getType().getIntOrFloatBitWidth());
    });
    return std::max<int64_t>(vectorBits / bits, 1);
  }

  /// The number of the element of work item `number`, or the other way round.
  Value at(Value number, int sign) {
    if (!offset)
      return number;
    return sign > 0 ? arith::AddIOp::create(b, number, offset).getResult()
                    : arith::SubIOp::create(b, number, offset).getResult();
  }

  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }

  bool isInvariant(Value value) { return loop.isDefinedOutsideOfLoop(value); }

  /// What conjunction `condition` asks of the index.
  bool addBounds(Value condition) {
    if (isInvariant(condition)) {
      outer = outer ? arith::AndIOp::create(b, outer, condition).getResult()
                    : condition;
      return true;
    }
    if (auto both = condition.getDefiningOp<arith::AndIOp>())
      return addBounds(both.getLhs()) && addBounds(both.getRhs());
    auto bound = condition.getDefiningOp<arith::CmpIOp>();
    return bound && isInvariant(bound.getRhs()) && addBound(bound);
  }

  bool addBound(arith::CmpIOp bound) {
    Value limit = bound.getRhs();
    auto sum = bound.getLhs().getDefiningOp<arith::AddIOp>();
    if (sum && isInvariant(sum.getRhs())) {
      offset = sum.getRhs();
      limit = arith::SubIOp::create(b, limit, offset);
    }
    if ((sum ? sum.getLhs() : bound.getLhs()) != loop.getInductionVar())
      return false;
    if (bound.getPredicate() == arith::CmpIPredicate::sge)
      first = arith::MaxSIOp::create(b, first, limit);
    else if (bound.getPredicate() == arith::CmpIPredicate::slt)
      last = arith::MinSIOp::create(b, last, limit);
    else
      return false;
    return true;
  }

  /// Both in one loop, so that their code is there once.
  void emitBorders(Value lo, Value hi) {
    Value zero = constant(0), one = constant(1), two = constant(2);
    auto sides = scf::ForOp::create(b, zero, two, one);
    ImplicitLocOpBuilder inner(loop.getLoc(), sides.getBody()->getTerminator());
    Value isFirst = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq,
                                          sides.getInductionVar(), zero);
    Value from = arith::SelectOp::create(inner, isFirst, lo, last);
    Value to = arith::SelectOp::create(inner, isFirst, first, hi);
    emit(inner, from, to, *branch.elseBlock());
  }

  /// A copy of the loop with one side of the branch.
  void emit(ImplicitLocOpBuilder &at, Value from, Value to, Block &side) {
    auto copy = scf::ForOp::create(at, from, to, loop.getStep());
    IRMapping values;
    values.map(loop.getInductionVar(), copy.getInductionVar());
    OpBuilder inner(copy.getBody()->getTerminator());
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (&op != branch) {
        inner.clone(op, values);
        continue;
      }
      for (Operation &own : side.without_terminator())
        inner.clone(own, values);
    }
  }

  scf::ForOp loop;
  scf::IfOp branch;
  ImplicitLocOpBuilder b;
  int64_t vectorBits;
  Value first, last, outer, offset;
};

struct SplitRows : impl::SplitRowsBase<SplitRows> {
  using SplitRowsBase::SplitRowsBase;

  void runOnOperation() override {
    SmallVector<scf::IfOp> branches;
    getOperation()->walk([&](scf::IfOp branch) {
      if (branch->hasAttr(ir::interiorAttr))
        branches.push_back(branch);
    });
    for (scf::IfOp branch : branches) {
      branch->removeAttr(ir::interiorAttr);
      auto loop = dyn_cast<scf::ForOp>(branch->getParentOp());
      if (loop && loop.getInitArgs().empty())
        Row(loop, branch, vectorBits).split();
    }
  }
};

} // namespace
} // namespace costate::conversion
