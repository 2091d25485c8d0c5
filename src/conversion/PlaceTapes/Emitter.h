#pragma once
/// Emits the sweeps of one range with rows in the place of records.

#include "conversion/PlaceTapes/State.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

using Values = llvm::SmallVector<mlir::Value>;
using Builder = mlir::ImplicitLocOpBuilder;

/// What becomes of records when turns of the forward sweep run.
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
  mlir::Value fits = {}; ///< with Keep::Guarded, in a leaf: the turn does

  bool counts() const { return keep != Keep::Nothing; }
  /// Perhaps more rows than any tape has.
  bool measures() const { return keep == Keep::Size || keep == Keep::Guarded; }
  bool writes() const { return keep == Keep::Guarded || keep == Keep::Rows; }
  Place at(mlir::Value next) const { return {keep, next, limit}; }
};

/// Some turns of a loop.
struct Turns {
  mlir::Value first, end; ///< the same for all lanes
  mlir::Value own;        ///< this lane has no turn from here on
};

/// What turns leave behind. Rows: none where they are not counted.
struct Outcome {
  Values state;
  mlir::Value row;        ///< behind the last record
  mlir::Value unit;       ///< rows of the deepest turn
  mlir::Value turns = {}; ///< open loops: how many this lane took
};

/// A loop of the iteration itself, between the sweeps.
struct OpenLoop {
  LoopState state;
  Values inits = {};
  mlir::Value first = {};   ///< row
  mlir::Value keptEnd = {}; ///< row behind the kept turns: of checkpoints
  mlir::Value free = {};    ///< row behind them
  mlir::Value most = {}, own = {}, kept = {}; ///< turns
  mlir::Value fit = {};                       ///< whether it does
  mlir::Value segment = {}, segments = {};    ///< turns of one; their number
  mlir::Value inside = {};  ///< nests: whether turns are deeper than all rows
  mlir::Value lastEnd = {}; ///< nests: row behind the last one, if it is stored
  bool storesLast = false;
  bool same = false; ///< all lanes with an iteration have as many turns
};

/// Turns of an OpenLoop that run together: the kept ones, or a segment.
struct Piece {
  mlir::Value number;
  mlir::Value isKept, isStored; ///< null: never
  mlir::Value keptEnd;          ///< row behind the kept turns
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
  /// One turn of a loop of `outer`, as an iteration of its own that starts at
  /// `row`; `active`: of this lane.
  Emitter(const Emitter &outer, mlir::Value active, mlir::Value row);

  friend class LevelWalk;
  friend class ForwardWalk;
  friend class ReverseWalk;

  // Values of the builder's place. Rows and turns are unsigned i32.
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
  mlir::Value index(mlir::Value turn);
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

  // Turns of the forward sweep.
  Values turn(const LoopState &loop, mlir::ValueRange state, mlir::Value k,
              mlir::Value pred, mlir::IRMapping at, Place &place);
  /// Maps what a turn starts with; returns its body.
  mlir::Block *enterTurn(const LoopState &loop, mlir::ValueRange state,
                         mlir::Value k, mlir::Value pred, mlir::IRMapping &at);
  Values passedOn(const LoopState &loop, mlir::ValueRange state,
                  mlir::Value pred, mlir::IRMapping &at);
  /// What the loop results in, once `state` is its last one.
  Values results(const LoopState &loop, mlir::ValueRange state,
                 mlir::Value pred, mlir::IRMapping at);
  Outcome run(const LoopState &loop, const Turns &turns, mlir::ValueRange state,
              const mlir::IRMapping &at, const Place &place);
  Outcome runLeaf(const LoopState &loop, const Turns &turns,
                  mlir::ValueRange state, const mlir::IRMapping &at,
                  const Place &place);
  Outcome runNest(const LoopState &loop, const Turns &turns,
                  mlir::ValueRange state, const mlir::IRMapping &at,
                  const Place &place);
  using OpenBody = llvm::function_ref<Values(mlir::ValueRange)>;
  /// `before` leaves, behind what it passes on, whether the loop goes on.
  Values openLoop(mlir::TypeRange types, mlir::ValueRange inits,
                  OpenBody before, OpenBody after);
  Values condition(mlir::scf::WhileOp open, mlir::ValueRange state,
                   mlir::IRMapping at);
  struct OpenNest; ///< while it runs
  Values enterNest(const OpenNest &nest, mlir::ValueRange carried);
  Values turnNest(const OpenNest &nest, mlir::ValueRange carried);
  /// A `while`, to its end; leaves its results.
  Outcome runOpen(const LoopState &loop, mlir::Value pred,
                  mlir::ValueRange state, const mlir::IRMapping &at,
                  const Place &place);
  Place leafTurn(const Place &place, mlir::Value turn, mlir::Value room,
                 int64_t rows);
  mlir::Value roomOf(const Place &place, int64_t rows);
  mlir::Value rowBehind(const Place &place, mlir::Value turns, int64_t rows);
  Outcome runOpenLeaf(const LoopState &loop, mlir::Value pred,
                      mlir::ValueRange state, const mlir::IRMapping &at,
                      const Place &place);
  Outcome runOpenNest(const LoopState &loop, mlir::Value pred,
                      mlir::ValueRange state, const mlir::IRMapping &at,
                      const Place &place);
  /// A loop in a turn of another one.
  void innerLoop(mlir::Operation *op, mlir::Value pred, mlir::IRMapping &at,
                 Place &place);
  void outerLoop(mlir::Operation *op, mlir::Value pred);
  Outcome count(OpenLoop &loop, mlir::Value pred, mlir::Value left);
  mlir::Value share(mlir::Value left, mlir::Value few);
  mlir::Value plan(OpenLoop &loop, const Outcome &whole, mlir::Value left);
  Values behindKept(OpenLoop &loop, const Outcome &whole, mlir::Value all);
  Values nextRecorded(const OpenLoop &loop, llvm::ArrayRef<RecordField> fields,
                      mlir::Value all);
  Outcome runPiece(const OpenLoop &loop, const Piece &piece, const Turns &turns,
                   mlir::ValueRange state);
  mlir::Value storesLast(const OpenLoop &loop);
  bool isUsedOnTheWay(const OpenLoop &loop) const;
  mlir::Value runAgain(const OpenLoop &loop, const Turns &turns,
                       mlir::Value isKept, mlir::Value isStored, Arm state);
  Values runPieces(OpenLoop &loop, mlir::ValueRange state);
  void writeState(const OpenLoop &loop, mlir::Value at, mlir::ValueRange state);
  Values mapped(mlir::ValueRange values, const mlir::IRMapping &at);
  /// Loops up to less than 0 take no turn; else turns are unsigned.
  mlir::Value turnsUpTo(mlir::Value bound);
  mlir::Value ownTurns(mlir::Operation *loop, mlir::Value pred,
                       const mlir::IRMapping &at);
  /// Whether all lanes with an iteration have as many turns.
  bool areSame(mlir::Operation *loop, mlir::Value pred);
  /// Of any lane; bounds from outside of the range are the same for all.
  mlir::Value mostTurns(mlir::Operation *loop, mlir::Value pred,
                        mlir::Value own);

  // Turns of the reverse sweep.
  bool isShort(mlir::scf::ForOp reversed, const TapeLevel &level) const;
  struct Undone; ///< a leaf while it is undone
  Values undoTurn(const Undone &leaf, mlir::Value place, mlir::Value runs,
                  const llvm::DenseMap<int64_t, Values> &read,
                  mlir::ValueRange carried);
  llvm::DenseMap<int64_t, Values> readTurn(const Undone &leaf,
                                           mlir::Value start);
  Values undoBatch(const Undone &leaf, int64_t size, mlir::Value behind,
                   mlir::Value end, mlir::ValueRange carried);
  Values undoBatches(const Undone &leaf, mlir::Value count,
                     mlir::ValueRange carried);
  /// A leaf starts at `row`.
  Values undoLeaf(mlir::scf::ForOp reversed, const Turns &turns,
                  mlir::Value row, mlir::ValueRange adjoints,
                  const mlir::IRMapping &at, bool same = false);
  /// A nest ends at `row`, which becomes its start.
  Values undoNest(mlir::scf::ForOp reversed, const Turns &turns,
                  mlir::Value &row, mlir::ValueRange adjoints,
                  const mlir::IRMapping &at);
  void undoInner(mlir::scf::ForOp reversed, mlir::Value pred,
                 mlir::IRMapping &at, mlir::Value &row);
  void undoOuter(mlir::scf::ForOp reversed, mlir::Value pred);
  Values stateAt(const OpenLoop &loop, mlir::ValueRange saved,
                 mlir::Value turn);
  Values restore(const OpenLoop &loop, mlir::Value at, mlir::Value from);
  void settle();

  // Turns that are deeper than all rows.
  void planInside(OpenLoop &loop, mlir::Value left);
  Values undoInside(const OpenLoop &loop, mlir::scf::ForOp reversed,
                    const Turns &turns, mlir::ValueRange state,
                    mlir::ValueRange adjoints);
  void start(const TapeLevel &level);
  Values sweepInside(const LoopState &loop, mlir::ValueRange state,
                     mlir::Value k);
  Values reverseInside(mlir::scf::ForOp reversed, mlir::Value k,
                       mlir::ValueRange adjoints);

  const TapeShape &shape;
  Builder &b;
  mlir::IRMapping map; ///< of the iteration itself
  bool tiles;
  Costs costs;
  mlir::Value active, running;
  // What the forward sweep has come to so far.
  mlir::Value row, fits, need, fewest;
  unsigned loopsLeft = 0;
  llvm::DenseMap<mlir::Operation *, OpenLoop> open;
  llvm::DenseMap<int64_t, Values> records; ///< of the iteration itself
};

} // namespace costate::conversion
