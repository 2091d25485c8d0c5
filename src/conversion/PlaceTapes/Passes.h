#pragma once
/// The pass is documented in Passes.td.

#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace costate::conversion {

/// On a range: it runs in tiles of 32 iterations, one for each lane of a warp.
inline constexpr llvm::StringLiteral tilesAttr = "costate.tiles";

/// On such a range: running its forward sweep again costs more than saving.
inline constexpr llvm::StringLiteral dearAttr = "costate.dear";

/// On such a range: rows of a turn, of the loop that takes most.
inline constexpr llvm::StringLiteral turnRowsAttr = "costate.turn_rows";

/// On such a range: the host knows how deep its tapes are.
inline constexpr llvm::StringLiteral knownDepthAttr = "costate.known_depth";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/PlaceTapes/Passes.h.inc"

} // namespace costate::conversion
