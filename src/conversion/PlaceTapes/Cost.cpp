#include "conversion/PlaceTapes/Cost.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace costate::conversion {

int64_t slotsOf(Operation *op, bool fastMath) {
  bool wide =
      llvm::any_of(op->getResultTypes(), [](Type t) { return t.isF64(); });
  if (op->getNumResults() == 0 || op->hasTrait<OpTrait::ConstantLike>())
    return 0;
  if (isa<func::CallOp>(op))
    return 200;
  if (isa<ir::SinOp, ir::CosOp, ir::ExpOp, ir::Exp2Op, ir::LogOp, ir::Log2Op,
          ir::Log10Op>(op) &&
      !wide && !fastMath)
    return slotsOfSmallFunction;
  if (op->hasTrait<ir::OpTrait::IsFunction>())
    return wide ? 80 : fastMath ? 8 : 34;
  if (isa<arith::DivFOp, math::SqrtOp, ir::DivOp, ir::RemOp>(op))
    return wide ? 30 : fastMath ? 8 : 12;
  if (isa<ir::LoadOp>(op))
    return 8;
  return wide ? 2 : 1;
}

} // namespace costate::conversion
