#pragma once
/// What operations cost, beside saving what they compute: one table for each
/// target.

#include "mlir/IR/Operation.h"
#include "mlir/IR/Types.h"

namespace costate::sizing {

/// GPUs with `fast_math` have functions of f32 that are instructions.
enum class Target { Cpu, Gpu, GpuFastMath };

/// How many iterations a loop is taken to make if nobody knows.
inline constexpr int64_t guessedTripCount = 8;

/// Rough numbers: instructions of a CPU, issue slots of a lane of an H200.
class Costs {
public:
  explicit Costs(Target target);

  /// Of one execution, without the regions.
  int64_t of(mlir::Operation *op) const;
  /// Of writing a value of that type to a tape and reading it once: running
  /// again beats saving below that.
  int64_t ofSaving(mlir::Type type) const;
  /// Likewise, of a word of 4 bytes. In loops of few iterations in other loops
  /// it is more: few rows are under way.
  int64_t word() const { return table.word; }
  int64_t wordOfNest() const { return table.word + table.word / 2; }
  /// Of a sine where the cosine of the same number is computed as well.
  int64_t ofTwin(mlir::Operation *op) const;
  /// The smallest of those functions that are no instructions.
  int64_t smallFunction() const { return table.smallFunction; }

  /// `wide...`: of f64.
  struct Table {
    int64_t arithmetic, wideArithmetic, quotient, wideQuotient;
    int64_t function, wideFunction, smallFunction, twin, philox;
    int64_t load, call;  ///< a call of 0 costs what the function does
    int64_t value, word; ///< saving: of each value, and of each word of it
  };

private:
  int64_t ofFunction(mlir::Operation *op, bool wide) const;
  int64_t ofCall(mlir::Operation *op) const;

  const Table &table;
};

} // namespace costate::sizing
