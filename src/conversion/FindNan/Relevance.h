#pragma once
/// When does it matter whether a value is inf or NaN?

#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseSet.h"

namespace costate::conversion {

/// Where the check of a value belongs, and whether it depends on what happens
/// there.
struct CheckPlace {
  mlir::Block *block = nullptr;
  mlir::Operation *after = nullptr; ///< null: the start of `block`
  bool conditional = false; ///< it matters only if Relevance::emit says so
  bool ever = true;         ///< else the value need not be checked here
};

class Relevance {
public:
  explicit Relevance(ir::KernelOp kernel);

  /// The place after `value`, in the block of its uses if these are all in one
  /// branch or loop.
  CheckPlace placeOf(mlir::Value value);

  /// An i1 that tells whether `value` matters at its conditional `place`, where
  /// `b` stands. Call it when all places are known.
  mlir::Value emitCondition(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                            const CheckPlace &place) {
    return emit(b, value, place.block, 0);
  }

private:
  enum class Need { Never, Sometimes, Always };
  /// What a use of a value means for it.
  enum class Step {
    Skip,   ///< nothing
    Stop,   ///< the value matters
    Follow, ///< it matters if the result of the user does
    Guard,  ///< the same, and only at times
  };
  using Guards = llvm::SmallVector<mlir::Operation *>;

  Step stepOf(mlir::OpOperand &use, mlir::Block *block, int depth);
  Need needOf(mlir::Value value, mlir::Block *block, int depth, Guards &guards);
  mlir::Value emit(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                   mlir::Block *block, int depth);
  mlir::Value emit(mlir::ImplicitLocOpBuilder &b, mlir::OpOperand &use,
                   mlir::Block *block, int depth);
  mlir::Value poppedFor(mlir::OpOperand &pushed) const;

  llvm::DenseMap<int64_t, tape::PopOp> pops; ///< by record
  llvm::DenseSet<mlir::Operation *> emitted; ///< their uses do not count
};

} // namespace costate::conversion
