#pragma once
/// Rows of words of 4 bytes, one word for each lane of a warp: how many the
/// values of one record take.

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeRange.h"

namespace costate::sizing {

/// No tape has as many rows, no loop that keeps records as many iterations:
/// numbers of both stop here. Twice as many are still an i32.
inline constexpr int64_t mostRows = (int64_t(1) << 30) - 1;

/// Values of 8 bytes first, then those of 4, then those that share words, the
/// wider ones first: none lies in two words.
struct RowLayout {
  struct Field {
    int64_t row; ///< the first one
    int64_t bit; ///< of the word; -1 for what takes whole words
  };

  explicit RowLayout(mlir::TypeRange types) : fields(types.size()) {
    for (int64_t words : {2, 1})
      for (auto [type, field] : llvm::zip(types, fields))
        if (type.getIntOrFloatBitWidth() == 32 * words) {
          field = {rows, -1};
          rows += words;
        }
    firstBits = rows;
    int64_t bits = 0;
    for (unsigned width : {16, 8, 1})
      for (auto [type, field] : llvm::zip(types, fields))
        if (type.getIntOrFloatBitWidth() == width) {
          field = {firstBits + bits / 32, bits % 32};
          bits += width;
        }
    rows += (bits + 31) / 32;
  }

  llvm::SmallVector<Field> fields;
  int64_t rows = 0;
  int64_t firstBits = 0; ///< row of the first word that values share
};

} // namespace costate::sizing
