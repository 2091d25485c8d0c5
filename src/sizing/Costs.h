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
/// Likewise all loops of a work item, where some work items run none of them.
inline constexpr int64_t guessedDepth = 16;
/// Bytes of a tape that stay in a cache until they are read.
inline constexpr int64_t cachedBytes = 128 << 10;

/// Of GPUs, where the work items of a warp share rows.
struct TileCosts {
  int64_t branch;      ///< that some lanes take
  int64_t uncoalesced; ///< an access to memory that lanes do not share
  int64_t depth;       ///< operations that may find out how deep a work item is
  /// Iterations of which the rows are read before the first of them is undone.
  /// That pays up to so much code, and so many rows, of one.
  int64_t batch, batchedCode, batchedRows;
  int64_t localRows; ///< of private arrays that a checkpoint may take
};

/// In cycles: what iterations wait for, and those of more vectors do not.
struct LatencyCosts {
  double function, quotient, load, gather, arithmetic, integer;
  double rate;    ///< instructions in a cycle
  double waiting; ///< for the longest of twice as many lanes
  double gain;    ///< more vectors pay if they take that part of the time
};

/// Of CPUs, where lanes of a vector are work items.
struct LaneCosts {
  double index;           ///< most integers are, and loops compute them once
  double sum;             ///< of all lanes, and its addition to an element
  double access;          ///< to neighbours
  double gathered, alone; ///< each lane: its access, its copy of an operation
  double waiting;         ///< of twice as many lanes, in loops of other ones
  double gain;            ///< lanes pay if they take that part of the time
  size_t side;            ///< operations as cheap as a look at the mask
  int64_t interleaved; ///< components that are cheaper shuffled than gathered
  int64_t guessed;     ///< the same, where the extents are not certain
  unsigned streams;    ///< rows of memory that are fetched ahead
  unsigned few;        ///< lanes for each work item of a row that has none
  double ordered;      ///< each work item: its place in the order of lengths
  LatencyCosts latencies;
};

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
  /// Of an atomic addition: gathering may take as much for each.
  int64_t addition() const { return table.addition; }
  const TileCosts &tiles() const { return table.tiles; }
  const LaneCosts &lanes() const { return table.lanes; }

  /// `wide...`: of f64.
  struct Table {
    int64_t arithmetic, wideArithmetic, quotient, wideQuotient;
    int64_t function, wideFunction, smallFunction, twin, philox;
    int64_t load, addition;
    int64_t call, loop;          ///< a call of 0 costs what the function does
    int64_t value, word, saving; ///< of each value, each word of it; at least
    TileCosts tiles = {};
    LaneCosts lanes = {};
  };

private:
  int64_t ofFunction(mlir::Operation *op, bool wide) const;
  int64_t ofCall(mlir::Operation *op) const;

  const Table &table;
};

inline const LaneCosts &laneCosts() { return Costs(Target::Cpu).lanes(); }

} // namespace costate::sizing
