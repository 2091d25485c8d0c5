#include "conversion/KernelToLLVM/Guards.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// `value`, or what all of its lanes are.
Value scalarOf(Value value) {
  auto lanes = value.getDefiningOp<LLVM::ShuffleVectorOp>();
  auto first =
      lanes ? lanes.getV1().getDefiningOp<LLVM::InsertElementOp>() : nullptr;
  return first ? first.getValue() : value;
}

ir::StrongMulOp productOf(Operation *op) {
  auto product = dyn_cast_or_null<ir::StrongMulOp>(op);
  return product && !product.getSymmetric() ? product : nullptr;
}

/// The product that `op` multiplies once more with the same factor, or with the
/// factor and -1.
ir::StrongMulOp innerOf(ir::StrongMulOp op) {
  auto opposite = op.getG().getDefiningOp<arith::NegFOp>();
  Value g = opposite ? opposite.getOperand() : op.getG();
  ir::StrongMulOp inner = productOf(g.getDefiningOp());
  bool isOfSame = inner && scalarOf(inner.getF()) == scalarOf(op.getF());
  return isOfSame ? inner : nullptr;
}

class Guards {
public:
  void run(Operation *root) {
    root->walk([&](Operation *op) { find(op); });
    SmallVector<Value> results;
    for (Operation *op : shared)
      results.push_back(guarded(op->getResult(0)));
    for (auto [op, result] : llvm::zip(shared, results))
      op->getResult(0).replaceAllUsesWith(result);
    for (Operation *op : llvm::reverse(shared))
      op->erase();
  }

private:
  void find(Operation *op) {
    if (auto sum = dyn_cast<arith::AddFOp>(op)) {
      Value guard = guards.lookup(sum.getLhs());
      if (guard && guard == guards.lookup(sum.getRhs()))
        share(op, guard);
    } else if (ir::StrongMulOp product = productOf(op)) {
      ir::StrongMulOp inner = innerOf(product);
      guards[product] = product.getG();
      if (Value guard = inner ? guards.lookup(inner) : Value())
        share(op, guard);
    }
  }

  void share(Operation *op, Value guard) {
    guards[op->getResult(0)] = guard;
    shared.insert(op);
  }

  /// What it is where its guard is not 0.
  Value unguarded(Value value) {
    if (Value known = products.lookup(value))
      return known;
    Operation *op = value.getDefiningOp();
    ImplicitLocOpBuilder b(op->getLoc(), op);
    if (auto sum = dyn_cast<arith::AddFOp>(op)) {
      Value lhs = unguarded(sum.getLhs()), rhs = unguarded(sum.getRhs());
      return products[value] = arith::AddFOp::create(b, lhs, rhs);
    }
    auto product = cast<ir::StrongMulOp>(op);
    Value g = product.getG();
    if (shared.contains(op)) {
      ir::StrongMulOp inner = innerOf(product);
      bool isOpposite = g.getDefiningOp<arith::NegFOp>();
      g = unguarded(inner);
      if (isOpposite)
        g = arith::NegFOp::create(b, g);
    }
    return products[value] = arith::MulFOp::create(b, g, product.getF());
  }

  Value guarded(Value value) {
    ImplicitLocOpBuilder b(value.getLoc(), value.getDefiningOp());
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
    Value counts = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE,
                                         guards.lookup(value), zero);
    return arith::SelectOp::create(b, counts, unguarded(value), zero);
  }

  DenseMap<Value, Value> guards, products;
  llvm::SetVector<Operation *> shared; ///< in the order of the program
};

} // namespace

void shareGuards(Operation *root) { Guards().run(root); }

} // namespace costate::conversion
