#include "conversion/PlaceTapes/State.h"

#include "sizing/Rows.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::conversion {

LoopState::LoopState(const TapeShape &shape, Operation *loop)
    : loop(loop), needed(inits().size()), gains(inits().size()) {
  findLocals();
  findNeeds(shape);
  findGains();
  findSize(shape);
}

/// What the condition of the loop has passed on as `value`, if it has.
static Value throughCondition(Operation *loop, Value value) {
  auto open = dyn_cast<scf::WhileOp>(loop);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!open || !argument || argument.getOwner() != open.getAfterBody())
    return value;
  return open.getConditionOp().getArgs()[argument.getArgNumber()];
}

void LoopState::trace(Value value, llvm::DenseSet<Operation *> &ops,
                      SmallVectorImpl<bool> &state) const {
  SmallVector<Value> pending = {value};
  ValueRange mine = arguments();
  auto addAll = [&](Operation *op) {
    if (ops.insert(op).second)
      op->walk([&](Operation *nested) {
        llvm::append_range(pending, nested->getOperands());
      });
  };
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    Value passed = throughCondition(loop, next);
    Operation *owner = next.getParentBlock()->getParentOp();
    if (Operation *op = next.getDefiningOp())
      owner = op;
    size_t k = llvm::find(mine, next) - mine.begin();
    if (passed != next)
      pending.push_back(passed);
    else if (k < mine.size() && !std::exchange(state[k], true))
      pending.push_back(yields()[k]);
    else if (k == mine.size() && loop->isProperAncestor(owner))
      addAll(owner);
  }
}

/// Whether all that writes `local` is done before `loop` starts: then it holds
/// the same whenever that runs again.
static bool isFilledBefore(Operation *loop, Value local) {
  return llvm::all_of(local.getUsers(), [&](Operation *user) {
    if (!ir::writesLocal(user))
      return true;
    Operation *at = loop, *other = nullptr;
    while (!(other = at->getBlock()->findAncestorOpInBlock(*user)))
      at = at->getParentOp();
    return other != at && other->isBeforeInBlock(at);
  });
}

void LoopState::findLocals() {
  llvm::SetVector<Value> found;
  loop->walk([&](Operation *op) {
    changesLocals |= ir::writesLocal(op);
    auto load = dyn_cast<ir::LocalLoadOp>(op);
    if (load && !loop->isAncestor(load.getLocal().getDefiningOp()) &&
        !isFilledBefore(loop, load.getLocal()))
      found.insert(load.getLocal());
  });
  carriedLocals = found.takeVector();
}

void LoopState::findNeeds(const TapeShape &shape) {
  // What goes through arrays is not traced.
  if (changesLocals || !carriedLocals.empty())
    return needed.assign(needed.size(), true);
  llvm::DenseSet<Operation *> ops;
  loop->walk([&](Operation *op) {
    auto open = dyn_cast<scf::WhileOp>(op);
    // Without what it depends on, it might never end.
    if (op == loop || (!open && !shape.isOnTape(op)))
      return;
    for (Value operand : op->getOperands())
      trace(operand, ops, needed);
    if (open)
      for (Value operand : open.getConditionOp()->getOperands())
        trace(operand, ops, needed);
  });
}

void LoopState::findGains() {
  for (auto [argument, yield, gain] : llvm::zip(arguments(), yields(), gains)) {
    auto sum = yield.getDefiningOp<arith::AddIOp>();
    APInt step;
    if (sum && argument.getType().isInteger(64) &&
        throughCondition(loop, sum.getLhs()) == argument &&
        matchPattern(sum.getRhs(), m_ConstantInt(&step)))
      gain = step.getSExtValue();
  }
}

static bool isExpensive(Operation *op) {
  // Loops that are not run where rows are counted may change an array.
  return op->getNumRegions() > 0 || isa<ir::LocalLoadOp>(op) ||
         op->hasTrait<ir::OpTrait::IsFunction>() ||
         isa<math::MathDialect>(op->getDialect());
}

void LoopState::findSize(const TapeShape &shape) {
  const TapeLevel &level = shape.level(loop);
  if (!isCounted())
    return;
  llvm::DenseSet<Operation *> ops;
  SmallVector<bool> state(needed.size());
  sized = true;
  if (level.isLeaf())
    return;
  loop->walk([&](Operation *op) {
    // It might never end where only rows are counted.
    if (op != loop && isa<scf::WhileOp>(op))
      sized = false;
    if (op == loop || !shape.isOnTape(op))
      return;
    if (auto inner = dyn_cast<scf::ForOp>(op))
      trace(inner.getUpperBound(), ops, state);
    if (auto branch = dyn_cast<scf::IfOp>(op); branch && shape.containsLoop(op))
      trace(branch.getCondition(), ops, state);
  });
  sized &= llvm::none_of(ops, isExpensive);
}

static SmallVector<Type> elementTypes(ArrayRef<Value> locals) {
  SmallVector<Type> types;
  for (Value local : locals) {
    auto type = cast<ir::LocalType>(local.getType());
    types.append(type.getSize(), type.getValueType());
  }
  return types;
}

unsigned LoopState::checkpointValues() const {
  return llvm::count_if(llvm::seq<unsigned>(0, needed.size()),
                        [&](unsigned k) { return isInCheckpoint(k); });
}

int64_t LoopState::localRows() const {
  return sizing::RowLayout(elementTypes(carriedLocals)).rows;
}

SmallVector<Type> LoopState::checkpoint() const {
  SmallVector<Type> types;
  for (auto [k, argument] : llvm::enumerate(arguments()))
    if (isInCheckpoint(k))
      types.push_back(argument.getType());
  llvm::append_range(types, elementTypes(carriedLocals));
  return types;
}

std::optional<SmallVector<RecordField>>
LoopState::recorded(const TapeShape &shape) const {
  SmallVector<RecordField> fields;
  if (!carriedLocals.empty())
    return std::nullopt;
  auto find = [&](Value argument) {
    for (int64_t record : shape.level(loop).groups.front().records) {
      tape::PushOp push = shape.pushOf(record);
      if (push->getParentOp() != loop)
        continue;
      for (auto [number, value] : llvm::enumerate(push.getValues()))
        if (throughCondition(loop, value) == argument) {
          fields.push_back({record, static_cast<unsigned>(number)});
          return true;
        }
    }
    return false;
  };
  for (auto [k, argument] : llvm::enumerate(arguments()))
    if (isInCheckpoint(k) && !find(argument))
      return std::nullopt;
  return fields;
}

int64_t LoopState::checkpoints() const {
  auto number = loop->getAttrOfType<IntegerAttr>(ir::checkpointsAttr);
  return number ? std::min(number.getInt(), sizing::mostRows) : 0;
}

int64_t LoopState::checkpointRows() const {
  return sizing::RowLayout(checkpoint()).rows;
}

} // namespace costate::conversion
