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
/// But not where a warp has many rows on the chip.
inline constexpr llvm::StringLiteral barelyDearAttr = "costate.barely_dear";

/// On such a range: rows of a turn, of the loop that takes most.
inline constexpr llvm::StringLiteral turnRowsAttr = "costate.turn_rows";

/// On such a range: only the grid decides which warp runs a tile, and when. The
/// host knows how deep its tapes are, and nothing sorts its iterations.
inline constexpr llvm::StringLiteral inOrderAttr = "costate.in_order";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/PlaceTapes/Passes.h.inc"

} // namespace costate::conversion
