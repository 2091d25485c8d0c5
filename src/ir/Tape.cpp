#include "ir/Tape.h"

#include "mlir/IR/Builders.h"

#include "ir/TapeDialect.cpp.inc"

#define GET_OP_CLASSES
#include "ir/TapeOps.cpp.inc"

void costate::tape::TapeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/TapeOps.cpp.inc"
      >();
}
