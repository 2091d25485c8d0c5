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

/// What the lanes of a warp have in common: operations on it stay in order, and
/// where all lanes come to them.
struct Warp : mlir::SideEffects::Resource::Base<Warp> {
  llvm::StringRef getName() final { return "warp"; }
};

} // namespace costate::tape

#define GET_OP_CLASSES
#include "ir/TapeOps.h.inc"

namespace costate::tape {

/// Where the record of one number is pushed and popped.
struct Record {
  PushOp push;
  PopOp pop;

  bool isComplete() const { return push && pop; }
};

/// The numbered records below `root`, by number. Their values correspond. Where
/// one of the two is missing, a pass has seen that it is never reached: the
/// other one is not reached either, and is left out.
llvm::DenseMap<int64_t, Record> recordsOf(mlir::Operation *root);

/// Whether every number below `root` has at most one push and one pop, of equal
/// types.
mlir::LogicalResult verifyRecords(mlir::Operation *root);

} // namespace costate::tape
