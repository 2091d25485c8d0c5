#pragma once
/// Whether the work items of a row should be lanes, and how many.

#include "conversion/Lanes/Interleaved.h"
#include "conversion/Lanes/Lengths.h"
#include "conversion/Lanes/TapeOrder.h"

#include <string>

namespace costate::conversion {

struct LaneOptions {
  unsigned lanes = 0; ///< of all rows that can have some; 0: what pays
  unsigned bits = 512;
  bool deterministic = false;
};

struct Choice {
  unsigned lanes = 0;   ///< 0: the row stays as it is
  std::string obstacle; ///< if it does, in the words of a report
  unsigned few = 0;     ///< work items of rows that have no lanes
  /// Iterations for which each lane waits that cost more than the order of the
  /// work items' lengths; 0: no such order.
  unsigned idle = 0;
};

/// Operations of a body that may stand there twice: longer ones take long to
/// compile.
inline constexpr unsigned mostTwice = 400;

/// An obstacle. Such ranges have no row.
inline constexpr llvm::StringLiteral minimum = "a minimum over the range";

Choice chooseLanes(mlir::scf::ForOp row, const Shapes &shapes,
                   const TapeOrder &order,
                   const InterleavedAccesses &interleaved,
                   const Lengths &lengths, const LaneOptions &options);

} // namespace costate::conversion
