#include "compiler/Groups.h"

#include "ir/Blocks.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::compiler {
namespace {

//===-- What some work items do not come to -------------------------------===//

/// What follows from constants and the number of the thread in its block.
class OfThread {
public:
  explicit OfThread(int64_t thread) : thread(thread) {}

  /// Null: something else.
  Attribute of(Value value) {
    auto [known, isNew] = seen.try_emplace(value, Attribute());
    if (isNew)
      seen[value] = compute(value);
    return seen[value];
  }

private:
  Attribute compute(Value value) {
    Attribute constant;
    if (matchPattern(value, m_Constant(&constant)))
      return constant;
    Operation *op = value.getDefiningOp();
    if (auto group = dyn_cast_or_null<ir::GroupOp>(op);
        group && group.getKind() == "block.thread_index")
      return IntegerAttr::get(value.getType(), thread);
    if (!op || op->getNumRegions() || op->getNumResults() != 1 ||
        !isMemoryEffectFree(op) || op->getNumOperands() == 0)
      return {};
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands())
      operands.push_back(of(operand));
    if (llvm::is_contained(operands, Attribute()))
      return {};
    SmallVector<OpFoldResult> results;
    if (failed(op->fold(operands, results)) || results.size() != 1)
      return {};
    if (auto folded = dyn_cast<Attribute>(results[0]))
      return folded;
    return of(cast<Value>(results[0]));
  }

  int64_t thread;
  llvm::DenseMap<Value, Attribute> seen;
};

/// Whether it is not the same for all work items of a block, for certain.
bool differs(Value condition, int64_t blockDim) {
  Attribute first = OfThread(0).of(condition);
  if (!first)
    return false;
  for (int64_t thread = 1; thread < blockDim; ++thread)
    if (OfThread(thread).of(condition) != first)
      return true;
  return false;
}

/// What decides whether, or how often, the body of `op` runs.
SmallVector<Value> conditionsOf(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return {branch.getCondition()};
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  return {};
}

bool isDivergent(ir::GroupOp op) {
  auto range = op->getParentOfType<ir::RangeOp>();
  if (!range || op.getKind() != "block.sync")
    return false;
  int64_t blockDim = ir::blockDimOf(range);
  for (Operation *around = op->getParentOp(); around != range;
       around = around->getParentOp())
    for (Value condition : conditionsOf(around))
      if (differs(condition, blockDim))
        return true;
  return false;
}

//===-- What cannot be on any device --------------------------------------===//

std::optional<Fault> groupFaultOf(Operation *op) {
  if (!ir::isOfBlock(op))
    return std::nullopt;
  auto range = op->getParentOfType<ir::RangeOp>();
  if (!range && op->getParentOfType<ir::KernelOp>()) // that may run
    return Fault{groupName(op) + " outside of `parallel`",
                 "the serial code has one thread: do this in a work item"};
  if (range && range.getNumResults())
    return Fault{groupName(op) + " in a range that gives a sum",
                 "add to an element of an array instead"};
  if (auto group = dyn_cast<ir::GroupOp>(op); group && isDivergent(group))
    return Fault{groupName(op) + " is reached by some work items of a block, "
                                 "and not by others: they would wait for ever",
                 "put it behind the branch or loop, where all come to it"};
  return std::nullopt;
}

} // namespace

std::string groupName(Operation *op) {
  auto group = dyn_cast<ir::GroupOp>(op);
  return group ? "`" + group.getKind().str() + "`" : "a shared array";
}

Result<> checkOperations(ModuleOp module, const TargetBackend &target,
                         DiagnosticText &diagnostics) {
  WalkResult result = module.walk([&](Operation *op) {
    std::optional<Fault> fault = target.faultOf(op);
    if (!fault)
      fault = groupFaultOf(op);
    if (!fault)
      return WalkResult::advance();
    InFlightDiagnostic error = op->emitError(fault->text);
    error.attachNote() << fault->wayOut;
    return WalkResult::interrupt();
  });
  if (!result.wasInterrupted())
    return {};
  return Failure{ErrorCode::BadKernel, diagnostics.take("")};
}

} // namespace costate::compiler
