#pragma once
/// Numbers of other sizes than a word in memory that is made of words.

#include "conversion/LLVMToSPIRV/SpirvBuilder.h"

namespace costate::conversion {

/// A number of 64 bits in two words.
mlir::Value joined(SpirvBuilder &b, mlir::Value low, mlir::Value high,
                   mlir::Type type);
std::pair<mlir::Value, mlir::Value> halves(SpirvBuilder &b, mlir::Value value);

/// A number of 8 or 16 bits in the word around byte `bytes`.
mlir::Value partOf(SpirvBuilder &b, mlir::Value word, mlir::Value bytes,
                   mlir::Type type);

/// Bits of a word, and a mask of the others.
struct Part {
  mlir::Value own, others;
};
/// The word with nothing but `value` in it.
Part placed(SpirvBuilder &b, mlir::Value value, mlir::Value bytes,
            mlir::Type type);

/// `bytes` / 2^`log`, rounded down, also where parts of a sum are negative.
/// Numbers of elements stay what they are, so that drivers see where accesses
/// are: not NVIDIA's, which makes wrong code of loops then.
mlir::Value divided(SpirvBuilder &b, mlir::Value bytes, unsigned log);

} // namespace costate::conversion
