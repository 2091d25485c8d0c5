/// The scalar operations of the kernel dialect.

#include "conversion/KernelToLLVM/Patterns.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// In all lanes, if there are several.
Value number(ImplicitLocOpBuilder &builder, Type type, int64_t value) {
  Type one = getElementTypeOrSelf(type);
  return constantOf(builder, type, builder.getIntegerAttr(one, value));
}

Type withElements(Type like, Type element) {
  auto lanes = dyn_cast<VectorType>(like);
  return lanes ? Type(lanes.clone(element)) : element;
}

unsigned widthOf(Type type) {
  return getElementTypeOrSelf(type).getIntOrFloatBitWidth();
}

Value equals(ImplicitLocOpBuilder &builder, Value value, int64_t to) {
  Value other = number(builder, value.getType(), to);
  return LLVM::ICmpOp::create(builder, LLVM::ICmpPredicate::eq, value, other);
}

/// A quotient or remainder whose divisor is never 0 or -1.
template <class Signed, class Unsigned>
Value divide(ImplicitLocOpBuilder &builder, Value a, Value b, bool isUnsigned) {
  if (isUnsigned)
    return Unsigned::create(builder, a, b);
  return Signed::create(builder, a, b);
}

/// Base of the patterns below: `emit` returns what replaces the operation.
template <class Pattern, class Op>
struct ScalarPattern : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    rewriter.replaceOp(op, Pattern::emit(builder, op, adaptor));
    return success();
  }
};

struct DivPattern : ScalarPattern<DivPattern, ir::DivOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::DivOp op,
                    ir::DivOp::Adaptor operands) {
    Value lhs = operands.getLhs(), rhs = operands.getRhs();
    Value zero = number(b, op.getType(), 0), one = number(b, op.getType(), 1);
    Value isZero = equals(b, rhs, 0);
    Value safe = LLVM::SelectOp::create(b, isZero, one, rhs);
    Value isMinusOne;
    if (!op.getIsUnsigned()) {
      isMinusOne = equals(b, rhs, -1);
      safe = LLVM::SelectOp::create(b, isMinusOne, one, safe);
    }
    Value quotient =
        divide<LLVM::SDivOp, LLVM::UDivOp>(b, lhs, safe, op.getIsUnsigned());
    if (isMinusOne) {
      Value negated = LLVM::SubOp::create(b, zero, lhs);
      quotient = LLVM::SelectOp::create(b, isMinusOne, negated, quotient);
    }
    return LLVM::SelectOp::create(b, isZero, zero, quotient);
  }
};

struct RemPattern : ScalarPattern<RemPattern, ir::RemOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::RemOp op,
                    ir::RemOp::Adaptor operands) {
    // Divisors 0 and -1 both give 0, and so does 1.
    Value one = number(b, op.getType(), 1);
    Value safe = operands.getRhs();
    safe = LLVM::SelectOp::create(b, equals(b, safe, 0), one, safe);
    if (!op.getIsUnsigned())
      safe = LLVM::SelectOp::create(b, equals(b, safe, -1), one, safe);
    return divide<LLVM::SRemOp, LLVM::URemOp>(b, operands.getLhs(), safe,
                                              op.getIsUnsigned());
  }
};

Value maskedCount(ImplicitLocOpBuilder &builder, Value count) {
  Type type = count.getType();
  Value mask = number(builder, type, widthOf(type) - 1);
  return LLVM::AndOp::create(builder, count, mask);
}

struct ShlPattern : ScalarPattern<ShlPattern, ir::ShlOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::ShlOp,
                    ir::ShlOp::Adaptor operands) {
    Value count = maskedCount(b, operands.getRhs());
    return LLVM::ShlOp::create(b, operands.getLhs(), count);
  }
};

struct ShrPattern : ScalarPattern<ShrPattern, ir::ShrOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::ShrOp op,
                    ir::ShrOp::Adaptor operands) {
    Value count = maskedCount(b, operands.getRhs());
    if (op.getIsUnsigned())
      return LLVM::LShrOp::create(b, operands.getLhs(), count);
    return LLVM::AShrOp::create(b, operands.getLhs(), count);
  }
};

struct ToIntPattern : ScalarPattern<ToIntPattern, ir::ToIntOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::ToIntOp op,
                    ir::ToIntOp::Adaptor operands) {
    StringRef name = op.getIsUnsigned() ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
    return LLVM::CallIntrinsicOp::create(b, op.getType(), b.getStringAttr(name),
                                         ValueRange(operands.getValue()))
        .getResult(0);
  }
};

struct NarrowPattern : ScalarPattern<NarrowPattern, ir::NarrowOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::NarrowOp op,
                    ir::NarrowOp::Adaptor operands) {
    Value value = operands.getValue();
    if (getElementTypeOrSelf(value.getType()).isF64())
      value = toOdd(b, value);
    return widened(b, op.getElement(), narrowed(b, op.getElement(), value));
  }

  /// An f64 rounded to an f32 so that rounding it once more does no harm: if it
  /// is not exact, its last bit is 1 (Boldo and Melquiond, 2008).
  static Value toOdd(ImplicitLocOpBuilder &b, Value x) {
    Type f32 = withElements(x.getType(), b.getF32Type());
    Type i32 = withElements(x.getType(), b.getI32Type());
    Value nearest = LLVM::FPTruncOp::create(b, f32, x);
    Value back = LLVM::FPExtOp::create(b, x.getType(), nearest);
    Value bits = LLVM::BitcastOp::create(b, i32, nearest);
    Value isInexact =
        LLVM::FCmpOp::create(b, LLVM::FCmpPredicate::one, back, x);
    Value parity = LLVM::AndOp::create(b, bits, number(b, i32, 1));
    Value isEven = equals(b, parity, 0);
    Value isAbove = LLVM::FCmpOp::create(b, LLVM::FCmpPredicate::ogt,
                                         magnitude(b, back), magnitude(b, x));
    Value step = LLVM::SelectOp::create(b, isAbove, number(b, i32, -1),
                                        number(b, i32, 1));
    Value odd = LLVM::AddOp::create(b, bits, step);
    Value moves = LLVM::AndOp::create(b, isInexact, isEven);
    Value chosen = LLVM::SelectOp::create(b, moves, odd, bits);
    return LLVM::BitcastOp::create(b, f32, chosen);
  }

  static Value magnitude(ImplicitLocOpBuilder &b, Value x) {
    return LLVM::FAbsOp::create(b, x);
  }
};

struct PhiloxPattern : ScalarPattern<PhiloxPattern, ir::PhiloxOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::PhiloxOp,
                    ir::PhiloxOp::Adaptor operands) {
    return philox(b, operands.getKey(), operands.getStream(),
                  operands.getCounter());
  }
};

struct TripCountPattern : ScalarPattern<TripCountPattern, ir::TripCountOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::TripCountOp op,
                    ir::TripCountOp::Adaptor operands) {
    Value lo = operands.getLo(), hi = operands.getHi(),
          step = operands.getStep();
    Value zero = number(b, step.getType(), 0),
          one = number(b, step.getType(), 1);
    auto greater = LLVM::ICmpPredicate::sgt;
    Value up = LLVM::ICmpOp::create(b, greater, step, zero);
    Value from = LLVM::SelectOp::create(b, up, lo, hi);
    Value to = LLVM::SelectOp::create(b, up, hi, lo);
    Value reversed = LLVM::SubOp::create(b, zero, step);
    Value stride = LLVM::SelectOp::create(b, up, step, reversed);
    Value some = LLVM::ICmpOp::create(b, greater, to, from);
    Value distance = LLVM::SubOp::create(b, to, from);
    Value last = LLVM::SubOp::create(b, distance, one);
    Value iterations = LLVM::UDivOp::create(b, last, stride);
    Value count = LLVM::AddOp::create(b, iterations, one);
    return LLVM::SelectOp::create(b, some, count, zero);
  }
};

/// Of an adjoint of 0 either a zero comes out, for processors that mask values
/// where a condition does not hold, or the adjoint, for those that can leave an
/// operation out.
template <bool keepsZero>
struct StrongMulPattern
    : ScalarPattern<StrongMulPattern<keepsZero>, ir::StrongMulOp> {
  using ScalarPattern<StrongMulPattern, ir::StrongMulOp>::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &b, ir::StrongMulOp op,
                    ir::StrongMulOp::Adaptor operands) {
    using P = LLVM::FCmpPredicate;
    Value g = operands.getG(), f = operands.getF();
    Value zero =
        constantOf(b, op.getType(),
                   b.getFloatAttr(getElementTypeOrSelf(op.getType()), 0.0));
    Value product = LLVM::FMulOp::create(b, g, f);
    if (op.getSymmetric()) {
      Value any =
          LLVM::OrOp::create(b, LLVM::FCmpOp::create(b, P::oeq, g, zero),
                             LLVM::FCmpOp::create(b, P::oeq, f, zero));
      return LLVM::SelectOp::create(b, any, zero, product);
    }
    if (keepsZero) {
      Value isZero = LLVM::FCmpOp::create(b, P::oeq, g, zero);
      return LLVM::SelectOp::create(b, isZero, g, product);
    }
    Value counts = LLVM::FCmpOp::create(b, P::une, g, zero);
    return LLVM::SelectOp::create(b, counts, product, zero);
  }
};

struct StopGradientPattern
    : ScalarPattern<StopGradientPattern, ir::StopGradientOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &, ir::StopGradientOp,
                    ir::StopGradientOp::Adaptor operands) {
    return operands.getValue();
  }
};

struct ByOrderPattern : ScalarPattern<ByOrderPattern, ir::ByOrderOp> {
  using ScalarPattern::ScalarPattern;
  static Value emit(ImplicitLocOpBuilder &, ir::ByOrderOp,
                    ir::ByOrderOp::Adaptor operands) {
    return operands.getValues().front();
  }
};

} // namespace

/// The words of Philox4x32, each in 64 bits.
namespace {
namespace words {
Value low(ImplicitLocOpBuilder &b, Value x) {
  Value mask = number(b, x.getType(), 0xffffffff);
  return LLVM::AndOp::create(b, x, mask);
}
Value high(ImplicitLocOpBuilder &b, Value x) {
  Value count = number(b, x.getType(), 32);
  return LLVM::LShrOp::create(b, x, count);
}
Value times(ImplicitLocOpBuilder &b, Value x, int64_t factor) {
  Value by = number(b, x.getType(), factor);
  return LLVM::MulOp::create(b, x, by);
}
Value mixed(ImplicitLocOpBuilder &b, Value x, Value y, Value z) {
  Value xy = LLVM::XOrOp::create(b, x, y);
  return LLVM::XOrOp::create(b, xy, z);
}
Value next(ImplicitLocOpBuilder &b, Value key, int64_t step) {
  Value by = number(b, key.getType(), step);
  Value sum = LLVM::AddOp::create(b, key, by);
  return low(b, sum);
}

} // namespace words
} // namespace

Value philox(ImplicitLocOpBuilder &b, Value key, Value stream, Value counter) {
  using namespace words;
  Value x[] = {low(b, counter), high(b, counter), low(b, stream),
               high(b, stream)};
  Value k[] = {low(b, key), high(b, key)};
  for (int round = 0; round < 10; ++round) {
    Value p = times(b, x[0], 0xD2511F53), q = times(b, x[2], 0xCD9E8D57);
    x[0] = mixed(b, high(b, q), x[1], k[0]);
    x[1] = low(b, q);
    x[2] = mixed(b, high(b, p), x[3], k[1]);
    x[3] = low(b, p);
    k[0] = next(b, k[0], 0x9E3779B9);
    k[1] = next(b, k[1], 0xBB67AE85);
  }
  Value count = number(b, key.getType(), 32);
  Value upper = LLVM::ShlOp::create(b, x[1], count);
  return LLVM::OrOp::create(b, x[0], upper);
}

void populateScalarPatterns(const LLVMTypeConverter &converter,
                            RewritePatternSet &patterns, bool predicates) {
  patterns.add<DivPattern, RemPattern, ShlPattern, ShrPattern, ToIntPattern,
               NarrowPattern, PhiloxPattern, TripCountPattern,
               StopGradientPattern, ByOrderPattern>(converter);
  if (predicates)
    patterns.add<StrongMulPattern<true>>(converter);
  else
    patterns.add<StrongMulPattern<false>>(converter);
}

} // namespace costate::conversion
