/// Constants, choices, and values of several parts.

#include "conversion/LLVMToSPIRV/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace costate::conversion {
namespace {

LogicalResult choose(Translation &t, Operation *op) {
  return t.set(
      op, t.b.select(t.operand(op, 0), t.operand(op, 1), t.operand(op, 2)));
}

template <class Op> LogicalResult constant(Translation &t, Op op) {
  Type type = t.b.typeOf(op->getResult(0).getType());
  Value value = type ? t.b.constantOf(type, op.getValue()) : Value();
  return value ? t.set(op, value) : t.none(op);
}

/// Of a value of several parts: those that nobody inserts are not used.
LogicalResult zero(Translation &t, Operation *op) {
  Type from = op->getResult(0).getType(), type = t.b.typeOf(from);
  if (!type && isa<LLVM::LLVMStructType>(from))
    return success();
  return type ? t.set(op, t.b.zeroOf(type)) : t.none(op);
}

LogicalResult insert(Translation &t, LLVM::InsertValueOp op) {
  if (op.getPosition().size() != 1)
    return t.none(op);
  auto &all = t.parts[op.getResult()];
  all = t.parts.lookup(op.getContainer());
  size_t at = op.getPosition().front();
  all.resize(std::max(all.size(), at + 1));
  all[at] = t.get(op.getValue());
  return success();
}

LogicalResult extract(Translation &t, LLVM::ExtractValueOp op) {
  auto all = t.parts.find(op.getContainer());
  if (all == t.parts.end() || op.getPosition().size() != 1)
    return t.none(op);
  return t.set(op, all->second[op.getPosition().front()]);
}

} // namespace

llvm::ArrayRef<KnownOperation> valueOperations() {
  static const KnownOperation all[] = {
      row<LLVM::SelectOp, choose>(),
      row<arith::SelectOp, choose>(),
      row<LLVM::ConstantOp, constant<LLVM::ConstantOp>>(),
      row<arith::ConstantOp, constant<arith::ConstantOp>>(),
      row<LLVM::ZeroOp, zero>(),
      row<LLVM::UndefOp, zero>(),
      row<LLVM::PoisonOp, zero>(),
      row<ub::PoisonOp, zero>(),
      row<LLVM::InsertValueOp, insert>(),
      row<LLVM::ExtractValueOp, extract>(),
  };
  return all;
}

} // namespace costate::conversion
