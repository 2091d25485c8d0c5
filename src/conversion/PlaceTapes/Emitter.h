#pragma once
/// Emits the sweeps of one range with rows in the place of records.

#include "conversion/PlaceTapes/State.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

using Values = llvm::SmallVector<mlir::Value>;
using Builder = mlir::ImplicitLocOpBuilder;

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

/// Iterations of an OpenLoop that run together: the kept ones, or a segment.
struct Piece {
  mlir::Value number;
  mlir::Value isKept, isStored; ///< null: never
  mlir::Value keptEnd;          ///< row after the kept iterations
};

class Emitter {
public:
  /// What code costs on a device.
  struct Costs {
    bool inlines;  ///< each call of a function becomes its code
    bool fastMath; ///< functions of f32 are the hardware's
  };
  Emitter(const TapeShape &shape, Builder &b, mlir::IRMapping map, bool tiles,
          Costs costs)
      : shape(shape), b(b), map(std::move(map)), tiles(tiles), costs(costs) {}

  void emit();
  mlir::IRMapping &values() { return map; }
  /// Whether the lane takes part in the reverse sweep; null: always.
  mlir::Value runs() const { return running; }

private:
  /// One iteration of a loop of `outer`, as a work item of its own that starts
  /// at `row`; `active`: of this lane.
  Emitter(const Emitter &outer, mlir::Value active, mlir::Value row);

  friend class LevelWalk;
  friend class ForwardWalk;
  friend class ReverseWalk;

  // Values of the builder's place. Rows and iterations are unsigned i32.
  mlir::Value i64(int64_t value);
  mlir::Value i32(int64_t value);
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
  mlir::Value less(mlir::Value a, mlir::Value c);
  mlir::Value both(mlir::Value pred, mlir::Value condition);
  mlir::Value negated(mlir::Value condition);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value c);
  /// `value` where `pred` holds, else 0.
  mlir::Value where(mlir::Value pred, mlir::Value value);
  mlir::Value warpMax(mlir::Value value);

  using Body = llvm::function_ref<Values(mlir::Value k, mlir::ValueRange)>;
  Values loop(mlir::Value from, mlir::Value to, mlir::ValueRange inits,
              Body body);
  using Arm = llvm::function_ref<Values()>;
  /// Both arms leave values of `types`; no `pred`: the first one runs. No
  /// second arm: it leaves zeros.
  Values branch(mlir::Value pred, mlir::TypeRange types, Arm yes,
                Arm no = nullptr);

  // Straight code.
  void straight(llvm::ArrayRef<mlir::Operation *> ops, mlir::Value pred,
                mlir::IRMapping &at, const Place &place);
  void clone(mlir::Operation *op, mlir::IRMapping &at, const Place &place);
  void replaceNested(mlir::Operation *copy, const Place &place);
  void write(Builder &at, tape::PushOp push, mlir::ValueRange values,
             const Place &place);
  Values read(Builder &at, tape::PopOp pop, mlir::Value row);

  // Iterations of the forward sweep.
  Values iteration(const LoopState &loop, mlir::ValueRange state, mlir::Value k,
                   mlir::Value pred, mlir::IRMapping at, Place &place);
  /// Maps what an iteration starts with; returns its body.
  mlir::Block *enterIteration(const LoopState &loop, mlir::ValueRange state,
                              mlir::Value k, mlir::Value pred,
                              mlir::IRMapping &at);
  Values passedOn(const LoopState &loop, mlir::ValueRange state,
                  mlir::Value pred, mlir::IRMapping &at);
  /// What the loop results in, once `state` is its last one.
  Values results(const LoopState &loop, mlir::ValueRange state,
                 mlir::Value pred, mlir::IRMapping at);
  Outcome run(const LoopState &loop, const Iterations &iterations,
              mlir::ValueRange state, const mlir::IRMapping &at,
              const Place &place);
  Outcome runLeaf(const LoopState &loop, const Iterations &iterations,
                  mlir::ValueRange state, const mlir::IRMapping &at,
                  const Place &place);
  Outcome runNest(const LoopState &loop, const Iterations &iterations,
                  mlir::ValueRange state, const mlir::IRMapping &at,
                  const Place &place);
  using OpenBody = llvm::function_ref<Values(mlir::ValueRange)>;
  /// `before` leaves, after what it passes on, whether the loop goes on.
  Values openLoop(mlir::TypeRange types, mlir::ValueRange inits,
                  OpenBody before, OpenBody after);
  Values condition(mlir::scf::WhileOp open, mlir::ValueRange state,
                   mlir::IRMapping at);
  struct OpenNest; ///< while it runs
  Values enterNest(const OpenNest &nest, mlir::ValueRange carried);
  Values nestIteration(const OpenNest &nest, mlir::ValueRange carried);
  /// A `while`, to its end; leaves its results.
  Outcome runOpen(const LoopState &loop, mlir::Value pred,
                  mlir::ValueRange state, const mlir::IRMapping &at,
                  const Place &place);
  Place leafIteration(const Place &place, mlir::Value iteration,
                      mlir::Value room, int64_t rows);
  mlir::Value roomOf(const Place &place, int64_t rows);
  mlir::Value rowAfter(const Place &place, mlir::Value iterations,
                       int64_t rows);
  Outcome runOpenLeaf(const LoopState &loop, mlir::Value pred,
                      mlir::ValueRange state, const mlir::IRMapping &at,
                      const Place &place);
  Outcome runOpenNest(const LoopState &loop, mlir::Value pred,
                      mlir::ValueRange state, const mlir::IRMapping &at,
                      const Place &place);
  /// A loop in an iteration of another one.
  void innerLoop(mlir::Operation *op, mlir::Value pred, mlir::IRMapping &at,
                 Place &place);
  void outerLoop(mlir::Operation *op, mlir::Value pred);
  Outcome count(OpenLoop &loop, mlir::Value pred, mlir::Value left);
  mlir::Value share(mlir::Value left, mlir::Value few);
  mlir::Value plan(OpenLoop &loop, const Outcome &whole, mlir::Value left);
  Values behindKept(OpenLoop &loop, const Outcome &whole, mlir::Value all);
  Values nextRecorded(const OpenLoop &loop, llvm::ArrayRef<RecordField> fields,
                      mlir::Value all);
  Outcome runPiece(const OpenLoop &loop, const Piece &piece,
                   const Iterations &iterations, mlir::ValueRange state);
  mlir::Value storesLast(const OpenLoop &loop);
  bool isUsedOnTheWay(const OpenLoop &loop) const;
  mlir::Value runAgain(const OpenLoop &loop, const Iterations &iterations,
                       mlir::Value isKept, mlir::Value isStored, Arm state);
  Values runPieces(OpenLoop &loop, mlir::ValueRange state);
  void writeState(const OpenLoop &loop, mlir::Value at, mlir::ValueRange state);
  Values mapped(mlir::ValueRange values, const mlir::IRMapping &at);
  /// Loops up to less than 0 take no iteration; else iterations are unsigned.
  mlir::Value iterationsUpTo(mlir::Value bound);
  mlir::Value ownIterations(mlir::Operation *loop, mlir::Value pred,
                            const mlir::IRMapping &at);
  /// Whether all lanes with a work item have as many iterations.
  bool areSame(mlir::Operation *loop, mlir::Value pred);
  /// Of any lane; bounds from outside of the range are the same for all.
  mlir::Value maxTripCount(mlir::Operation *loop, mlir::Value pred,
                           mlir::Value own);

  // Iterations of the reverse sweep.
  bool isShort(mlir::scf::ForOp reversed, const TapeLevel &level) const;
  struct Undone; ///< a leaf while it is undone
  Values undoIteration(const Undone &leaf, mlir::Value place, mlir::Value runs,
                       const llvm::DenseMap<int64_t, Values> &read,
                       mlir::ValueRange carried);
  llvm::DenseMap<int64_t, Values> readIteration(const Undone &leaf,
                                                mlir::Value start);
  Values undoBatch(const Undone &leaf, int64_t size, mlir::Value after,
                   mlir::Value end, mlir::ValueRange carried);
  Values undoBatches(const Undone &leaf, mlir::Value count,
                     mlir::ValueRange carried);
  /// A leaf starts at `row`.
  Values undoLeaf(mlir::scf::ForOp reversed, const Iterations &iterations,
                  mlir::Value row, mlir::ValueRange adjoints,
                  const mlir::IRMapping &at, bool same = false);
  /// A nest ends at `row`, which becomes its start.
  Values undoNest(mlir::scf::ForOp reversed, const Iterations &iterations,
                  mlir::Value &row, mlir::ValueRange adjoints,
                  const mlir::IRMapping &at);
  void undoInner(mlir::scf::ForOp reversed, mlir::Value pred,
                 mlir::IRMapping &at, mlir::Value &row);
  void undoOuter(mlir::scf::ForOp reversed, mlir::Value pred);
  Values stateAt(const OpenLoop &loop, mlir::ValueRange saved,
                 mlir::Value iteration);
  Values restore(const OpenLoop &loop, mlir::Value at, mlir::Value from);
  void reportNeed();

  // Iterations that are deeper than all rows.
  void planInside(OpenLoop &loop, mlir::Value left);
  Values undoInside(const OpenLoop &loop, mlir::scf::ForOp reversed,
                    const Iterations &iterations, mlir::ValueRange state,
                    mlir::ValueRange adjoints);
  void start(const TapeLevel &level);
  Values sweepInside(const LoopState &loop, mlir::ValueRange state,
                     mlir::Value k);
  Values reverseInside(mlir::scf::ForOp reversed, mlir::Value k,
                       mlir::ValueRange adjoints);

  const TapeShape &shape;
  Builder &b;
  mlir::IRMapping map; ///< of the work item itself
  bool tiles;
  Costs costs;
  mlir::Value active, running;
  // What the forward sweep has come to so far.
  mlir::Value row, fits, need, minRows;
  unsigned loopsLeft = 0;
  llvm::DenseMap<mlir::Operation *, OpenLoop> open;
  llvm::DenseMap<int64_t, Values> records; ///< of the work item itself
};

} // namespace costate::conversion
