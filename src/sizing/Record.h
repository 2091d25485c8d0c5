#pragma once
/// The layout of one record of a tape.

#include "sizing/Narrow.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeRange.h"

namespace costate::sizing {

/// Vectors of a CPU's lanes; then values by decreasing size without gaps, which
/// aligns each to its size if the record starts at a multiple of 8, then bools,
/// 8 per byte. With `words` every value and every such byte takes 8 bytes:
/// where the tapes of several lanes are interleaved and grow apart, each lane
/// has words of its own then.
struct RecordLayout {
  struct Field {
    bool isBit;
    int64_t offset; ///< bytes from the start, or number of the bit
    int64_t size;   ///< bytes; 0 for a bit
  };

  explicit RecordLayout(mlir::TypeRange types, bool words = false)
      : fields(types.size()), bitStep(words ? 8 : 1) {
    for (auto [type, field] : llvm::zip(types, fields))
      if (auto lanes = mlir::dyn_cast<mlir::VectorType>(type)) {
        field = {false, firstBit, bytesOf(lanes)};
        firstBit += field.size;
      }
    for (int64_t size : {8, 4, 2, 1})
      for (auto [type, field] : llvm::zip(types, fields))
        if (hasWidth(type, 8 * size)) {
          field = {false, firstBit, size};
          firstBit += words ? 8 : size;
        }
    int64_t bits = 0;
    for (auto [type, field] : llvm::zip(types, fields))
      if (hasWidth(type, 1))
        field = {true, bits++, 0};
    bitBytes = (bits + 7) / 8;
  }

  /// Bools of lanes are the bits of an integer.
  static int64_t bytesOf(mlir::VectorType lanes) {
    return llvm::divideCeil(
        lanes.getNumElements() * lanes.getElementTypeBitWidth(), 8);
  }
  static bool hasWidth(mlir::Type type, int64_t bits) {
    return type.isIntOrFloat() && type.getIntOrFloatBitWidth() == bits;
  }

  int64_t size() const { return firstBit + bitBytes * bitStep; }

  llvm::SmallVector<Field> fields; ///< in the order of the values
  int64_t firstBit = 0;            ///< where the bools start, in bytes
  int64_t bitBytes = 0;
  int64_t bitStep; ///< bytes from one byte of bools to the next
};

/// What the record of `values` takes.
inline int64_t recordBytes(mlir::ValueRange values) {
  return RecordLayout(storedTypes(values)).size();
}

} // namespace costate::sizing
