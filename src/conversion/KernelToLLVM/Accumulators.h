#pragma once
/// Updates of one element by all work items of a range (`mark-reductions`) go
/// to a register first.

#include "conversion/KernelToLLVM/Outline.h"

namespace costate::conversion {

/// What an update of an integer makes of an element; the order of such updates
/// does not matter.
enum class Update : uint8_t { Add, Min, Max, And, Or, Xor };

/// Of one whose result nobody uses, that other work items may make as well.
std::optional<Update> updateOf(mlir::Operation *op);

/// The elements of arrays of integers that a thread updates in its work items
/// of a range: in places of its own, and at its end once in memory.
class Accumulators {
public:
  explicit Accumulators(mlir::Region &range);

  bool empty() const { return elements.empty(); }

  /// Makes places at the start of a function, and lets the updates in `range`,
  /// a copy of the range, go there.
  void redirect(mlir::ImplicitLocOpBuilder &builder, mlir::Region &range);
  /// Updates the elements, but for those that no work item has come to:
  /// perhaps they are not there. `values`: what arrays and indices outside of
  /// the range are here.
  void flush(mlir::ImplicitLocOpBuilder &builder,
             const mlir::IRMapping &values);

private:
  struct Element {
    Update update;
    mlir::Value array;
    Values indices;
    mlir::Type type; ///< of its values
    bool isUnsigned;
  };

  mlir::Value neutral(mlir::ImplicitLocOpBuilder &builder,
                      const Element &element) const;

  llvm::SmallVector<Element> elements;
  Values places;
};

} // namespace costate::conversion
