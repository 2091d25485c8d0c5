#include "conversion/KernelToDevice/HostNeed.h"

#include "conversion/KernelToDevice/DeviceFunction.h"
#include "sizing/Record.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// More bytes than any memory has: sums and products stop here.
constexpr int64_t mostBytes = int64_t(1) << 62;

/// The counting slice of a part, on the host.
class HostNeed {
public:
  HostNeed(ImplicitLocOpBuilder &b, Operation *part)
      : b(b), region(part->getRegion(0)), isSerial(isa<ir::SerialOp>(part)) {}

  Value emit() {
    Block &block = region.front();
    auto pivots = block.getOps<tape::PivotOp>();
    auto end = pivots.empty() ? block.end() : (*pivots.begin())->getIterator();
    if (!isKnown(block.begin(), end))
      return nullptr;
    IRMapping values;
    return bytesOf(block.begin(), end, values);
  }

private:
  static bool pushes(Operation &op) { return ir::contains<tape::PushOp>(&op); }

  //===-- What the host knows ---------------------------------------------===//

  bool isKnown(Block::iterator first, Block::iterator last) {
    return llvm::all_of(llvm::make_range(first, last), [&](Operation &op) {
      return isa<tape::PushOp>(op) || !pushes(op) || isKnown(op);
    });
  }

  bool isKnown(Operation &op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop && !isa<scf::IfOp>(op))
      return false;
    if (loop) {
      if (!matchPattern(loop.getLowerBound(), m_Zero()) ||
          !matchPattern(loop.getStep(), m_One()) ||
          !isKnown(loop.getUpperBound()))
        return false;
      counters.insert(loop.getInductionVar());
    }
    return llvm::all_of(op.getRegions(), [&](Region &nested) {
      return nested.empty() ||
             isKnown(nested.front().begin(), nested.front().end());
    });
  }

  bool isOutside(Value value) const {
    return !region.isAncestor(value.getParentRegion());
  }

  /// Integers that follow from what the host computes anyway.
  bool isKnown(Value value) {
    if (!value.getType().isInteger())
      return false;
    if (isOutside(value))
      return !frameSlotOf(value);
    Operation *op = value.getDefiningOp();
    if (!op)
      return counters.contains(value);
    return op->getNumRegions() == 0 &&
           (isa<ir::TripCountOp>(op) || isPure(op)) &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isKnown(operand); });
  }

  //===-- What it computes ------------------------------------------------===//

  Value compute(Value value, IRMapping &values) {
    if (isOutside(value) || values.contains(value))
      return values.lookupOrDefault(value);
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      values.map(operand, compute(operand, values));
    Operation *copy = b.clone(*op, values);
    if (auto count = dyn_cast<ir::TripCountOp>(copy);
        count && !count.cannotFail())
      count.getStepMutable().assign(withoutZero(count));
    return values.lookup(value);
  }

  /// A step of 0 is an error where the loop runs, which it may never do.
  Value withoutZero(ir::TripCountOp count) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(count);
    Value step = count.getStep();
    Value isZero = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, step,
                                         constant(b, 0));
    return arith::SelectOp::create(b, isZero, constant(b, 1), step);
  }

  Value sum(Value x, Value y) {
    Value all = arith::AddIOp::create(b, x, y);
    return arith::MinUIOp::create(b, all, constant(b, mostBytes));
  }

  Value product(Value x, Value y) {
    auto wide = arith::MulUIExtendedOp::create(b, x, y);
    Value fits = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                       wide.getHigh(), constant(b, 0));
    Value low =
        arith::MinUIOp::create(b, wide.getLow(), constant(b, mostBytes));
    return arith::SelectOp::create(b, fits, low, constant(b, mostBytes));
  }

  Value bytesOf(Block::iterator first, Block::iterator last,
                IRMapping &values) {
    int64_t records = 0;
    Value all;
    for (Operation &op : llvm::make_range(first, last)) {
      if (auto push = dyn_cast<tape::PushOp>(op))
        records += bytesOf(push);
      else if (pushes(op)) {
        Value more = bytesOf(op, values);
        all = all ? sum(all, more) : more;
      }
    }
    Value own = constant(b, records);
    return !all ? own : records ? sum(all, own) : all;
  }

  int64_t bytesOf(tape::PushOp push) const {
    sizing::RecordLayout record(push.getValues().getTypes(),
                                /*words=*/!isSerial);
    return llvm::alignTo(record.size(), 8);
  }

  Value bytesOf(Operation &op, IRMapping &values) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return bytesOf(loop, values);
    Value most = constant(b, 0);
    for (Region &side : op.getRegions())
      if (!side.empty()) {
        Value bytes = bytesOf(side.front().begin(), side.front().end(), values);
        most = arith::MaxUIOp::create(b, most, bytes);
      }
    return most;
  }

  Value bytesOf(scf::ForOp loop, IRMapping &values) {
    Value bound = compute(loop.getUpperBound(), values);
    Value count = arith::MaxSIOp::create(b, bound, constant(b, 0));
    Block &body = *loop.getBody();
    if (!decidesBounds(loop))
      return product(count, bytesOf(body.begin(), body.end(), values));
    auto counting = scf::ForOp::create(b, constant(b, 0), count, constant(b, 1),
                                       ValueRange(constant(b, 0)));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(counting.getBody());
    IRMapping inner = values;
    inner.map(loop.getInductionVar(), counting.getInductionVar());
    Value bytes = bytesOf(body.begin(), body.end(), inner);
    scf::YieldOp::create(b, sum(counting.getRegionIterArg(0), bytes));
    return counting.getResult(0);
  }

  /// Whether loops in it that push have other trip counts in other iterations.
  bool decidesBounds(scf::ForOp loop) {
    bool found = false;
    loop.walk([&](scf::ForOp inner) {
      found |= inner != loop && pushes(*inner) &&
               follows(inner.getUpperBound(), loop.getInductionVar());
    });
    return found;
  }

  bool follows(Value value, Value from) {
    Operation *op = value.getDefiningOp();
    return value == from ||
           (op && !isOutside(value) &&
            llvm::any_of(op->getOperands(), [&](Value operand) {
              return follows(operand, from);
            }));
  }

  ImplicitLocOpBuilder &b;
  Region &region;
  bool isSerial;
  llvm::DenseSet<Value> counters;
};

} // namespace

Value emitNeed(ImplicitLocOpBuilder &builder, Operation *part) {
  return HostNeed(builder, part).emit();
}

} // namespace costate::conversion
