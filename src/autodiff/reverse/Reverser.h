#pragma once
/// Reverse mode: makes a copy of a kernel its gradient, in place.

#include "autodiff/Differentiate.h"
#include "autodiff/activity/Activity.h"
#include "autodiff/reverse/Construction.h"
#include "autodiff/reverse/Scope.h"
#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace costate::autodiff {

/// Whether `op` has an effect that gradients do not have.
bool isOfPrimal(mlir::Operation *op);

/// The adjoints of forward values while a block is reversed, in the order in
/// which they first appeared.
class Adjoints {
public:
  /// The adjoint of `value`, which is complete now; null if it has none.
  mlir::Value take(mlir::Value value);
  void add(Builder &b, mlir::Value value, mlir::Value g);
  /// The values that still have an adjoint.
  Values remaining() const;

private:
  llvm::MapVector<mlir::Value, mlir::Value> map;
};

/// `kernel` starts as a copy of the primal with adjoint arrays appended. Its
/// own operations become the forward sweep, without stores but for those marked
/// `costate.replayed`; the reverse sweep
/// is put after them, for a range at the end of each work item. Ranges move
/// after the serial code, last one first.
class Reverser {
public:
  using Exclusive =
      llvm::DenseMap<mlir::Operation *, llvm::DenseSet<mlir::Value>>;

  Reverser(ir::KernelOp kernel,
           llvm::DenseMap<mlir::Value, mlir::Value> adjointArrays,
           llvm::DenseMap<mlir::Operation *, mlir::Value> tripCounts,
           Exclusive exclusiveOf, const sizing::Policy &policy);
  mlir::LogicalResult run();

private:
  using Ops = llvm::ArrayRef<mlir::Operation *>;

  /// One reversed block under construction: where to emit, how to see forward
  /// values, what adjoints have accumulated.
  struct Sweep {
    Builder &b;
    Scope &scope;
    Adjoints &adjoints;
    /// The loop around, if this is an iteration of it that runs again.
    ReverseLoop *around = nullptr;
  };

  // Preparation.
  mlir::LogicalResult checkRules();
  void collectEffects();

  // Straight code.
  mlir::LogicalResult reverseOps(Ops ops, Sweep &sweep);
  mlir::LogicalResult reverseOp(mlir::Operation *op, Sweep &sweep);
  void reverseLoad(ir::LoadOp load, Sweep &sweep);
  void reverseStore(ir::StoreOp store, Sweep &sweep);
  void reverseUpdate(ir::AtomicAddOp update, Sweep &sweep);
  void reverseExtremum(mlir::Operation *update, Sweep &sweep);
  mlir::Value loadFinal(mlir::Operation *update, mlir::ValueRange indices,
                        Builder &b);
  bool isShared(mlir::Operation *write) const;
  mlir::Value take(mlir::Operation *write, mlir::Value adjoint,
                   mlir::ValueRange indices, Builder &b);
  // Locals.cpp: private arrays have adjoints that are private arrays.
  void declareAdjoints(mlir::Block &body, Builder &b);
  void reverseLocal(mlir::Operation *op, Sweep &sweep);
  void reverseLocalLoad(ir::LocalLoadOp load, Sweep &sweep);
  void reverseLocalStore(ir::LocalStoreOp store, Sweep &sweep);
  void reverseScalar(mlir::Operation *op, Sweep &sweep);
  void reverseCall(mlir::func::CallOp call, Sweep &sweep);
  void add(Sweep &sweep, mlir::Value value, mlir::Value g);
  Values use(Sweep &sweep, mlir::ValueRange values);

  // Regions. `g`: adjoints of the results, null where there is none.
  using Results = llvm::ArrayRef<mlir::Value>;
  mlir::LogicalResult reverseIf(mlir::scf::IfOp branch, Results g,
                                Sweep &sweep);
  mlir::LogicalResult reverseFor(mlir::scf::ForOp loop, Results g,
                                 Sweep &sweep);
  mlir::LogicalResult reverseWhile(mlir::scf::WhileOp loop, Results g,
                                   Sweep &sweep);
  mlir::LogicalResult reverseRange(ir::RangeOp range, Results g, Sweep &sweep);
  /// What a reversed loop carries: adjoints before its first iteration and
  /// after each iteration, and the forward values that they end up with.
  struct Carried {
    llvm::SmallVectorImpl<mlir::Value> &inits, &next, &receivers;
    mlir::Operation *forward;
    Adjoints &started;  ///< sums that go on
    bool isPair = true; ///< as many iterations as in the forward sweep
  };
  mlir::Value startOf(mlir::Value captured, Carried &carried, Sweep &sweep);
  Adjoints takeSums(mlir::Operation *loop);
  void pairLoops();
  void closeLoop(ReverseLoop &loop, mlir::Value count, Carried carried,
                 Adjoints &adjoints, Sweep &sweep);
  mlir::LogicalResult reverseBefore(mlir::scf::WhileOp loop,
                                    mlir::Value iteration,
                                    llvm::SmallVectorImpl<mlir::Value> &carried,
                                    Sweep &sweep);
  mlir::LogicalResult reverseBody(mlir::scf::WhileOp loop,
                                  mlir::Value iteration,
                                  llvm::SmallVectorImpl<mlir::Value> &carried,
                                  Sweep &sweep, ReverseLoop *again = nullptr);
  mlir::LogicalResult
  reverseLaterBody(mlir::scf::WhileOp loop, mlir::Value iteration,
                   mlir::Value isLater,
                   llvm::SmallVectorImpl<mlir::Value> &carried,
                   mlir::ValueRange results, Sweep &sweep);
  // Again.cpp: iterations.
  /// One iteration of a loop: what it hands on and what it was given, of that
  /// what is active.
  struct Iteration {
    mlir::Block &block;
    Values yielded, given;
    ReverseLoop *again; ///< null unless it runs again
  };
  mlir::LogicalResult
  reverseIteration(const Iteration &iteration,
                   llvm::SmallVectorImpl<mlir::Value> &carried, Sweep &sweep);
  llvm::SmallVector<mlir::Operation *>
  runAgain(mlir::Block &body, mlir::IRMapping &copies, Sweep &sweep);
  void skipLastSegments();
  void saveConstantLocals(mlir::Operation *loop, mlir::Block &body,
                          Sweep &sweep);
  void saveLocal(mlir::Value local, Builder &forward, Sweep &sweep);
  mlir::Value localInReverse(mlir::Value local, Scope &scope);
  void useForward(mlir::Operation *op, Scope &scope);
  mlir::Operation *originalOf(mlir::Operation *op) const {
    mlir::Operation *original = originals.lookup(op);
    return original ? original : op;
  }

  bool passesThrough(mlir::scf::WhileOp loop) const;
  Values throughBefore(mlir::scf::WhileOp loop, mlir::ValueRange g, Builder &b);
  mlir::Value zeroIfNull(Builder &b, mlir::Value g, mlir::Type type);

  bool hasAdjoint(mlir::Value array) const {
    return adjointArrays.contains(array);
  }
  /// Whether `value` has an adjoint that may differ from 0.
  bool isActive(mlir::Value value) const {
    return activity.isVaried(value) && influence.contains(value);
  }
  llvm::SmallVector<unsigned> activeAmong(mlir::ValueRange values) const;

  ir::KernelOp kernel;
  llvm::DenseMap<mlir::Value, mlir::Value> adjointArrays;
  llvm::DenseMap<mlir::Value, mlir::Value>
      adjointLocals; ///< of those that are active
  llvm::DenseMap<mlir::Operation *, mlir::Value> tripCounts; ///< of each while
  Activity activity;
  Influence influence;
  llvm::DenseSet<mlir::Operation *> effectful; ///< ops with adjoint effects
  Exclusive exclusiveOf; ///< arrays of which work items have own elements
  llvm::DenseSet<mlir::Value> exclusive;        ///< those of the current range
  llvm::SmallVector<mlir::Operation *> effects; ///< of the primal, to go
  /// Of what runs again: operations of the primal, private arrays that stand
  /// for those of the forward sweep.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> originals;
  llvm::DenseMap<mlir::Value, mlir::Value> localCopies;
  /// Loops over smaller segments where they run to be reversed.
  llvm::SmallVector<mlir::scf::ForOp> divided;
  mlir::Operation *pivot = nullptr; ///< in front of the reverse sweep
  Adjoints sums; ///< over a loop of which only the end has been reversed
  Records records;
  /// Loops and those that undo them.
  struct Undone {
    mlir::Operation *forward;
    mlir::scf::ForOp reversed;
    bool isPair;
  };
  llvm::SmallVector<Undone> loops;
};

/// The operations of `block` without its terminator.
llvm::SmallVector<mlir::Operation *> operationsOf(mlir::Block &block);

} // namespace costate::autodiff
