#pragma once
/// The pass is documented in Passes.td.

#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace costate::conversion {

/// On a range: it runs in tiles of work items, one for each lane of a warp.
inline constexpr llvm::StringLiteral tilesAttr = "costate.tiles";

/// On such a range: running its forward sweep again costs more than saving.
inline constexpr llvm::StringLiteral expensiveAttr = "costate.expensive";
/// But not where a warp has many rows on the chip.
inline constexpr llvm::StringLiteral moderatelyExpensiveAttr =
    "costate.moderately_expensive";

/// On such a range: rows of an iteration, of the loop that takes most.
inline constexpr llvm::StringLiteral iterationRowsAttr =
    "costate.iteration_rows";

/// On such a range: only the grid decides which warp runs a tile, and when. The
/// host knows how deep its tapes are, and nothing sorts its work items.
inline constexpr llvm::StringLiteral inOrderAttr = "costate.in_order";

/// On a range that pushes and has no tiles: why, in the words of a report.
inline constexpr llvm::StringLiteral tapeObstacleAttr = "costate.tape_obstacle";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/PlaceTapes/Passes.h.inc"

} // namespace costate::conversion
