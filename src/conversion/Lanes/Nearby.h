#pragma once
/// Loads of elements that are equally far from each other in all lanes.

#include "conversion/Lanes/Shapes.h"
#include "ir/Kernel.h"

#include "llvm/ADT/SmallVector.h"

namespace costate::conversion {

/// A sum: of what differs between lanes, and of what they share.
struct SplitIndex {
  mlir::Value varying; ///< null: 0
  llvm::SmallVector<mlir::Value, 2> shared;
};

/// The loads of a row that lie beside others: as `x[i, j]` and `x[i + 1, j]`
/// for any `i` and `j`.
class NearbyLoads {
public:
  NearbyLoads(mlir::scf::ForOp row, const Shapes &shapes);

  /// Which ones `op` lies beside; null: none.
  const unsigned *groupOf(mlir::Operation *op) const;
  llvm::SmallVector<SplitIndex> indicesOf(ir::LoadOp load) const;

private:
  SplitIndex split(mlir::Value index) const;

  const Shapes &shapes;
  llvm::DenseMap<mlir::Operation *, unsigned> groups;
};

} // namespace costate::conversion
