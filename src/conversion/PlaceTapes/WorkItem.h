#pragma once
/// The sweeps of a range with rows in the place of records: what is emitted
/// for one of its work items, and what the parts that emit it share.

#include "conversion/PlaceTapes/Place.h"
#include "conversion/PlaceTapes/State.h"
#include "sizing/Costs.h"

#include "mlir/IR/IRMapping.h"

namespace costate::conversion {

/// Some iterations of a loop.
struct Iterations {
  mlir::Value first, end; ///< the same for all lanes
  mlir::Value own;        ///< this lane has no iteration from here on
};

/// What iterations leave behind. Rows: none where they are not counted.
struct Outcome {
  Values state;
  mlir::Value row;             ///< after the last record
  mlir::Value unit;            ///< rows of the deepest iteration
  mlir::Value iterations = {}; ///< open loops: how many this lane took
};

/// A loop of the work item itself, between the sweeps.
struct OpenLoop {
  LoopState state;
  Values inits = {};
  Values locals = {};       ///< private arrays that it carries
  Values elements = {};     ///< in front of it, if counting changes them
  mlir::Value first = {};   ///< row
  mlir::Value keptEnd = {}; ///< row after the kept iterations: of checkpoints
  mlir::Value free = {};    ///< row after them
  mlir::Value most = {}, own = {}, kept = {}; ///< iterations
  mlir::Value fit = {};                       ///< whether it does
  mlir::Value segment = {}, segments = {}; ///< iterations of one; their number
  mlir::Value inside = {};  ///< nests: some are deeper than all rows
  mlir::Value lastEnd = {}; ///< nests: row after the last one, if it is stored
  bool storesLast = false;
  bool same = false; ///< all lanes with a work item have as many iterations
};

/// What code costs on a device.
struct DeviceCosts {
  bool inlines;  ///< each call of a function becomes its code
  bool fastMath; ///< functions of f32 are the hardware's
  sizing::Costs table;
};

/// One of the range; or one iteration of a loop, as a work item of its own.
struct WorkItem {
  WorkItem(const TapeShape &shape, RowBuilder &b, mlir::IRMapping map,
           DeviceCosts costs)
      : shape(shape), b(b), map(std::move(map)), costs(costs) {}

  const TapeShape &shape;
  RowBuilder &b;
  mlir::IRMapping map; ///< of the work item itself
  DeviceCosts costs;
  mlir::Value active; ///< whether the lane has one; null: always
  /// Whether the lane takes part in the reverse sweep; null: always.
  mlir::Value running;
  // What the forward sweep has come to so far.
  mlir::Value row, fits, need, minRows;
  unsigned loopsLeft = 0;
  llvm::DenseMap<mlir::Operation *, OpenLoop> open;
  llvm::DenseMap<int64_t, Values> records; ///< of the work item itself
};

Values mapped(mlir::ValueRange values, const mlir::IRMapping &at);

} // namespace costate::conversion
