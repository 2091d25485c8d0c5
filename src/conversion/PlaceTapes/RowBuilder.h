#pragma once
/// Builds what rows, iterations and lanes are computed with. Rows and
/// iterations are unsigned i32.

#include "conversion/PlaceTapes/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

using Values = llvm::SmallVector<mlir::Value>;

class RowBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  //===-- Numbers --------------------------------------------------------===//

  mlir::Value i64(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value boolean(bool value);
  mlir::Value zeroOf(mlir::Type type);
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value sub(mlir::Value a, mlir::Value c);
  mlir::Value times(mlir::Value a, int64_t factor);
  /// The same where numbers may be too large for any tape: at most mostRows.
  mlir::Value addUpTo(mlir::Value a, mlir::Value c);
  mlir::Value timesUpTo(mlir::Value a, int64_t factor);
  /// As an index of the kernel.
  mlir::Value index(mlir::Value iteration);
  mlir::Value least(mlir::Value a, mlir::Value c);
  mlir::Value most(mlir::Value a, mlir::Value c);
  /// Of all lanes.
  mlir::Value warpMax(mlir::Value value);

  //===-- Conditions -----------------------------------------------------===//

  mlir::Value less(mlir::Value a, mlir::Value c);
  mlir::Value equal(mlir::Value a, mlir::Value c);
  /// No `pred` holds always, in these three as well.
  mlir::Value both(mlir::Value pred, mlir::Value condition);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value c);
  /// `value` where `pred` holds, else 0.
  mlir::Value where(mlir::Value pred, mlir::Value value);
  mlir::Value negated(mlir::Value condition);
  /// Keeps `old` where `pred` does not hold.
  void selectAll(mlir::Value pred, llvm::MutableArrayRef<mlir::Value> values,
                 mlir::ValueRange old);

  //===-- Control --------------------------------------------------------===//

  using Body = llvm::function_ref<Values(mlir::Value k, mlir::ValueRange)>;
  Values loop(mlir::Value from, mlir::Value to, mlir::ValueRange inits,
              Body body);
  using Arm = llvm::function_ref<Values()>;
  /// Both arms leave values of `types`; no `pred`: the first one runs. No
  /// second arm: it leaves zeros.
  Values branch(mlir::Value pred, mlir::TypeRange types, Arm yes,
                Arm no = nullptr);
  using OpenBody = llvm::function_ref<Values(mlir::ValueRange)>;
  /// `before` leaves, after what it passes on, whether the loop goes on.
  Values openLoop(mlir::TypeRange types, mlir::ValueRange inits,
                  OpenBody before, OpenBody after);
};

} // namespace costate::conversion
