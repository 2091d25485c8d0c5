#include "autodiff/replay/Rounding.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace costate::autodiff {
namespace {

/// Null is 0.
class Terms {
public:
  explicit Terms(Builder &b) : b(b) {}

  Value size(Value x) const { return math::AbsFOp::create(b, x); }

  Value scaled(Value x, double factor) const {
    if (!x || factor == 1)
      return x;
    Value by =
        arith::ConstantOp::create(b, b.getFloatAttr(x.getType(), factor));
    return arith::MulFOp::create(b, x, by);
  }

  Value times(Value x, Value error) const {
    return error ? arith::MulFOp::create(b, size(x), error).getResult()
                 : Value();
  }

  /// The largest one: sums would grow with each iteration of a loop that takes
  /// most of its errors back.
  Value largest(ArrayRef<Value> terms) const {
    Value all;
    for (Value term : terms)
      if (term)
        all = all ? arith::MaximumFOp::create(b, all, term).getResult() : term;
    return all;
  }

  Value orZero(Value error, Type type) const {
    return error ? error
                 : arith::ConstantOp::create(b, b.getFloatAttr(type, 0));
  }

private:
  Builder &b;
};

/// Rounding errors of one operation: `own` rounds once.
class Errors {
public:
  Errors(Builder &b, Operation *op, ArrayRef<Value> of)
      : b(b), op(op), of(of), t(b) {}

  Value find() {
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case<arith::AddFOp, arith::SubFOp>([&](auto) { return sum(); })
        .Case<arith::MulFOp, ir::StrongMulOp>([&](auto) { return product(); })
        .Case<math::FmaOp>([&](auto) { return fusedSum(); })
        .Case<arith::DivFOp>([&](auto) { return quotient(); })
        .Case<arith::NegFOp, math::AbsFOp>([&](auto) { return of[0]; })
        .Case<arith::SelectOp>([&](auto) { return chosen(); })
        .Case<arith::MinimumFOp, arith::MaximumFOp, arith::MinNumFOp,
              arith::MaxNumFOp>([&](auto) { return larger(); })
        .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return converted(); })
        .Case<ir::AtomicAddOp>(
            [&](auto) { return t.largest({of[0], t.size(op->getOperand(0))}); })
        .Default([&](auto) { return other(); });
  }

private:
  Value in(unsigned k) const { return op->getOperand(k); }
  Value own(double times = 1) const {
    return t.scaled(t.size(op->getResult(0)), times);
  }

  Value sum() const {
    return t.largest({of[0], of[1], t.size(in(0)), t.size(in(1))});
  }

  Value product() const {
    return t.largest({t.times(in(0), of[1]), t.times(in(1), of[0]), own()});
  }

  /// Nobody says that it is not a product and then a sum.
  Value fusedSum() const {
    Value term = arith::MulFOp::create(b, t.size(in(0)), t.size(in(1)));
    return t.largest({t.times(in(0), of[1]), t.times(in(1), of[0]), of[2],
                      t.scaled(term, 2), t.size(in(2))});
  }

  /// It may be a product with the reciprocal.
  Value quotient() const {
    Value passed =
        of[0] ? arith::DivFOp::create(b, of[0], t.size(in(1))).getResult()
              : Value();
    return t.largest({passed, own(2)});
  }

  Value chosen() const {
    if (!of[1] && !of[2])
      return {};
    Type type = op->getResult(0).getType();
    return arith::SelectOp::create(b, in(0), t.orZero(of[1], type),
                                   t.orZero(of[2], type));
  }

  Value larger() const {
    if (of[0] && of[1])
      return arith::MaximumFOp::create(b, of[0], of[1]);
    return of[0] ? of[0] : of[1];
  }

  /// In halves of other distances.
  Value converted() const {
    Type type = op->getResult(0).getType();
    auto digits = [](Type of) {
      return static_cast<int>(cast<FloatType>(of).getFPMantissaWidth());
    };
    double factor = std::ldexp(1, digits(type) - digits(in(0).getType()));
    if (isa<arith::TruncFOp>(op)) {
      Value scaled = t.scaled(of[0], factor);
      Value passed = scaled
                         ? arith::TruncFOp::create(b, type, scaled).getResult()
                         : Value();
      return t.largest({passed, own()});
    }
    return of[0] ? t.scaled(arith::ExtFOp::create(b, type, of[0]), factor)
                 : Value();
  }

  /// A few roundings of the library of the target.
  Value other() const {
    bool computes =
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<FloatType>);
    return computes && !isa<ir::NarrowOp>(op) ? own(4) : Value();
  }

  Builder &b;
  Operation *op;
  ArrayRef<Value> of;
  Terms t;
};

} // namespace

Value roundingError(Builder &b, Operation *op, ArrayRef<Value> errors) {
  return Errors(b, op, errors).find();
}

} // namespace costate::autodiff
