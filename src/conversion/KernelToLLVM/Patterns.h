#pragma once
/// The patterns of convert-kernel-to-llvm, by what they convert.

#include "conversion/KernelToLLVM/Passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/PatternMatch.h"

namespace costate::conversion {

class MathLibrary;

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
