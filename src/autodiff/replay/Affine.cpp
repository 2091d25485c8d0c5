#include "autodiff/replay/Affine.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {

static int64_t wrappingMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}

static int64_t wrappingAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}

Affine Affine::ofSymbol(Value symbol) {
  Affine form;
  form.terms[symbol] = 1;
  return form;
}

Affine &Affine::add(const Affine &other, int64_t scale) {
  constant = wrappingAdd(constant, wrappingMul(other.constant, scale));
  for (auto [symbol, coefficient] : other.terms) {
    int64_t &mine = terms[symbol];
    mine = wrappingAdd(mine, wrappingMul(coefficient, scale));
    if (mine == 0)
      terms.erase(symbol);
  }
  return *this;
}

/// `product` = a constant times something: the affine form, or nothing.
static std::optional<Affine> ofProduct(arith::MulIOp product) {
  Affine a = Affine::of(product.getLhs()), b = Affine::of(product.getRhs());
  if (!a.isConstant())
    std::swap(a, b);
  if (!a.isConstant())
    return std::nullopt;
  return b * a.constant;
}

/// A sign-extended `symbol + constant`. Where the i32 sum wraps, the index is
/// outside of every array that has less than 2^31 - 1 elements there, so the
/// form holds for all accesses that are allowed.
static Affine ofExtension(arith::ExtSIOp extension) {
  Value value = extension.getIn();
  APInt constant(value.getType().getIntOrFloatBitWidth(), 0), step;
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::AddIOp, arith::SubIOp>(op) ||
        !matchPattern(op->getOperand(1), m_ConstantInt(&step)))
      break;
    constant += isa<arith::AddIOp>(op) ? step : -step;
    value = op->getOperand(0);
  }
  bool isConstant = matchPattern(value, m_ConstantInt(&step));
  if (isConstant)
    constant += step;
  Affine form = constant.getSExtValue();
  if (isConstant)
    return form;
  auto narrow = value.getDefiningOp<arith::TruncIOp>();
  bool isExact = narrow && narrow.getIn().getType().isInteger(64) &&
                 bitEnumContainsAny(narrow.getOverflowFlags(),
                                    arith::IntegerOverflowFlags::nsw);
  return form +
         (isExact ? Affine::of(narrow.getIn()) : Affine::ofSymbol(value));
}

/// Width matters: a product in i32 wraps where the i64 form would not, so only
/// i64 arithmetic is looked through.
Affine Affine::of(Value index) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  Operation *op = index.getDefiningOp();
  if (index.getType().isInteger(64)) {
    if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
      return of(op->getOperand(0))
          .add(of(op->getOperand(1)), isa<arith::AddIOp>(op) ? 1 : -1);
    if (auto product = dyn_cast_or_null<arith::MulIOp>(op))
      if (auto scaled = ofProduct(product))
        return *scaled;
    if (auto extension = dyn_cast_or_null<arith::ExtSIOp>(op))
      return ofExtension(extension);
  }
  return ofSymbol(index);
}

//===-- Modulo a power of 2 -----------------------------------------------===//

static Affine reduced(const Affine &form, int64_t modulus) {
  Affine rest = form.constant & (modulus - 1);
  for (auto [symbol, coefficient] : form.terms)
    if (int64_t its = coefficient & (modulus - 1))
      rest.terms[symbol] = its;
  return rest;
}

static Affine residueOf(Value value, int64_t modulus) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return reduced(constant.getSExtValue(), modulus);
  Operation *op = value.getDefiningOp();
  auto of = [&](unsigned k) { return residueOf(op->getOperand(k), modulus); };
  auto isWide = [](Value one) {
    return one.getType().getIntOrFloatBitWidth() >= 32;
  };
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return reduced(of(0).add(of(1), isa<arith::AddIOp>(op) ? 1 : -1), modulus);
  if (isa_and_nonnull<arith::MulIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&constant)))
    return reduced(of(0) * (constant.getSExtValue() & (modulus - 1)), modulus);
  if (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op) &&
      isWide(op->getOperand(0)) && isWide(value))
    return of(0);
  if (isa_and_nonnull<ir::RemOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
      !constant.isZero() && (constant.getSExtValue() & (modulus - 1)) == 0)
    return of(0);
  if (isa_and_nonnull<arith::SelectOp>(op)) {
    Affine yes = of(1), no = of(2);
    if (isSame(yes, no))
      return yes;
  }
  return Affine::ofSymbol(value);
}

bool differInParity(Value a, Value b, llvm::function_ref<bool(Value)> isFixed) {
  return llvm::any_of(std::array<int64_t, 3>{2, 4, 8}, [&](int64_t modulus) {
    Affine x = residueOf(a, modulus), y = residueOf(b, modulus);
    auto fixed = [&](auto &term) { return isFixed(term.first); };
    Affine difference = reduced(x - y, modulus);
    return llvm::all_of(x.terms, fixed) && llvm::all_of(y.terms, fixed) &&
           difference.isConstant() && difference.constant != 0;
  });
}

/// Nothing that this is a multiple of wraps around within an array.
static bool isSmall(int64_t number) { return llvm::isInt<32>(number); }

bool isAbove(const Affine &high, const Affine &low,
             llvm::function_ref<bool(Value)> varies,
             llvm::function_ref<bool(Value)> isCount) {
  if (!isSmall(high.constant) || !isSmall(low.constant) ||
      high.constant <= low.constant)
    return false;
  auto grows = [&](const Affine &one, const Affine &other, int sign) {
    return llvm::all_of(one.terms, [&](auto &term) {
      auto [symbol, coefficient] = term;
      int64_t its = varies(symbol) ? 0 : other.coefficient(symbol);
      if (!isSmall(coefficient) || !isSmall(its))
        return false;
      int64_t net = sign * (coefficient - its);
      return net == 0 || (net > 0 && isCount(symbol));
    });
  };
  return grows(high, low, 1) && grows(low, high, -1);
}

std::optional<int64_t> constantDifference(const Affine &a, const Affine &b) {
  Affine difference = a - b;
  if (!difference.isConstant())
    return std::nullopt;
  return difference.constant;
}

bool isSame(const Affine &a, const Affine &b) {
  return constantDifference(a, b) == 0;
}

} // namespace costate::autodiff
