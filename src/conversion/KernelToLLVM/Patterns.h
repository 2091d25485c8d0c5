#pragma once
/// The patterns of convert-kernel-to-llvm, by what they convert.

#include "conversion/KernelToLLVM/Passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/PatternMatch.h"

namespace costate::conversion {

class MathLibrary;

/// The type of an element in memory: a bool fills a byte.
mlir::Type memoryType(mlir::Type value);
/// The element at `place`, as a value of type `type`.
mlir::Value loadElement(mlir::ImplicitLocOpBuilder &builder, mlir::Type type,
                        mlir::Value place);
void storeElement(mlir::ImplicitLocOpBuilder &builder, mlir::Value value,
                  mlir::Value place);

void populateAccessPatterns(const mlir::LLVMTypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            bool deterministic);
void populateLocalPatterns(const mlir::LLVMTypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
void populateScalarPatterns(const mlir::LLVMTypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateMathPatterns(const mlir::LLVMTypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const MathLibrary &library);

} // namespace costate::conversion
