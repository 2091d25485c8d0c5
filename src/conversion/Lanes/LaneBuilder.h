#pragma once
/// Vectors with an element for each lane, and masks.

#include "conversion/Lanes/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

class LaneBuilder : public mlir::ImplicitLocOpBuilder {
public:
  LaneBuilder(mlir::Location loc, mlir::OpBuilder builder, unsigned lanes)
      : ImplicitLocOpBuilder(loc, builder), lanes(lanes) {}

  mlir::VectorType vectorOf(mlir::Type type) const;
  mlir::Value number(mlir::Type type, int64_t value);
  /// 0 in all lanes, or as a scalar.
  mlir::Value zero(mlir::Type type);
  mlir::Value splat(mlir::Value scalar);
  /// 0, 1, 2, ... as `type`.
  mlir::Value laneNumbers(mlir::Type type);

  /// `mask`, or all lanes if it is null.
  mlir::Value orAll(mlir::Value mask);
  /// A lane that is not active has poison perhaps, so masks are selected.
  mlir::Value both(mlir::Value mask, mlir::Value condition);
  mlir::Value butNot(mlir::Value mask, mlir::Value condition);
  mlir::Value select(mlir::Value mask, mlir::Value active, mlir::Value other);
  /// `mask`, of which LLVM does not see what it was made of.
  mlir::Value opaque(mlir::Value mask);
  /// Likewise an integer.
  mlir::Value hidden(mlir::Value number);

  /// A bit for each lane, in an i64.
  mlir::Value bitsOf(mlir::Value mask);
  mlir::Value any(mlir::Value mask);
  /// Of unsigned integers.
  mlir::Value largest(mlir::Value vector);
  mlir::Value sum(mlir::Value vector);

  mlir::Value extract(mlir::Value vector, mlir::Value lane);
  mlir::Value insert(mlir::Value vector, mlir::Value value, mlir::Value lane);
  /// The lanes [first, first + count).
  mlir::Value slice(mlir::Value vector, unsigned first, unsigned count);

  const unsigned lanes;
};

} // namespace costate::conversion
