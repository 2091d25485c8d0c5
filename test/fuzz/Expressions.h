#pragma once
/// Random expressions whose values stay small.

#include "fuzz/Emitter.h"

namespace costate::fuzz {

class Expressions : protected Emitter {
protected:
  using Emitter::Emitter;

  /// A type of elements that such values hold.
  mlir::Type narrowType(Kind kind);
  mlir::Value fromNarrow(Kind kind, mlir::Value integer);
  /// A value of `kind`; `depth` limits the operations on the way to a leaf.
  mlir::Value expression(Kind kind, int depth);
  mlir::Value condition(int depth);
  mlir::Value number(Kind kind, int depth);
  mlir::Value whole(Kind kind, int depth);
  mlir::Value negated(mlir::Value condition);

  /// `second` only where `first` holds, or only where it does not.
  mlir::Value both(mlir::Value first, llvm::function_ref<mlir::Value()> second);
  mlir::Value either(mlir::Value first,
                     llvm::function_ref<mlir::Value()> second);

  /// An i64 that is certainly an index of an extent.
  mlir::Value index(int64_t extent);
  /// Indices of any element.
  Values anywhere(const Array &array);
  /// Indices at which the current part may touch `array`.
  Values place(const Array &array);
  mlir::Value load(const Array &array);
  /// An element of a visible private array of `kind`; null if there is none.
  mlir::Value loadLocal(Kind kind);
  /// An array of `kind` that may be read here, or null.
  Array *readable(Kind kind);

  /// `value` where a loop may not let it grow.
  mlir::Value tamed(mlir::Value value);

  int anyFavourite();
  static bool isConversion(int favourite);

  int localPercent = 0;    ///< how often private arrays are used
  bool hasSingles = false; ///< f32 is used at all
  bool isSingular = false; ///< functions are used at their poles
  int favourite = 0;       ///< a number of an operation
  bool isFocused = false;  ///< the favourite is used often
  int loops = 0;           ///< around the builder

private:
  mlir::Value linearIndex(int64_t extent);
  mlir::Value leaf(Kind kind);
  mlir::Value focus(Kind kind, int depth);
  mlir::Value unary(Kind kind, int depth, int choice);
  mlir::Value binary(Kind kind, int depth);
  mlir::Value special(Kind kind, int depth, int choice);
  mlir::Value custom(Kind kind, int depth);
  mlir::Value called(Kind kind, int depth);
  mlir::func::FuncOp functionOf(mlir::ValueRange operands,
                                mlir::TypeRange results);
  mlir::Value rounded(Kind kind, int depth);
  mlir::Value narrowed(mlir::Value value, Kind kind);
  mlir::Value converted(Kind kind, int depth);
  mlir::Value positive(Kind kind, int depth);
  mlir::Value shortCircuit(int depth);
  mlir::Value chosen(mlir::Value condition, mlir::Type type,
                     llvm::function_ref<mlir::Value()> yes,
                     llvm::function_ref<mlir::Value()> no);
  mlir::Value edge(Kind kind);
  mlir::Value protectedPole(Kind kind, int depth);
  mlir::Value comparison(int depth);
  mlir::Value integerOperation(Kind kind, int depth);

  std::vector<mlir::func::FuncOp> callees; ///< that have been written
  int functionCount = 0;                   ///< and that are being written
};

} // namespace costate::fuzz
