#pragma once
/// Forward mode: adds the tangents of every value to a copy of a kernel.

#include "autodiff/activity/Activity.h"
#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <functional>

namespace costate::autodiff {

/// The curves along which a kernel is differentiated: the contents of its
/// arrays are a point of each, their tangents the derivatives there.
struct Curves {
  /// The highest derivative that is taken along each curve.
  unsigned order = 1;
  /// Curves at once, for which tangent arrays have an outer dimension. 0: one
  /// curve, without that dimension.
  unsigned directions = 0;

  unsigned count() const { return directions ? directions : 1; }
};

/// What stands beside the result of a scalar operation or beside an element
/// that is added to, from what stands beside the operands. Null: 0.
using Companion = std::function<mlir::Value(Builder &, mlir::Operation *,
                                            llvm::ArrayRef<mlir::Value>)>;

/// `kernel` starts as a copy of the primal with tangent arrays appended and
/// becomes primal and tangents in one. A store overwrites the tangents of its
/// element, an update adds to them.
class Forward {
public:
  /// `tangentArrays`: for each active array the one with its tangents, and for
  /// that one the next, up to the order of `curves`.
  Forward(ir::KernelOp kernel,
          llvm::DenseMap<mlir::Value, mlir::Value> tangentArrays,
          Curves curves);
  /// Puts into the place of tangents what `companion` says, beside all floats.
  Forward(ir::KernelOp kernel, llvm::DenseMap<mlir::Value, mlir::Value> arrays,
          Companion companion);
  mlir::LogicalResult run();
  /// What stands beside `value`. Null: 0.
  mlir::Value companionOf(mlir::Value value) const {
    return tangents.front().lookup(value);
  }

private:
  class Emission;

  /// An operation that has still to be differentiated: so often, along the
  /// curves from `first` to before `last`.
  struct Task {
    mlir::Operation *op;
    unsigned order, first, last;
  };

  mlir::LogicalResult block(mlir::Block &block);
  mlir::LogicalResult op(mlir::Operation *op);
  mlir::LogicalResult region(mlir::Operation *op);
  mlir::LogicalResult push(tape::PushOp push);
  void pop(tape::PopOp pop);
  mlir::LogicalResult copy(ir::CopyOp copy);

  mlir::LogicalResult straight(const Task &task, Emission &out);
  void local(ir::LocalOp local, const Task &task, Emission &out);
  /// A load or write, of an array or a private one. Nobody adds 0.
  void access(const Task &task, Emission &out);
  /// The same access to tangents, of `value` if it writes.
  mlir::Operation *accessTo(mlir::Value array, mlir::Operation *access,
                            mlir::Value value, unsigned curve,
                            mlir::OpBuilder &b);
  mlir::LogicalResult scalar(const Task &task, Emission &out);
  mlir::Value companionFor(mlir::Operation *op, Emission &out);
  mlir::LogicalResult extremum(mlir::Operation *update, const Task &task,
                               Emission &out);

  bool hasTangent(mlir::Value value, const Task &task) const;
  /// The tangent of `value` along a curve: 0 if it has none.
  mlir::Value tangentOf(Builder &b, mlir::Value value, unsigned curve);
  Values indicesIn(mlir::Value tangentArray, mlir::ValueRange indices,
                   unsigned curve) const;

  // Lists of values with tangents after them: by value, by curve, by order.
  void appendTangents(Builder &b, mlir::Value value,
                      llvm::SmallVectorImpl<mlir::Value> &list);
  void receiveTangents(mlir::Value value,
                       llvm::function_ref<mlir::Value()> next);
  /// `values` and the tangents of those that vary.
  Values withTangents(Builder &b, mlir::ValueRange values,
                      mlir::ValueRange varying);
  /// Makes `op` again, with tangents of its results.
  void widen(mlir::Operation *op, mlir::ValueRange operands);
  void addArguments(mlir::Block &block, unsigned first);
  void extendTerminator(mlir::Block &block, mlir::ValueRange varying,
                        unsigned first);

  ir::KernelOp kernel;
  llvm::DenseMap<mlir::Value, mlir::Value> tangentArrays;
  const Curves curves;
  const Companion companion;
  Activity activity;
  Values curveNumbers;
  /// By curve; tangents have tangents themselves, up to the order.
  llvm::SmallVector<llvm::DenseMap<mlir::Value, mlir::Value>> tangents;
  /// By number of a record: which of its values vary.
  llvm::DenseMap<int64_t, llvm::SmallVector<bool>> variedFields;
};

} // namespace costate::autodiff
