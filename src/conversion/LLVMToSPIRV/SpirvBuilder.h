#pragma once
/// Builds operations of SPIR-V over what numbers of LLVM IR become.
///
/// Integers of less than 32 bits, but for i1, are i32 whose other bits are 0;
/// so are the 64 bits of those between. Global pointers are i64. Shared ones
/// are bytes in the memory of the block, private ones in a variable, as i32.

#include "conversion/LLVMToSPIRV/SpirvModule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

constexpr unsigned wordBits = 32;
/// Of an i32, which local memory is made of.
constexpr unsigned wordBytes = wordBits / 8;

class SpirvBuilder : public mlir::ImplicitLocOpBuilder {
public:
  SpirvBuilder(SpirvModule &module, mlir::Location loc)
      : ImplicitLocOpBuilder(loc, loc.getContext()), module(module) {}

  const VulkanFeatures &features() const { return module.features(); }

  //===-- Types and constants --------------------------------------------===//

  /// What values of `type` become; null: they have no counterpart.
  mlir::Type typeOf(mlir::Type type);
  mlir::Type wordOf(unsigned bits);
  mlir::Value integer(mlir::Type type, llvm::APInt value);
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value zeroOf(mlir::Type type);
  /// Null: it is neither an integer nor a float.
  mlir::Value constantOf(mlir::Type type, mlir::Attribute value);

  //===-- Words ----------------------------------------------------------===//

  /// The lowest `bits`.
  mlir::Value masked(mlir::Value word, unsigned bits);
  /// The sign of the lowest `bits` in all above them.
  mlir::Value extended(mlir::Value word, unsigned bits);
  /// To 64 bits, with the sign.
  mlir::Value widened(mlir::Value number, mlir::Type to);
  /// Without a sign.
  mlir::Value resized(mlir::Value word, mlir::Type to);
  mlir::Value truncated(mlir::Value value, unsigned bits);
  mlir::Value asBool(mlir::Value word);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value bitcast(mlir::Value value, mlir::Type to);

  SpirvModule &module;
};

} // namespace costate::conversion
