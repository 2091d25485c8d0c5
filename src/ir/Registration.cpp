#include "ir/Registration.h"

#include "ir/Functions.h"
#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

void costate::ir::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<CostateDialect, tape::TapeDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect>();
  registerCallEffects(registry);
}
