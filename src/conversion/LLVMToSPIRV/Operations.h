#pragma once
/// The operations of the LLVM dialect that have a counterpart in SPIR-V. To
/// translate another one, add a row to a table: of one of the files
/// Translate*.cpp.

#include "conversion/LLVMToSPIRV/Translation.h"

namespace costate::conversion {

/// Translates one operation; emits an error at what has no counterpart.
using Handler = mlir::LogicalResult (*)(Translation &, mlir::Operation *);

struct KnownOperation {
  llvm::StringRef name;
  Handler translate;
};

llvm::ArrayRef<KnownOperation> integerOperations();
llvm::ArrayRef<KnownOperation> floatOperations();
llvm::ArrayRef<KnownOperation> conversionOperations();
llvm::ArrayRef<KnownOperation> valueOperations();
llvm::ArrayRef<KnownOperation> addressOperations();
llvm::ArrayRef<KnownOperation> memoryOperations();
llvm::ArrayRef<KnownOperation> atomicOperations();
llvm::ArrayRef<KnownOperation> threadOperations();
llvm::ArrayRef<KnownOperation> controlOperations();

/// Translates all operations of a block.
mlir::LogicalResult translateBlock(Translation &t, mlir::Block &block);

/// The row of `Op`, for a function that takes it or any operation.
template <class Op, auto translate> KnownOperation row() {
  return {Op::getOperationName(), [](Translation &t, mlir::Operation *op) {
            return translate(t, mlir::cast<Op>(op));
          }};
}

//===-- Operations that are computed from words alone ---------------------===//

using Unary = mlir::Value (*)(SpirvBuilder &, mlir::Value);
using Binary = mlir::Value (*)(SpirvBuilder &, mlir::Value, mlir::Value);

/// Makes a `To` of the operands.
template <class To, class... Values>
mlir::Value make(SpirvBuilder &b, Values... operands) {
  return To::create(b, operands...);
}

} // namespace costate::conversion
