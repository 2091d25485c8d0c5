/// Constants, choices, and values of several parts.

#include "conversion/LLVMToMetal/Emission.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace costate::conversion {
namespace {

LogicalResult choose(Emission &e, Operation *op) {
  return e.set(op, e.operand(op, 0) + " ? " + e.operand(op, 1) + " : " +
                       e.operand(op, 2));
}

LogicalResult constant(Emission &e, Operation *op, Attribute value) {
  Type type = op->getResult(0).getType();
  if (auto number = dyn_cast<IntegerAttr>(value))
    return e.alias(op, literal(number.getValue(), bitsOf(type)));
  auto number = dyn_cast<FloatAttr>(value);
  if (!number || metalType(type).empty())
    return e.none(op);
  llvm::APInt bits = number.getValue().bitcastToAPInt();
  return e.alias(op, fromBits(literal(bits, bits.getBitWidth()), type));
}

LogicalResult ofLLVM(Emission &e, LLVM::ConstantOp op) {
  return constant(e, op, op.getValue());
}

LogicalResult ofArith(Emission &e, arith::ConstantOp op) {
  return constant(e, op, op.getValue());
}

/// Of a value of several parts: those that nobody inserts are not used.
LogicalResult zero(Emission &e, Operation *op) {
  Type type = op->getResult(0).getType();
  if (isa<LLVM::LLVMStructType>(type))
    return success();
  return metalType(type).empty() ? e.none(op) : e.alias(op, zeroOf(type));
}

LogicalResult insert(Emission &e, LLVM::InsertValueOp op) {
  if (op.getPosition().size() != 1)
    return e.none(op);
  auto all = e.parts.lookup(op.getContainer());
  size_t at = op.getPosition().front();
  all.resize(std::max(all.size(), at + 1));
  all[at] = e.get(op.getValue());
  e.parts[op.getResult()] = all;
  return success();
}

LogicalResult extract(Emission &e, LLVM::ExtractValueOp op) {
  auto all = e.parts.find(op.getContainer());
  if (all == e.parts.end() || op.getPosition().size() != 1)
    return e.none(op);
  return e.alias(op, all->second[op.getPosition().front()]);
}

} // namespace

llvm::ArrayRef<EmittedOperation> emittedValues() {
  static const EmittedOperation all[] = {
      emitted<LLVM::SelectOp, choose>(),
      emitted<arith::SelectOp, choose>(),
      emitted<LLVM::ConstantOp, ofLLVM>(),
      emitted<arith::ConstantOp, ofArith>(),
      emitted<LLVM::ZeroOp, zero>(),
      emitted<LLVM::UndefOp, zero>(),
      emitted<LLVM::PoisonOp, zero>(),
      emitted<ub::PoisonOp, zero>(),
      emitted<LLVM::InsertValueOp, insert>(),
      emitted<LLVM::ExtractValueOp, extract>(),
  };
  return all;
}

} // namespace costate::conversion
