#pragma once
/// Which loop of a gradient undoes which.

#include "ir/Tape.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace costate::tape {

/// On an `scf.for` or `scf.while` whose records a loop behind it pops, and on
/// the `scf.for` that does: the number of the pair within their kernel. The
/// second one takes as many iterations as the first, the last one first.
/// Alone, a number says nothing: a pass has taken the other loop apart.
inline constexpr llvm::StringLiteral pairAttr = "tape.pair";

struct LoopPair {
  mlir::Operation *forward = nullptr;
  mlir::scf::ForOp reversed = nullptr;

  bool isComplete() const { return forward && reversed; }
};

/// The complete pairs below `root`, by number.
class LoopPairs {
public:
  explicit LoopPairs(mlir::Operation *root);

  const llvm::MapVector<int64_t, LoopPair> &all() const { return pairs; }
  /// The loop that `reversed` undoes; null if it undoes none.
  mlir::Operation *forwardOf(mlir::Operation *reversed) const;
  /// Whether `op` is one of two.
  bool contains(mlir::Operation *op) const;
  /// The pairs around `op` below `root` that are not around `other`, from the
  /// outermost to the innermost one.
  llvm::SmallVector<int64_t> around(mlir::Operation *op,
                                    mlir::Operation *other) const;

private:
  llvm::MapVector<int64_t, LoopPair> pairs;
};

/// The block that an iteration of `loop` runs, but for what decides whether a
/// `while` goes on.
mlir::Block *bodyOf(mlir::Operation *loop);

/// The iterations of an `scf.for` from 0 by 1, if they are constant.
std::optional<int64_t> constantCount(mlir::Operation *loop);

/// Whether the loops below `root` are pairs: of each number at most two, the
/// second one not in the first; around the push and the pop of a record the
/// same pairs; and what iterations push comes back in the opposite order.
mlir::LogicalResult verifyPairs(mlir::Operation *root);

} // namespace costate::tape
