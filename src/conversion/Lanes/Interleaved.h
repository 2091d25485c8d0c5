#pragma once
/// Components of vectors and matrices that stand side by side in memory.

#include "conversion/Lanes/Shapes.h"

#include "llvm/ADT/SmallVector.h"

#include <deque>

namespace costate::conversion {

/// Accesses of one kind in one block that are made at once, such as the loads
/// of `x[i, 0]` and `x[i, 1]`: what the lanes have is one piece of memory.
struct Interleaved {
  llvm::SmallVector<mlir::Operation *, 4> accesses;
  llvm::SmallVector<unsigned, 4> components; ///< of each access
  llvm::SmallVector<int64_t, 2> extents;     ///< of the components
  unsigned count = 1;                        ///< product of the extents
  bool isCertain = false;                    ///< the array has these extents

  /// Loads go up to the first one, stores and additions down to the last.
  mlir::Operation *place() const;
  bool has(unsigned component) const {
    return llvm::is_contained(components, component);
  }
};

/// All of a row. How many components an array has may be known at run time
/// only; then it is taken from the indices and must be looked at.
class InterleavedAccesses {
public:
  InterleavedAccesses(mlir::scf::ForOp row, const Shapes &shapes);

  /// Whether LLVM's loop vectoriser would take longer over them: it gathers
  /// where components are left out, or are too many. It is faster where lanes
  /// would load a part of what they have stored, and where it shuffles many.
  bool defeatVectoriser() const;

  /// Null: `op` is none of them.
  const Interleaved *of(mlir::Operation *op) const { return groups.lookup(op); }

private:
  class Finder;
  std::deque<Interleaved> all;
  llvm::DenseMap<mlir::Operation *, Interleaved *> groups;
};

} // namespace costate::conversion
