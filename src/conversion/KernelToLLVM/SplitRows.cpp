#include "conversion/KernelToLLVM/Passes.h"
#include "conversion/KernelToLLVM/Runtime.h"
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
  /// `rows`: whether it is a row of the interior; or null.
  Row(scf::ForOp loop, scf::IfOp rows, scf::IfOp items, int64_t vectorBits)
      : loop(loop), rows(rows), items(items), b(loop.getLoc(), loop),
        vectorBits(vectorBits) {}

  void split() {
    moveLoopInvariantCode(loop);
    first = loop.getLowerBound();
    last = loop.getUpperBound();
    if (!addBounds(items.getCondition()) ||
        (rows && !isInvariant(rows.getCondition())))
      return;
    if (rows)
      emitOtherRows();
    first = arith::MinSIOp::create(b, first, loop.getUpperBound());
    last = arith::MaxSIOp::create(b, last, first);
    roundToVectors();
    emitItems();
    loop->getParentOfType<LLVM::LLVMFuncOp>().setPassthroughAttr(
        b.getStrArrayAttr(threeLoopsAttr));
    loop.erase();
  }

private:
  /// Rows of a border as a whole; the builder stands where others are, then.
  void emitOtherRows() {
    auto branch = scf::IfOp::create(b, rows.getCondition(),
                                    /*withElseRegion=*/true);
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
    emit(b, loop.getLowerBound(), loop.getUpperBound(), *rows.elseBlock())
        ->setAttr(rowAttr, b.getUnitAttr());
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
  }

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
    items.thenBlock()->walk([&](ir::LoadOp load) {
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

  /// In the order of memory, and with the code of both borders once: a border,
  /// and after the first one the interior.
  void emitItems() {
    Value lo = loop.getLowerBound(), hi = loop.getUpperBound();
    Value zero = constant(0), one = constant(1), two = constant(2);
    auto sides = scf::ForOp::create(b, zero, two, one);
    ImplicitLocOpBuilder inner(loop.getLoc(), sides.getBody()->getTerminator());
    Value isFirst = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq,
                                          sides.getInductionVar(), zero);
    Value from = arith::SelectOp::create(inner, isFirst, lo, last);
    Value to = arith::SelectOp::create(inner, isFirst, first, hi);
    emit(inner, from, to, *items.elseBlock())
        ->setAttr(rowAttr, b.getUnitAttr());
    auto branch = scf::IfOp::create(inner, isFirst, /*withElseRegion=*/false);
    inner.setInsertionPointToStart(branch.thenBlock());
    emit(inner, first, last, *items.thenBlock());
  }

  /// A copy of the loop with one side of the branch.
  scf::ForOp emit(ImplicitLocOpBuilder &at, Value from, Value to, Block &side) {
    auto copy = scf::ForOp::create(at, from, to, loop.getStep());
    IRMapping values;
    values.map(loop.getInductionVar(), copy.getInductionVar());
    OpBuilder inner(copy.getBody()->getTerminator());
    for (Operation &op : loop.getBody()->without_terminator())
      if (!op.hasAttr(ir::interiorAttr))
        inner.clone(op, values);
    for (Operation &op : side.without_terminator())
      inner.clone(op, values);
    return copy;
  }

  scf::ForOp loop;
  scf::IfOp rows, items;
  ImplicitLocOpBuilder b;
  int64_t vectorBits;
  Value first, last, offset;
};

struct SplitRows : impl::SplitRowsBase<SplitRows> {
  using SplitRowsBase::SplitRowsBase;

  /// What tells items of the interior in rows of the interior.
  static scf::IfOp innerOf(scf::IfOp rows) {
    for (auto branch : rows.thenBlock()->getOps<scf::IfOp>())
      if (branch->hasAttr(ir::interiorAttr))
        return branch;
    return {};
  }

  void runOnOperation() override {
    SmallVector<scf::IfOp> branches;
    getOperation()->walk([&](scf::IfOp branch) {
      if (branch->hasAttr(ir::interiorAttr) &&
          isa<scf::ForOp>(branch->getParentOp()))
        branches.push_back(branch);
    });
    for (scf::IfOp branch : branches) {
      auto loop = cast<scf::ForOp>(branch->getParentOp());
      scf::IfOp inner = innerOf(branch);
      if (loop.getInitArgs().empty())
        Row(loop, inner ? branch : scf::IfOp(), inner ? inner : branch,
            vectorBits)
            .split();
    }
  }
};

} // namespace
} // namespace costate::conversion
