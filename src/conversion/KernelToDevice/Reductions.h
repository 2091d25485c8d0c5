#pragma once
/// Additions of all iterations of a range to one element (`mark-reductions`)
/// become sums of the range.

#include "conversion/KernelToLLVM/Outline.h"

namespace costate::conversion {

/// The elements that all iterations of a range add to.
class Reductions {
public:
  explicit Reductions(mlir::Region &range);

  unsigned size() const { return elements.size(); }

  /// Makes room for what one iteration adds, at the start of a function, and
  /// lets the additions in `range`, a copy of the range, go there.
  void redirect(mlir::ImplicitLocOpBuilder &builder, mlir::Region &range);
  /// An iteration starts.
  void clear(mlir::ImplicitLocOpBuilder &builder);
  /// What the iteration has added.
  Values sums(mlir::ImplicitLocOpBuilder &builder);

  /// Adds number `k` of the f64 from slot `first` of `frame` on to its element,
  /// unless it is 0: then perhaps no iteration has come to it. `values`: what
  /// arrays and indices outside of the range are here.
  void add(mlir::ImplicitLocOpBuilder &builder, const mlir::IRMapping &values,
           mlir::Value frame, int64_t first);

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
