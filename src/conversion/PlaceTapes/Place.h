#pragma once
/// Where the records of iterations of the forward sweep go.

#include "conversion/PlaceTapes/RowBuilder.h"

namespace costate::conversion {

/// What becomes of records when iterations of the forward sweep run.
enum class Keep {
  Nothing, ///< rows are not even counted
  Size,    ///< rows are counted, and only what decides them runs
  Count,
  Guarded, ///< those below the limit are written
  Rows,
};

/// Where records go.
struct Place {
  Keep keep;
  mlir::Value row;       ///< of the first one; null with Keep::Nothing
  mlir::Value limit;     ///< with Keep::Guarded
  mlir::Value fits = {}; ///< with Keep::Guarded, in a leaf: the iteration does

  bool counts() const { return keep != Keep::Nothing; }
  /// Perhaps more rows than any tape has.
  bool measures() const { return keep == Keep::Size || keep == Keep::Guarded; }
  bool writes() const { return keep == Keep::Guarded || keep == Keep::Rows; }
  Place at(mlir::Value next) const { return {keep, next, limit}; }
};

/// Iterations of `rows` rows each that can be written; null: all.
mlir::Value roomOf(RowBuilder &b, const Place &place, int64_t rows);
/// Of iteration `iteration` of a leaf.
Place leafIteration(RowBuilder &b, const Place &place, mlir::Value iteration,
                    mlir::Value room, int64_t rows);
/// The row after `iterations` iterations of a leaf, or after so many rows.
mlir::Value rowAfter(RowBuilder &b, const Place &place, mlir::Value iterations,
                     int64_t rows);
mlir::Value rowAfter(RowBuilder &b, const Place &place, int64_t rows);

} // namespace costate::conversion
