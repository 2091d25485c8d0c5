/// Minima and maxima that elements take.

#include "autodiff/replay/Replay.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace costate::autodiff {

bool disturbsExtremum(const ArrayAccess &update, const ArrayAccess &other) {
  return other.array == update.array &&
         other.op->getName() != update.op->getName() &&
         samePart(update.op, other.op) &&
         !certainlyApart(update, other, isFixedInPart);
}

static void refuse(const ArrayAccess &other, Operation *update) {
  InFlightDiagnostic error = other.op->emitError(
      "this element may take a minimum or maximum in the same part of the "
      "kernel, and is used otherwise here; so what it becomes does not tell "
      "where the gradient goes");
  error.attachNote(update->getLoc()) << "the minimum or maximum is taken here";
  error.attachNote() << "do one of the two in a range of its own; or, if no "
                        "other work item uses the element, in a `Var` with "
                        "`min` or `max`";
}

/// Of accesses to one array: in one part a minimum or maximum, and one of
/// another kind that may use its element.
static std::optional<std::pair<ArrayAccess, ArrayAccess>>
findConflict(ArrayRef<ArrayAccess> accesses) {
  for (const ArrayAccess &update : accesses)
    for (const ArrayAccess &other : accesses)
      if (isExtremum(update.op) && disturbsExtremum(update, other))
        return std::pair(update, other);
  return std::nullopt;
}

LogicalResult checkExtrema(ir::KernelOp primal, ArrayRef<bool> active,
                           Refusal &refusal) {
  for (auto &[array, accesses] : accessesByArray(primal)) {
    if (!active[argumentOf(array)])
      continue;
    if (auto conflict = findConflict(accesses)) {
      refusal.code = ErrorCode::CannotReplay;
      refuse(conflict->second, conflict->first.op);
      return failure();
    }
  }
  return success();
}

void probeExtrema(ir::KernelOp kernel, ArrayRef<bool> active) {
  for (const ArrayAccess &access : accessesIn(kernel)) {
    if (!isExtremum(access.op) || !active[argumentOf(access.array)])
      continue;
    OpBuilder builder(kernel.getContext());
    builder.setInsertionPointAfter(access.op);
    auto probe = ir::LoadOp::create(builder, access.op->getLoc(),
                                    access.op->getOperand(0).getType(),
                                    access.array, access.indices);
    probe->setAttr(afterPartAttr, builder.getUnitAttr());
  }
}

LogicalResult checkExactExtrema(ir::KernelOp primal, ArrayRef<bool> active) {
  for (const ArrayAccess &access : accessesIn(primal)) {
    if (!isExtremum(access.op) || !active[argumentOf(access.array)])
      continue;
    access.op
            ->emitError("the gradient of a minimum or maximum goes to the "
                        "values that are equal to it, but `fast_math` may "
                        "compute them with other bits")
            .attachNote()
        << "make the kernel without `fast_math`";
    return failure();
  }
  return success();
}

} // namespace costate::autodiff
