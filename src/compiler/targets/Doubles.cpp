#include "compiler/targets/Doubles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

bool costate::compiler::worksOnDoubles(Operation *op) {
  auto isDouble = [](Type type) { return type.isF64(); };
  return !isa<arith::ConstantOp>(op) &&
         (llvm::any_of(op->getResultTypes(), isDouble) ||
          llvm::any_of(op->getOperandTypes(), isDouble));
}
