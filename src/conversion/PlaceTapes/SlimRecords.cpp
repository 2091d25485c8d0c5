/// Records without what follows from the rest of them at little cost: planning
/// what to save does not know what functions cost on a GPU.

#include "conversion/PlaceTapes/SlimRecords.h"

#include "conversion/PlaceTapes/Cost.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::conversion {
namespace {

class Slimmer {
public:
  Slimmer(ir::RangeOp range, const tape::Record &record, bool fastMath)
      : range(range), push(record.push), pop(record.pop), fastMath(fastMath) {}

  void run() {
    SmallVector<unsigned> dropped;
    pairCounters();
    for (Value value : push.getValues())
      kept.insert(value);
    for (auto [number, value] : llvm::enumerate(push.getValues())) {
      kept.erase(value);
      llvm::SetVector<Operation *> ops;
      int64_t words = (value.getType().getIntOrFloatBitWidth() + 31) / 32;
      slots = slotsOfWord * words;
      if (value.getDefiningOp() && follows(value, ops))
        dropped.push_back(number);
      else
        kept.insert(value);
    }
    if (!dropped.empty() && !kept.empty())
      replace(dropped); // without values it would be no record
  }

private:
  /// Iterations of loops around the push count down around the pop.
  void pairCounters() {
    Operation *forward = push->getParentOp(), *reversed = pop->getParentOp();
    auto climb = [&](Operation *&op) {
      while (op != range && !isa<scf::ForOp, scf::WhileOp>(op))
        op = op->getParentOp();
      return op != range;
    };
    // What runs again is pushed and popped in one iteration.
    for (; climb(forward) && climb(reversed) && forward != reversed;
         forward = forward->getParentOp(), reversed = reversed->getParentOp()) {
      auto loop = dyn_cast<scf::ForOp>(forward);
      auto undone = dyn_cast<scf::ForOp>(reversed);
      if (loop && undone && isCounted(loop) && isCounted(undone))
        counters[loop.getInductionVar()] = undone;
    }
  }

  static bool isCounted(scf::ForOp loop) {
    return matchPattern(loop.getLowerBound(), m_Zero()) &&
           matchPattern(loop.getStep(), m_One());
  }

  static bool isHarmless(Operation *op) {
    auto count = dyn_cast<ir::TripCountOp>(op);
    return count ? count.cannotFail() : isPure(op);
  }

  /// A sine of a number whose cosine the reverse sweep computes, or a cosine.
  bool hasTwin(Operation *op) {
    if (fastMath || !isa<ir::SinOp, ir::CosOp>(op) ||
        !op->getResult(0).getType().isF32())
      return false;
    auto saved = push.getValues();
    auto found = llvm::find(saved, op->getOperand(0));
    if (found == saved.end())
      return false;
    Value read = pop.getValues()[std::distance(saved.begin(), found)];
    return llvm::any_of(read.getUsers(), [&](Operation *user) {
      return isa<ir::SinOp, ir::CosOp>(user) &&
             user->getName() != op->getName() &&
             user->getBlock() == pop->getBlock();
    });
  }

  /// Whether `value` is there in the reverse sweep, if that runs `ops`.
  bool follows(Value value, llvm::SetVector<Operation *> &ops) {
    Operation *op = value.getDefiningOp();
    if (kept.contains(value) || isOutside(value) || ops.contains(op) ||
        counters.contains(value))
      return true;
    if (!op || op->getNumRegions() || !isHarmless(op))
      return false;
    slots -= hasTwin(op) ? slotsOfTwin : slotsOf(op, fastMath);
    if (slots < 0 || !llvm::all_of(
                         op->getOperands(),
                         [&](Value operand) { return follows(operand, ops); }))
      return false;
    ops.insert(op);
    return true;
  }

  /// Of all loops that the pop stands in without the push.
  bool isOutside(Value value) {
    return value.getParentBlock()->findAncestorOpInBlock(*pop) ||
           !range.getBodyRegion().isAncestor(value.getParentRegion());
  }

  void replace(ArrayRef<unsigned> dropped) {
    OpBuilder b(push);
    SmallVector<Value> rest;
    for (Value value : push.getValues())
      if (kept.contains(value))
        rest.push_back(value);
    tape::PushOp::create(b, push.getLoc(), rest, push.getRecordAttr());
    b.setInsertionPoint(pop);
    auto read = tape::PopOp::create(
        b, pop.getLoc(), TypeRange(ValueRange(rest)), pop.getRecordAttr());
    IRMapping map;
    map.map(ValueRange(rest), read.getValues());
    llvm::SetVector<Operation *> ops;
    slots = INT64_MAX;
    for (unsigned number : dropped)
      follows(push.getValues()[number], ops);
    for (Operation *op : ops) {
      for (Value operand : op->getOperands())
        if (scf::ForOp undone = counters.lookup(operand))
          map.map(operand, countDown(b, undone));
      b.clone(*op, map);
    }
    for (auto [value, old] : llvm::zip(push.getValues(), pop.getValues()))
      old.replaceAllUsesWith(map.lookupOrDefault(value));
    push.erase();
    pop.erase();
  }

  /// The iteration of the forward sweep that this one undoes.
  Value countDown(OpBuilder &b, scf::ForOp undone) {
    Location loc = pop.getLoc();
    Value one = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(1));
    Value last = arith::SubIOp::create(b, loc, undone.getUpperBound(), one);
    return arith::SubIOp::create(b, loc, last, undone.getInductionVar());
  }

  ir::RangeOp range;
  tape::PushOp push;
  tape::PopOp pop;
  bool fastMath;
  llvm::DenseMap<Value, scf::ForOp> counters;
  llvm::DenseSet<Value> kept;
  int64_t slots = 0;
};

} // namespace

void slimRecords(ir::RangeOp range, bool fastMath) {
  for (auto &[number, record] : tape::recordsOf(range))
    if (record.push->getBlock() != range.getBody())
      Slimmer(range, record, fastMath).run();
}

} // namespace costate::conversion
