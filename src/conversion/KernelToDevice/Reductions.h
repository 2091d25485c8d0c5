#pragma once
/// Additions of all work items of a range to one element (`mark-reductions`)
/// become sums of the range.

#include "conversion/KernelToLLVM/Outline.h"

namespace costate::conversion {

/// The elements that all work items of a range add to.
class Reductions {
public:
  explicit Reductions(mlir::Region &range);

  unsigned size() const { return elements.size(); }

  /// Makes room for what one work item adds, at the start of a function, and
  /// lets the additions in `range`, a copy of the range, go there.
  void redirect(mlir::ImplicitLocOpBuilder &builder, mlir::Region &range);
  /// A work item starts.
  void clear(mlir::ImplicitLocOpBuilder &builder);
  /// What the work item has added.
  Values sums(mlir::ImplicitLocOpBuilder &builder);

  /// Adds f64 to their elements, unless they are 0: then perhaps no work item
  /// has come to the element. `values`: what arrays and indices outside of the
  /// range are here.
  void add(mlir::ImplicitLocOpBuilder &builder, const mlir::IRMapping &values,
           mlir::ValueRange sums);

private:
  struct Element {
    mlir::Value array;
    Values indices;
    mlir::Type type;
  };
  llvm::SmallVector<Element> elements;
  Values places;
};

} // namespace costate::conversion
