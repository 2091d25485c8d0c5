#include "ir/Registration.h"

#include "ir/Functions.h"
#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::ir {

void registerDialects(DialectRegistry &registry) {
  registry.insert<CostateDialect, tape::TapeDialect, arith::ArithDialect,
                  func::FuncDialect, math::MathDialect, scf::SCFDialect>();
  registerCallEffects(registry);
}

LogicalResult verifyOperations(ModuleOp module) {
  WalkResult result = module->walk([&](Operation *op) {
    if (op == module ||
        isa_and_nonnull<CostateDialect, tape::TapeDialect, arith::ArithDialect,
                        func::FuncDialect, math::MathDialect, scf::SCFDialect>(
            op->getDialect()))
      return WalkResult::advance();
    op->emitError() << "`" << op->getName()
                    << "` cannot stand in a kernel; its operations are those of"
                       " costate, tape, arith, func, math and scf";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

} // namespace costate::ir
