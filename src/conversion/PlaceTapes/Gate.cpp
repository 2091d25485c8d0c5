#include "conversion/PlaceTapes/Gate.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {

SmallVector<Gate> gatesOf(Operation *op) {
  SmallVector<Gate> gates;
  for (; !isa<ir::RangeOp>(op->getParentOp()); op = op->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(op->getParentOp()))
      gates.push_back({branch.getCondition(),
                       op->getParentRegion() == &branch.getThenRegion()});
  std::reverse(gates.begin(), gates.end());
  return gates;
}

namespace {

/// Records are of the work item alone.
bool isEffect(Operation *op) {
  return !isa<ir::LoadOp, tape::PushOp, tape::PopOp, tape::PivotOp>(op) &&
         !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
         !isMemoryEffectFree(op);
}

class EffectGate {
public:
  explicit EffectGate(ir::RangeOp range) : range(range) {}

  std::optional<Gate> find() {
    Block *body = range.getBody();
    SmallVector<ir::AtomicAddOp> adds;
    for (Operation &op : body->without_terminator()) {
      if (!ir::contains(&op, isEffect))
        continue;
      if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (!unite(branch))
          return std::nullopt;
      } else if (auto add = dyn_cast<ir::AtomicAddOp>(op)) {
        adds.push_back(add);
      } else {
        return std::nullopt;
      }
    }
    bool isAll = gate && llvm::all_of(adds, [&](ir::AtomicAddOp add) {
                   return isZeroWhereShut(add.getValue());
                 });
    return isAll ? gate : std::nullopt;
  }

private:
  bool unite(scf::IfOp branch) {
    bool isThen = ir::contains(branch.getThenRegion(), isEffect);
    if (isThen && ir::contains(branch.getElseRegion(), isEffect))
      return false;
    Gate found{beforeTape(branch.getCondition()), isThen};
    if (!gate)
      gate = found;
    return *gate == found;
  }

  /// What was pushed, of a record of the work item itself.
  Value beforeTape(Value value) {
    auto pop = value.getDefiningOp<tape::PopOp>();
    if (!pop || !pop.getRecord() || pop->getBlock() != range.getBody())
      return value;
    for (auto push : range.getBody()->getOps<tape::PushOp>())
      if (push.getRecord() == pop.getRecord())
        return push.getValues()[cast<OpResult>(value).getResultNumber()];
    return value;
  }

  bool isZeroWhereShut(Value value) {
    if (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()))
      return true;
    if (auto sum = value.getDefiningOp<arith::AddFOp>())
      return isZeroWhereShut(sum.getLhs()) && isZeroWhereShut(sum.getRhs());
    auto branch = value.getDefiningOp<scf::IfOp>();
    if (!branch || beforeTape(branch.getCondition()) != gate->condition)
      return false;
    auto yield = gate->isOpen ? branch.elseYield() : branch.thenYield();
    return isZeroWhereShut(
        yield.getOperand(cast<OpResult>(value).getResultNumber()));
  }

  ir::RangeOp range;
  std::optional<Gate> gate;
};

} // namespace

std::optional<Gate> effectGateOf(ir::RangeOp range) {
  if (range.getNumResults())
    return std::nullopt;
  return EffectGate(range).find();
}

} // namespace costate::conversion
