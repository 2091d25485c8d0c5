#include "conversion/KernelToDevice/CountingSlice.h"

#include "conversion/KernelToDevice/Passes.h"

using namespace mlir;

namespace costate::conversion {

/// The end of the forward sweep of `part`.
static Block::iterator forwardEnd(Operation *part) {
  Block &block = part->getRegion(0).front();
  auto pivots = block.getOps<tape::PivotOp>();
  return pivots.empty() ? block.getTerminator()->getIterator()
                        : (*pivots.begin())->getIterator();
}

static void forEachForward(Operation *part, function_ref<void(Operation *)> f) {
  Block &block = part->getRegion(0).front();
  for (Operation &op : llvm::make_range(block.begin(), forwardEnd(part)))
    op.walk(f);
}

bool isAfterPivot(Operation *part) {
  auto serial = dyn_cast<ir::SerialOp>(part);
  return serial ? serial.getAfterPivot() : part->hasAttr(afterPivotAttr);
}

/// What serial code of the reverse sweep pushes finds room where others have
/// been popped.
bool pushesForward(Operation *part) {
  bool found = false;
  if (isa<ir::RangeOp>(part) || !isAfterPivot(part))
    forEachForward(part, [&](Operation *op) { found |= isPush(op); });
  return found;
}

CountingSlice::CountingSlice(ArrayRef<Operation *> parts)
    : parts(parts.begin(), parts.end()) {
  for (Operation *part : parts)
    if (!isAfterPivot(part) || pushesForward(part))
      ends[part] = &*forwardEnd(part);
}

bool CountingSlice::isForward(Operation *op, Operation *part) const {
  Operation *end = ends.lookup(part);
  return end &&
         end->getBlock()->findAncestorOpInBlock(*op)->isBeforeInBlock(end);
}

void CountingSlice::addPushes(Operation *part) {
  wantWorkItems(part);
  forEachForward(part, [&](Operation *op) {
    if (isPush(op) || isa<tape::ClaimOp>(op))
      want(op);
  });
  close();
}

void CountingSlice::addResult(Value result) {
  want(result);
  close();
}

//===-- What follows from what --------------------------------------------===//

/// Null if `op` is not in one.
Operation *CountingSlice::partOf(Operation *op) const {
  while (op && !parts.contains(op))
    op = op->getParentOp();
  return op;
}

void CountingSlice::want(Value value) {
  if (values.insert(value).second)
    nextValues.push_back(value);
}

void CountingSlice::want(Operation *op) {
  if (!parts.contains(op) && partOf(op) && operations.insert(op).second)
    nextOperations.push_back(op);
}

/// How many there are of `part`, and whether it runs at all.
void CountingSlice::wantWorkItems(Operation *part) {
  for (Value operand : part->getOperands())
    want(operand);
  usesAllSlots |= !isa<LLVM::LLVMFuncOp>(part->getParentOp());
}

void CountingSlice::wantAll(Region &region) {
  region.walk([&](Operation *op) {
    want(op);
    for (Value operand : op->getOperands())
      want(operand);
  });
}

void CountingSlice::close() {
  while (!nextValues.empty() || !nextOperations.empty())
    if (!nextValues.empty())
      follow(nextValues.pop_back_val());
    else
      follow(nextOperations.pop_back_val());
}

void CountingSlice::follow(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return followArgument(argument);
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (parts.contains(op))
    return followResult(op, number);
  if (!partOf(op))
    return followOutside(op);
  want(op);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    want(loop.getRegionIterArg(number));
  else if (auto loop = dyn_cast<scf::WhileOp>(op))
    want(loop.getConditionOp().getArgs()[number]);
  else if (isa<scf::IfOp>(op))
    for (Region &side : op->getRegions())
      want(side.front().getTerminator()->getOperand(number));
}

/// The host computes it from arguments; or a private array of several parts.
void CountingSlice::followOutside(Operation *op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  auto place = load ? load.getAddr().getDefiningOp<LLVM::GEPOp>() : nullptr;
  if (place && isa<BlockArgument>(place.getBase()) &&
      place.getDynamicIndices().empty())
    return (void)slots.insert(place.getRawConstantIndices().front());
  usesAllSlots |= op->getNumRegions() > 0 || isa<LLVM::LoadOp>(op);
  for (Value operand : op->getOperands())
    want(operand);
}

void CountingSlice::followArgument(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  if (parts.contains(owner))
    return;
  if (!partOf(owner)) {
    usesAllSlots |= !isa<LLVM::LLVMFuncOp>(owner);
    return;
  }
  want(owner);
  unsigned number = argument.getArgNumber();
  if (auto loop = dyn_cast<scf::ForOp>(owner)) {
    if (number == 0)
      return;
    want(loop.getInitArgs()[number - 1]);
    want(loop.getYieldedValues()[number - 1]);
  } else if (auto loop = dyn_cast<scf::WhileOp>(owner)) {
    if (argument.getOwner() == loop.getAfterBody())
      return want(loop.getConditionOp().getArgs()[number]);
    want(loop.getInits()[number]);
    want(loop.getYieldOp()->getOperand(number));
  }
}

/// Sums take a range as it is.
void CountingSlice::followResult(Operation *part, unsigned number) {
  needed.insert(part);
  wantWorkItems(part);
  if (isAfterPivot(part))
    leftOut = part;
  if (isa<ir::RangeOp>(part))
    return wantAll(part->getRegion(0));
  want(part->getRegion(0).front().getTerminator()->getOperand(number));
}

void CountingSlice::follow(Operation *op) {
  want(op->getParentOp());
  if (isPush(op))
    return;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (Value value :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      want(value);
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    want(loop.getConditionOp().getCondition());
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    want(branch.getCondition());
  } else {
    for (Value operand : op->getOperands())
      want(operand);
    for (Region &region : op->getRegions())
      wantAll(region);
    if (auto access = dyn_cast<ir::ElementAccess>(op))
      followMemory(access.getArray());
    else if (isa<ir::LocalLoadOp>(op))
      followMemory(ir::localOf(op));
  }
}

/// Whoever writes `memory`. Its elements are not told apart.
void CountingSlice::followMemory(Value memory) {
  if (!memories.insert(memory).second)
    return;
  if (isa<ir::ArrayType>(memory.getType())) {
    ArrayView array(memory);
    parameters.insert(array.parameter);
    for (Value extent : array.extents)
      want(extent);
  }
  for (Operation *user : memory.getUsers())
    if (auto copy = dyn_cast<ir::CopyOp>(user)) {
      if (copy.getTo() != memory)
        continue;
      overwritten = true;
      followMemory(copy.getFrom());
    } else if (ir::writesElement(user) || ir::writesLocal(user)) {
      followWrite(user, memory);
    }
}

void CountingSlice::followWrite(Operation *write, Value memory) {
  Operation *part = partOf(write);
  if (!part || !isForward(write, part))
    return;
  if (isEffect(write))
    leftOut = part;
  wantWorkItems(part);
  overwritten |= isa<ir::ArrayType>(memory.getType());
  if (!part->getRegion(0).isAncestor(memory.getParentRegion()))
    needed.insert(part);
  if (isa<ir::RangeOp>(part) && !pushesForward(part))
    wantAll(part->getRegion(0));
  else
    want(write);
}

//===-- The copy ----------------------------------------------------------===//

bool CountingSlice::keeps(Operation *op, Operation *part) const {
  return op->hasTrait<OpTrait::IsTerminator>() ||
         (operations.contains(op) && isForward(op, part));
}

/// Zeros stand for what nobody looks at.
void CountingSlice::useZeros(Operation *op, Operation *copy) const {
  OpBuilder b(copy);
  for (auto [k, operand] : llvm::enumerate(op->getOperands()))
    if (Type type = operand.getType();
        type.isIntOrFloat() && !values.contains(operand))
      copy->setOperand(
          k, arith::ConstantOp::create(b, op->getLoc(), b.getZeroAttr(type)));
}

Operation *CountingSlice::cut(Operation *part) const {
  OpBuilder b(part);
  IRMapping copies;
  Operation *copy = b.clone(*part, copies);
  SmallVector<Operation *> dropped;
  part->getRegion(0).walk<WalkOrder::PreOrder>([&](Operation *op) {
    Operation *here = copies.lookup(op);
    if (!keeps(op, part)) {
      dropped.push_back(here);
      return WalkResult::skip();
    }
    useZeros(op, here);
    return WalkResult::advance();
  });
  for (Operation *op : dropped)
    op->dropAllUses();
  for (Operation *op : dropped)
    op->erase();
  return copy;
}

} // namespace costate::conversion
