#include "conversion/FindNan/Relevance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {

/// Derivatives of one operation are short; nothing else has to be followed.
static constexpr int mostSteps = 8;

Relevance::Relevance(ir::KernelOp kernel) {
  kernel.walk([&](tape::PopOp pop) {
    if (std::optional<int64_t> record = pop.getRecord())
      pops[*record] = pop;
  });
}

/// Whether inf and NaN in `use` may have no effect: the side of a select that
/// is not taken, a factor next to a strong 0.
static bool isMasked(OpOperand &use) {
  if (isa<arith::SelectOp>(use.getOwner()))
    return use.getOperandNumber() > 0;
  auto product = dyn_cast<ir::StrongMulOp>(use.getOwner());
  return product && product.getG() != product.getF() &&
         (use.getOperandNumber() == 1 || product.getSymmetric());
}

/// Whether `op` only computes one value from others.
static bool isPlain(Operation *op) {
  return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         isa<FloatType>(op->getResultTypes()[0]) && isPure(op);
}

Value Relevance::poppedFor(OpOperand &pushed) const {
  auto push = dyn_cast<tape::PushOp>(pushed.getOwner());
  if (!push || !push.getRecord())
    return {};
  tape::PopOp pop = pops.lookup(*push.getRecord());
  return pop ? pop.getValues()[pushed.getOperandNumber()] : Value();
}

Relevance::Step Relevance::stepOf(OpOperand &use, Block *block, int depth) {
  Operation *user = use.getOwner();
  if (emitted.contains(user))
    return Step::Skip;
  if (Value popped = poppedFor(use)) {
    CheckPlace place = placeOf(popped);
    return !place.ever || place.conditional ? Step::Skip : Step::Stop;
  }
  if (user->getBlock() != block || depth == mostSteps || !isPlain(user))
    return Step::Stop;
  return isMasked(use) ? Step::Guard : Step::Follow;
}

Relevance::Need Relevance::needOf(Value value, Block *block, int depth,
                                  Guards &guards) {
  Need most = Need::Never;
  for (OpOperand &use : value.getUses()) {
    Step step = stepOf(use, block, depth);
    if (step == Step::Stop)
      return Need::Always;
    if (step == Step::Skip)
      continue;
    Operation *user = use.getOwner();
    if (step == Step::Guard)
      guards.push_back(user);
    Need need = needOf(user->getResult(0), block, depth + 1, guards);
    if (step == Step::Guard && need == Need::Always)
      need = Need::Sometimes;
    if (need == Need::Always)
      return need;
    most = std::max(most, need);
  }
  return most;
}

/// The block in which `value` is used: inside of a loop or branch, if all its
/// uses are there.
static Block *blockOfUses(Value value) {
  Block *block = value.getParentBlock();
  for (;;) {
    Region *common = nullptr;
    for (Operation *user : value.getUsers()) {
      Operation *top = block->findAncestorOpInBlock(*user);
      if (top == user)
        return block;
      Region *region = nullptr;
      for (Region &candidate : top->getRegions())
        if (candidate.isAncestor(user->getParentRegion()))
          region = &candidate;
      if (common && common != region)
        return block;
      common = region;
    }
    if (!common)
      return block;
    block = &common->front();
  }
}

CheckPlace Relevance::placeOf(Value value) {
  CheckPlace place;
  place.block = blockOfUses(value);
  Operation *op = value.getDefiningOp();
  place.after = op->getBlock() == place.block ? op : nullptr;
  Guards guards;
  Need need = needOf(value, place.block, 0, guards);
  place.ever = need != Need::Never;
  place.conditional = need == Need::Sometimes;
  if (place.conditional)
    for (Operation *guard : guards)
      if (!place.after || place.after->isBeforeInBlock(guard))
        place.after = guard;
  return place;
}

/// Whether the masked `use` has an effect.
static Value takesPart(ImplicitLocOpBuilder &b, OpOperand &use) {
  if (auto select = dyn_cast<arith::SelectOp>(use.getOwner())) {
    if (use.getOperandNumber() == 1)
      return select.getCondition();
    Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
    return arith::XOrIOp::create(b, select.getCondition(), yes);
  }
  Value other = use.getOwner()->getOperand(1 - use.getOperandNumber());
  Value zero =
      arith::ConstantOp::create(b, b.getFloatAttr(other.getType(), 0.0));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, other, zero);
}

/// Both, where null stands for true.
static Value both(ImplicitLocOpBuilder &b, Value x, Value y) {
  return x && y ? arith::AndIOp::create(b, x, y).getResult() : x ? x : y;
}

/// Null stands for true.
Value Relevance::emit(ImplicitLocOpBuilder &b, OpOperand &use, Block *block,
                      int depth) {
  Step step = stepOf(use, block, depth);
  if (step == Step::Stop)
    return {};
  Value later = emit(b, use.getOwner()->getResult(0), block, depth + 1);
  if (step == Step::Follow)
    return later;
  Value here = takesPart(b, use);
  emitted.insert(here.getDefiningOp());
  return both(b, here, later);
}

/// Null stands for true.
Value Relevance::emit(ImplicitLocOpBuilder &b, Value value, Block *block,
                      int depth) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses())
    if (stepOf(use, block, depth) != Step::Skip)
      uses.push_back(&use);
  Value any;
  for (OpOperand *use : uses) {
    Value one = emit(b, *use, block, depth);
    if (!one)
      return {};
    any = any ? arith::OrIOp::create(b, any, one).getResult() : one;
  }
  return any;
}

} // namespace costate::conversion
