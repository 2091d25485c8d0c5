#pragma once
/// The patterns of convert-kernel-to-llvm, by what they convert.

#include "conversion/KernelToLLVM/Passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

namespace costate::conversion {

class MathLibrary;

/// `value`, in all lanes if `type` is a vector.
mlir::Value constantOf(mlir::ImplicitLocOpBuilder &builder, mlir::Type type,
                       mlir::TypedAttr value);

/// What `costate.philox` stands for.
mlir::Value philox(mlir::ImplicitLocOpBuilder &builder, mlir::Value key,
                   mlir::Value stream, mlir::Value counter);

/// Whether a number comes before another one as their minimum or maximum. The
/// order of all values is total, so that the order of updates does not matter:
/// NaN comes last, and -0 is less than 0.
struct Before {
  bool isMax, isUnsigned;

  mlir::Value operator()(mlir::ImplicitLocOpBuilder &builder, mlir::Value x,
                         mlir::Value y) const;

private:
  mlir::Value floats(mlir::ImplicitLocOpBuilder &builder, mlir::Value x,
                     mlir::Value y) const;
  mlir::Value integers(mlir::ImplicitLocOpBuilder &builder, mlir::Value x,
                       mlir::Value y) const;
};

/// The type of an element in memory: a bool fills a byte.
mlir::Type memoryType(mlir::Type element);
/// The element at `place`, an `element`, as a value of the kernel.
mlir::Value loadElement(mlir::ImplicitLocOpBuilder &builder, mlir::Type element,
                        mlir::Value place);
void storeElement(mlir::ImplicitLocOpBuilder &builder, mlir::Type element,
                  mlir::Value value, mlir::Value place);
/// From memory to a value of the kernel, and back.
mlir::Value widened(mlir::ImplicitLocOpBuilder &builder, mlir::Type element,
                    mlir::Value inMemory);
mlir::Value narrowed(mlir::ImplicitLocOpBuilder &builder, mlir::Type element,
                     mlir::Value value);

void populateAccessPatterns(const mlir::LLVMTypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            bool deterministic);
void populateLocalPatterns(const mlir::LLVMTypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
void populateGroupPatterns(const mlir::LLVMTypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
/// `predicates`: for processors that leave operations out by a condition.
void populateScalarPatterns(const mlir::LLVMTypeConverter &converter,
                            mlir::RewritePatternSet &patterns, bool predicates);
void populateMathPatterns(const mlir::LLVMTypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const MathLibrary &library);

} // namespace costate::conversion
