#include "ir/LoopPairs.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

#include "ir/TapeDialect.cpp.inc"

#define GET_OP_CLASSES
#include "ir/TapeOps.cpp.inc"

using namespace mlir;

namespace costate::tape {

void TapeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/TapeOps.cpp.inc"
      >();
}

LogicalResult TapeDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (attribute.getName() == pairAttr && isa<scf::ForOp, scf::WhileOp>(op) &&
      number && number.getType().isInteger(64))
    return success();
  return op->emitOpError("has `") << attribute.getName().getValue()
                                  << "`, which is not the number of a pair, on "
                                     "a loop";
}

LogicalResult PivotOp::verify() {
  Block *block = (*this)->getBlock();
  bool isOnly = llvm::hasSingleElement(block->getOps<PivotOp>());
  if (isOnly &&
      !isa_and_nonnull<scf::SCFDialect>((*this)->getParentOp()->getDialect()))
    return success();
  return emitOpError("is a second one, or in a loop or branch; there is one in "
                     "each work item, and one in the serial code");
}

template <class Op> static LogicalResult verifyNumber(Op op) {
  std::optional<uint64_t> record = op.getRecord();
  if (!record || *record <= uint64_t(INT32_MAX))
    return success();
  return op.emitOpError("has a record whose number is not between 0 and 2^31");
}

LogicalResult PushOp::verify() { return verifyNumber(*this); }
LogicalResult PopOp::verify() { return verifyNumber(*this); }

//===-- Plans -------------------------------------------------------------===//

static bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

bool isRecomputable(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions())
    return false;
  if (!isFloat(value) && llvm::any_of(op->getOperands(), isFloat))
    return false;
  bool isSteadyLoad = isa<ir::LoadOp>(op) && !op->hasAttr(ir::replayedAttr);
  return isMemoryEffectFree(op) || isSteadyLoad;
}

/// In the record of its block, or a result of its branch.
static bool isSaved(Value value, PlanOp plan) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    bool keeps = isa<PushOp>(user) || user == plan->getBlock()->getTerminator();
    return keeps && user->getBlock() == plan->getBlock();
  });
}

/// The number of the iteration, which is the first argument of the body of a
/// `for`, and the last one of a region of a `while`.
static bool isCounter(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  Block *block = argument.getOwner();
  if (isa<scf::ForOp>(block->getParentOp()))
    return argument.getArgNumber() == 0;
  return isa<scf::WhileOp>(block->getParentOp()) &&
         argument == block->getArguments().back();
}

/// The plan of a block; null if it has none.
static PlanOp planOf(Block *block) {
  auto plans = block->getOps<PlanOp>();
  return plans.empty() ? PlanOp() : *plans.begin();
}

/// Whether `plan` gives what an operation that it lets run again takes.
static bool gives(PlanOp plan, Value operand) {
  if (matchPattern(operand, m_Constant()) ||
      isa<ir::ArrayType, ir::LocalType>(operand.getType()))
    return true;
  if (operand.getParentBlock() == plan->getBlock())
    return llvm::is_contained(plan->getOperands(), operand);
  PlanOp outer = planOf(operand.getParentBlock());
  return !outer || llvm::is_contained(outer->getOperands(), operand);
}

LogicalResult PlanOp::verify() {
  auto refuse = [&](Value value, const char *why) {
    InFlightDiagnostic error = emitOpError(why);
    error.attachNote(value.getLoc()) << "the value is this one";
    return error;
  };
  for (Value value : (*this)->getOperands())
    if (value.getParentBlock() != (*this)->getBlock())
      return refuse(value, "lists a value of another block");
  for (Value value : getSaved())
    if (!isSaved(value, *this))
      return refuse(value, "says of a value that it is saved, which it is not");
  for (Value value : getInverted())
    if (!isCounter(value))
      return refuse(value, "inverts a value that does not count iterations");
  for (Value value : llvm::concat<Value>(getRecomputed(), getLoaded())) {
    if (!isRecomputable(value))
      return refuse(value, "recomputes a value that cannot be found again");
    for (Value operand : value.getDefiningOp()->getOperands())
      if (!gives(*this, operand))
        return refuse(value,
                      "recomputes a value from one that it does not give");
  }
  for (Value value : getLoaded())
    if (!isa<ir::LoadOp>(value.getDefiningOp()))
      return refuse(value, "loads a value that does not come from memory");
  return success();
}

//===-- Records -----------------------------------------------------------===//

/// Puts `op` into its place of a record, if it has a number; false if another
/// one has taken it.
template <class Op>
static bool enter(Operation *op, Op Record::*place,
                  llvm::DenseMap<int64_t, Record> &records) {
  auto access = dyn_cast<Op>(op);
  if (!access || !access.getRecord())
    return true;
  Op &entry = records[*access.getRecord()].*place;
  return !std::exchange(entry, access);
}

llvm::DenseMap<int64_t, Record> recordsOf(Operation *root) {
  llvm::DenseMap<int64_t, Record> records;
  root->walk([&](Operation *op) {
    enter(op, &Record::push, records);
    enter(op, &Record::pop, records);
  });
  for (auto place = records.begin(); place != records.end(); ++place)
    if (!place->second.isComplete())
      records.erase(place);
  return records;
}

static LogicalResult verify(int64_t number, Record record) {
  if (!record.isComplete() ||
      record.push.getValues().getTypes() == record.pop.getResultTypes())
    return success();
  return record.push.emitOpError("of record ")
         << number << " has other types than its pop";
}

LogicalResult verifyRecords(Operation *root) {
  llvm::DenseMap<int64_t, Record> records;
  WalkResult unique = root->walk([&](Operation *op) {
    if (enter(op, &Record::push, records) && enter(op, &Record::pop, records))
      return WalkResult::advance();
    op->emitOpError("has the number of another record");
    return WalkResult::interrupt();
  });
  if (unique.wasInterrupted())
    return failure();
  for (auto [number, record] : records)
    if (failed(verify(number, record)))
      return failure();
  return success();
}

} // namespace costate::tape
