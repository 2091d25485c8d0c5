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
