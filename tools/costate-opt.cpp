/// Runs any pass on any text of kernel IR.

#include "compiler/Registration.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  costate::compiler::registerAllDialects(registry);
  costate::compiler::registerAllPasses();
  return mlir::failed(mlir::MlirOptMain(argc, argv, "costate-opt\n", registry));
}
