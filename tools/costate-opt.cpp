/// Runs any pass on any text of kernel IR.

#include "ir/Registration.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  costate::ir::registerDialects(registry);
  mlir::registerTransformsPasses();
  return mlir::failed(mlir::MlirOptMain(argc, argv, "costate-opt\n", registry));
}
