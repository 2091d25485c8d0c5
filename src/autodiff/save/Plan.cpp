#include "autodiff/save/Plan.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// Additions that one recomputation may cost, rather than a slot on the tape.
constexpr unsigned mostCost = 12;

bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

bool isConstant(Value value) {
  return value.getDefiningOp() && matchPattern(value, m_Constant());
}

/// The cost of one execution, in additions.
unsigned costOf(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<ir::StopGradientOp>(op))
    return 0;
  if (isa<ir::LoadOp>(op))
    return 2;
  if (isa<arith::DivFOp, math::SqrtOp, ir::DivOp, ir::RemOp>(op))
    return 4;
  if (isa<math::FmaOp, math::AbsFOp, math::FloorOp, math::CeilOp,
          math::TruncOp>(op))
    return 1;
  if (isa<math::MathDialect>(op->getDialect()) ||
      op->hasTrait<ir::OpTrait::IsFunction>() ||
      isa<arith::RemFOp, ir::PhiloxOp, func::CallOp>(op))
    return 2 * mostCost;
  return 1;
}

/// In bits, since bools are packed.
unsigned sizeOf(Value value) { return value.getType().getIntOrFloatBitWidth(); }

/// What recomputing a value would take, given what is saved already.
struct Closure {
  const SaveProblem &problem;
  const llvm::DenseSet<Value> &saved;
  llvm::DenseSet<Value> seen;
  unsigned cost = 0;
  unsigned newBits = 0;

  void add(Value value) {
    if (cost > mostCost || problem.isAvailable(value) || isConstant(value) ||
        saved.contains(value) || !seen.insert(value).second)
      return;
    if (!isRecomputable(value)) {
      newBits += sizeOf(value);
      return;
    }
    cost += costOf(value.getDefiningOp());
    for (Value operand : value.getDefiningOp()->getOperands())
      add(operand);
  }
};

bool isBeforeInBlock(Value a, Value b) {
  auto x = dyn_cast<BlockArgument>(a), y = dyn_cast<BlockArgument>(b);
  if (x && y)
    return x.getArgNumber() < y.getArgNumber();
  if (x || y)
    return static_cast<bool>(x);
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (first != second)
    return first->isBeforeInBlock(second);
  return cast<OpResult>(a).getResultNumber() <
         cast<OpResult>(b).getResultNumber();
}

} // namespace

bool isRecomputable(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions())
    return false;
  if (!isFloat(value) && llvm::any_of(op->getOperands(), isFloat))
    return false;
  bool isSteadyLoad = isa<ir::LoadOp>(op) && !op->hasAttr(ir::replayedAttr);
  return isMemoryEffectFree(op) || isSteadyLoad;
}

SavePlan planSaves(const SaveProblem &problem) {
  SmallVector<Value> needed(problem.needed);
  llvm::sort(needed, isBeforeInBlock);
  llvm::DenseSet<Value> saved;
  for (Value value : needed)
    if (!isRecomputable(value))
      saved.insert(value);
  for (Value value : needed) {
    if (saved.contains(value))
      continue;
    Closure closure{problem, saved, {}};
    closure.add(value);
    bool smaller = closure.newBits == 0 || closure.newBits < sizeOf(value);
    if (closure.cost > mostCost || !smaller)
      saved.insert(value);
    else
      for (Value leaf : closure.seen)
        if (!isRecomputable(leaf))
          saved.insert(leaf);
  }
  SavePlan plan{llvm::to_vector(saved)};
  llvm::sort(plan.saved, isBeforeInBlock);
  return plan;
}

bool verifyPlan(const SaveProblem &problem, const SavePlan &plan) {
  llvm::DenseSet<Value> known(plan.saved.begin(), plan.saved.end());
  SmallVector<Value> pending(problem.needed);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (problem.isAvailable(value) || !known.insert(value).second)
      continue;
    if (!isRecomputable(value))
      return false;
    llvm::append_range(pending, value.getDefiningOp()->getOperands());
  }
  return true;
}

} // namespace costate::autodiff
