#include "conversion/LLVMToSPIRV/Saturation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// What `value` is a copy of: SPIR-V has no freeze.
Value thawed(Value value) {
  while (auto freeze = value.getDefiningOp<LLVM::FreezeOp>())
    value = freeze.getVal();
  return value;
}

/// 0 or all ones.
bool isLimit(Value value) {
  APInt limit;
  return matchPattern(thawed(value), m_ConstantInt(&limit)) &&
         (limit.isZero() || limit.isAllOnes());
}

/// Whether something chooses between `value` and a limit.
bool meetsLimit(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner(), *parent = user->getParentOp();
    unsigned number = use.getOperandNumber();
    if (isa<LLVM::FreezeOp>(user))
      return meetsLimit(user->getResult(0));
    if (isa<LLVM::SelectOp, arith::SelectOp>(user))
      return number > 0 && isLimit(user->getOperand(3 - number));
    if (!isa<scf::YieldOp>(user) || !isa<scf::IfOp, scf::IndexSwitchOp>(parent))
      return false;
    return llvm::any_of(parent->getRegions(), [&](Region &other) {
      return &other != user->getParentRegion() &&
             isLimit(other.front().getTerminator()->getOperand(number));
    });
  });
}

bool isComparedWith(Value one,
                    llvm::function_ref<bool(LLVM::ICmpOp, Value)> isOther) {
  return llvm::any_of(one.getUsers(), [&](Operation *user) {
    if (isa<LLVM::FreezeOp>(user))
      return isComparedWith(user->getResult(0), isOther);
    auto compare = dyn_cast<LLVM::ICmpOp>(user);
    return compare &&
           isOther(compare, thawed(compare.getLhs() == one ? compare.getRhs()
                                                           : compare.getLhs()));
  });
}

bool isSignTest(LLVM::ICmpOp compare, const APInt &bound) {
  using Is = LLVM::ICmpPredicate;
  return (compare.getPredicate() == Is::sgt && bound.isAllOnes()) ||
         (compare.getPredicate() == Is::slt && bound.isZero());
}

bool isNextTo(const APInt &a, const APInt &b) {
  return (a.ugt(b) ? a - b : b - a).ule(1);
}

/// Whether a comparison may tell that `sum` wraps: of one of its numbers with
/// the other one, with the constant that is taken from it, or with the sum. Of
/// a negation it tells the sign.
bool mayTellWrap(Operation *sum) {
  Value x = thawed(sum->getOperand(0)), y = thawed(sum->getOperand(1));
  bool subtracts = isa<LLVM::SubOp>(sum);
  if (subtracts && matchPattern(x, m_Zero()))
    return false;
  if (matchPattern(x, m_Constant()))
    std::swap(x, y);
  APInt wraps;
  bool isConstant = matchPattern(y, m_ConstantInt(&wraps));
  if (isConstant && !subtracts)
    wraps.negate();
  auto tells = [&](LLVM::ICmpOp compare, Value other) {
    APInt bound;
    return other == x || other == y || other == sum->getResult(0) ||
           (isConstant && matchPattern(other, m_ConstantInt(&bound)) &&
            isNextTo(bound, wraps) && !isSignTest(compare, bound));
  };
  return isComparedWith(x, tells) || (!isConstant && isComparedWith(y, tells));
}

} // namespace

bool isWideSum(Operation *op) {
  return isa<LLVM::AddOp, LLVM::SubOp>(op) &&
         op->getResult(0).getType().isInteger(64);
}

bool maySaturate(Operation *sum) {
  return meetsLimit(sum->getResult(0)) || mayTellWrap(sum);
}

bool isExtremumOf(Value value, Value other) {
  Operation *choice = thawed(value).getDefiningOp();
  if (!isa_and_nonnull<LLVM::SelectOp, arith::SelectOp>(choice))
    return false;
  return llvm::any_of(choice->getOperands().drop_front(), [&](Value arm) {
    return thawed(arm) == thawed(other) || arm.getDefiningOp<LLVM::XOrOp>() ||
           (matchPattern(arm, m_Constant()) &&
            matchPattern(other, m_Constant()));
  });
}

} // namespace costate::conversion
