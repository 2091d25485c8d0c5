#pragma once
/// Which values of a row are the same in all lanes.

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace costate::conversion {

/// How the value of a lane follows from that of the first one.
struct Shape {
  enum Kind : uint8_t { Uniform, Strided, Varying };
  Kind kind = Uniform;
  int64_t stride = 0; ///< from lane to lane; of a Strided one

  static Shape strided(int64_t stride) { return {Strided, stride}; }
  static Shape varying() { return {Varying, 0}; }
  bool isUniform() const { return kind == Uniform; }
  bool operator==(const Shape &) const = default;
};

/// Of the values in a row whose work items are lanes. Within a loop that some
/// lanes leave earlier than others, uniform means: in all lanes that are there.
class Shapes {
public:
  /// `number`: of the work item.
  explicit Shapes(mlir::scf::ForOp row, Shape number = Shape::strided(1));

  Shape of(mlir::Value value) const;
  bool isUniform(mlir::Value value) const { return of(value).isUniform(); }
  /// Whether values are the same in all lanes; indices those of neighbours in
  /// memory.
  bool areShared(mlir::ValueRange values) const;
  bool areNeighbours(mlir::ValueRange indices) const;

  /// Whether lanes leave the loop at different times.
  bool parts(mlir::scf::ForOp loop) const;
  bool parts(mlir::scf::WhileOp loop) const;
  /// Whether lanes with fewer iterations enter `loop` later, because it pops
  /// what a loop with as many iterations has pushed.
  bool startsLate(mlir::scf::ForOp loop) const;

private:
  void visit(mlir::Block &block);
  void visit(mlir::Operation *op);
  void visitIf(mlir::scf::IfOp op);
  void visitFor(mlir::scf::ForOp op);
  void visitWhile(mlir::scf::WhileOp op);
  void visitPop(mlir::Operation *op);
  Shape ofResult(mlir::Operation *op) const;
  std::optional<Shape> ofSum(mlir::Operation *op) const;
  /// Of a value that a region hands on.
  Shape carried(mlir::Value value) const;
  void meet(mlir::Value value, Shape shape);

  mlir::Operation *row;
  llvm::DenseMap<mlir::Value, Shape> shapes;
  llvm::DenseMap<int64_t, mlir::Operation *> pushes;
  bool isChanged = false;
};

/// Whether lanes cannot share `op` even if they share its operands: it writes,
/// or is on private arrays.
bool isOfOneLane(mlir::Operation *op);

/// Whether `region` pops records that are pushed outside of it; whether it
/// pushes some that are popped outside of it.
struct Balance {
  explicit Balance(mlir::Operation *op);
  bool popsOthers = false, leavesRecords = false;
};

} // namespace costate::conversion
