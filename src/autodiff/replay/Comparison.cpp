#include "autodiff/replay/Comparison.h"

#include "autodiff/replay/Accesses.h"
#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace costate::autodiff {
namespace {

/// The numbers of an argument and, row-major, of an element of it.
SmallVector<Value> placeIn(Builder &b, Value array, ValueRange indices) {
  Value element = indexConstant(b, 0);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value extent = ir::ExtentOp::create(b, b.getI64Type(), array, dim);
    element = arith::AddIOp::create(
        b, arith::MulIOp::create(b, element, extent), index);
  }
  return {indexConstant(b, argumentOf(array)), element};
}

std::string otherValueText(Type type) {
  std::string value = isa<FloatType>(type) ? "{f}"
                      : type.isInteger(1)  ? "{b}"
                                           : "{i}";
  return "memory holds another value here than the kernel finds when it runs "
         "from what memory holds: {e} is " +
         value + ", not " + value;
}

/// Integers with the same bits.
Value bitsOf(Builder &b, Value value) {
  auto type = dyn_cast<FloatType>(value.getType());
  return type ? arith::BitcastOp::create(b, b.getIntegerType(type.getWidth()),
                                         value)
              : value;
}

Value heldOf(ir::AssertOp assertion) { return assertion.getValues()[2]; }

bool comparesFloats(ir::AssertOp assertion) {
  return assertion.getValues().size() == 4 &&
         isa<FloatType>(foundOf(assertion).getType());
}

Value constantLike(Builder &b, Value value, double f64, double f32) {
  Type type = value.getType();
  return arith::ConstantOp::create(
      b, b.getFloatAttr(type, type.isF64() ? f64 : f32));
}

/// By its bits: with `fast_math` comparisons count on numbers being finite.
Value isFinite(Builder &b, Value value) {
  unsigned width = value.getType().getIntOrFloatBitWidth();
  Type type = b.getIntegerType(width);
  Value exponent = arith::ConstantOp::create(
      b, b.getIntegerAttr(type,
                          width == 64 ? 0x7ff0'0000'0000'0000 : 0x7f80'0000));
  Value bits = arith::AndIOp::create(b, bitsOf(b, value), exponent);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bits, exponent);
}

/// Lets it pass, too, if the two are no more apart than `bound`.
void passIfNear(Builder &b, ir::AssertOp assertion, Value bound) {
  Value finite = arith::AndIOp::create(b, isFinite(b, foundOf(assertion)),
                                       isFinite(b, heldOf(assertion)));
  Value distance = math::AbsFOp::create(
      b, arith::SubFOp::create(b, foundOf(assertion), heldOf(assertion)));
  Value near =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, distance, bound);
  assertion.getConditionMutable().assign(arith::OrIOp::create(
      b, assertion.getCondition(), arith::AndIOp::create(b, near, finite)));
}

} // namespace

ir::AssertOp require(Builder &b, Value condition, StringRef text, Value array,
                     ValueRange indices, ArrayRef<Value> values) {
  SmallVector<Value> all = placeIn(b, array, indices);
  llvm::append_range(all, values);
  return ir::AssertOp::create(b, condition, text, all, /*refuses=*/true);
}

static ir::LoadOp loadHeld(Builder &b, Type type, Value array,
                           ValueRange indices) {
  auto held = ir::LoadOp::create(b, type, array, indices);
  held->setAttr(keptAttr, b.getUnitAttr());
  return held;
}

void refuseOther(Builder &b, Value found, Value array, ValueRange indices) {
  Value held = loadHeld(b, found.getType(), array, indices);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  require(b, no, otherValueText(found.getType()), array, indices,
          {held, found});
}

ir::AssertOp requireHeld(Builder &b, Value found, Value array,
                         ValueRange indices) {
  Value held = loadHeld(b, found.getType(), array, indices);
  Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                     bitsOf(b, found), bitsOf(b, held));
  return require(b, same, otherValueText(found.getType()), array, indices,
                 {held, found});
}

Value foundOf(ir::AssertOp assertion) { return assertion.getValues()[3]; }

void tolerateRounding(ir::AssertOp assertion, Tolerance tolerance) {
  if (!comparesFloats(assertion))
    return;
  Builder b(assertion.getLoc(), assertion);
  Value held = heldOf(assertion);
  Value relative = constantLike(b, held, std::ldexp(1, tolerance.f64),
                                std::ldexp(1, tolerance.f32));
  passIfNear(b, assertion,
             arith::MulFOp::create(b, math::AbsFOp::create(b, held), relative));
}

/// An error that is out of range bounds nothing.
void tolerateError(ir::AssertOp assertion, Value error) {
  Builder b(assertion.getLoc(), assertion);
  Value isKnown = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, error,
                                        constantLike(b, error, 1e300, 1e36));
  Value known =
      arith::SelectOp::create(b, isKnown, error, constantLike(b, error, 0, 0));
  Value unit = constantLike(b, error, std::ldexp(1, -51), std::ldexp(1, -22));
  passIfNear(b, assertion, arith::MulFOp::create(b, known, unit));
}

void goOnWithMemory(ir::AssertOp assertion) {
  if (!comparesFloats(assertion))
    return;
  foundOf(assertion).replaceUsesWithIf(heldOf(assertion), [&](OpOperand &use) {
    Operation *user =
        assertion->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return user && assertion->isBeforeInBlock(user);
  });
}

} // namespace costate::autodiff
