#include "conversion/Contract/Passes.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_CONTRACTMULTIPLYADD
#include "conversion/Contract/Passes.h.inc"

namespace {

/// The product behind `value`, if nothing but `user` needs it.
arith::MulFOp productFor(Value value, Operation *user) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  bool private_ =
      product && value.hasOneUse() && product->getBlock() == user->getBlock();
  return private_ ? product : nullptr;
}

void replace(Operation *op, arith::MulFOp product, Value a, Value c) {
  OpBuilder builder(op);
  Value fma =
      math::FmaOp::create(builder, op->getLoc(), a, product.getRhs(), c);
  op->getResult(0).replaceAllUsesWith(fma);
  op->erase();
  product.erase();
}

Value negate(Operation *before, Value value) {
  OpBuilder builder(before);
  return arith::NegFOp::create(builder, before->getLoc(), value);
}

void contractSum(arith::AddFOp op) {
  if (arith::MulFOp product = productFor(op.getLhs(), op))
    replace(op, product, product.getLhs(), op.getRhs());
  else if (arith::MulFOp product = productFor(op.getRhs(), op))
    replace(op, product, product.getLhs(), op.getLhs());
}

void contractDifference(arith::SubFOp op) {
  if (arith::MulFOp product = productFor(op.getLhs(), op))
    replace(op, product, product.getLhs(), negate(op, op.getRhs()));
  else if (arith::MulFOp product = productFor(op.getRhs(), op))
    replace(op, product, negate(op, product.getLhs()), op.getLhs());
}

struct ContractMultiplyAdd
    : impl::ContractMultiplyAddBase<ContractMultiplyAdd> {
  void runOnOperation() override {
    // Collect first: a replacement erases the operation and its product.
    SmallVector<Operation *> sums;
    getOperation()->walk([&](Operation *op) {
      if (isa<arith::AddFOp, arith::SubFOp>(op))
        sums.push_back(op);
    });
    for (Operation *op : sums)
      if (auto sum = dyn_cast<arith::AddFOp>(op))
        contractSum(sum);
      else
        contractDifference(cast<arith::SubFOp>(op));
  }
};

} // namespace
} // namespace costate::conversion
