#pragma once
/// The tape dialect; the ops are documented in TapeOps.td.

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/TapeDialect.h.inc"

namespace costate::tape {

/// The memory behind all tapes, as a resource of side effects.
struct Memory : mlir::SideEffects::Resource::Base<Memory> {
  llvm::StringRef getName() final { return "tape"; }
};

} // namespace costate::tape

#define GET_OP_CLASSES
#include "ir/TapeOps.h.inc"
