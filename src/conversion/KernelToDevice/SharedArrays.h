#pragma once
/// Where arrays that the work items of a block share lie in its memory.

#include "conversion/KernelToLLVM/Outline.h"

namespace costate::conversion {

class SharedArrays {
public:
  /// Those in `region`.
  explicit SharedArrays(mlir::Region &region);

  /// What all of them take.
  int64_t bytes() const { return size; }

  /// Lets those in `copy`, a copy of the region or it itself, lie in `memory`.
  void place(mlir::ImplicitLocOpBuilder &builder, mlir::Region &copy,
             mlir::Value memory) const;

private:
  int64_t size = 0;
};

} // namespace costate::conversion
