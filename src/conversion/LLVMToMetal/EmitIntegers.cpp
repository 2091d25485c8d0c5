#include "conversion/LLVMToMetal/Emission.h"

#include "conversion/LLVMToSPIRV/AddressSpaces.h"

using namespace mlir;

namespace costate::conversion {
namespace {

//===-- Arithmetic --------------------------------------------------------===//

/// Of which operands the sign counts.
enum class Signed { None, First, Both };

/// The operators of words and of bools; null: there is none.
struct Rule {
  const char *ofWords, *ofBools;
  Signed operands;
};

LogicalResult arithmetic(Emission &e, Operation *op, const Rule &rule) {
  Type type = op->getResult(0).getType();
  unsigned bits = bitsOf(type);
  const char *symbol = bits == 1 ? rule.ofBools : rule.ofWords;
  if (!symbol)
    return e.none(op);
  std::string x = e.operand(op, 0), y = e.operand(op, 1);
  if (bits == 1)
    return e.set(op, x + " " + symbol + " " + y);
  if (rule.operands != Signed::None)
    x = withSign(x, bits);
  if (rule.operands == Signed::Both)
    y = withSign(y, bits);
  std::string result = x + " " + symbol + " " + y;
  if (rule.operands != Signed::None)
    result = metalType(type).str() + "(" + result + ")";
  return e.set(op, masked(result, bits));
}

template <class Op, const auto &rule> EmittedOperation integers() {
  return {Op::getOperationName(),
          [](Emission &e, Operation *op) { return arithmetic(e, op, rule); }};
}

constexpr Rule sum{"+", "!=", Signed::None},
    difference{"-", "!=", Signed::None}, product{"*", "&&", Signed::None},
    quotient{"/", nullptr, Signed::None}, rest{"%", nullptr, Signed::None},
    signedQuotient{"/", nullptr, Signed::Both},
    signedRest{"%", nullptr, Signed::Both}, both{"&", "&&", Signed::None},
    either{"|", "||", Signed::None}, other{"^", "!=", Signed::None},
    left{"<<", nullptr, Signed::None}, right{">>", nullptr, Signed::None},
    signedRight{">>", nullptr, Signed::First};

//===-- Bits --------------------------------------------------------------===//

constexpr char clz[] = "clz", ctz[] = "ctz", popcount[] = "popcount",
               reverse[] = "reverse_bits";

template <class Op, const auto &function> EmittedOperation ofBits() {
  return {Op::getOperationName(), [](Emission &e, Operation *op) {
            return e.set(op, call(function, {e.operand(op, 0)}));
          }};
}

//===-- Comparisons -------------------------------------------------------===//

struct Comparison {
  const char *symbol;
  bool isSigned;
};

Comparison comparison(LLVM::ICmpPredicate predicate) {
  using Is = LLVM::ICmpPredicate;
  switch (predicate) {
  case Is::eq:
    return {"==", false};
  case Is::ne:
    return {"!=", false};
  case Is::slt:
    return {"<", true};
  case Is::sle:
    return {"<=", true};
  case Is::sgt:
    return {">", true};
  case Is::sge:
    return {">=", true};
  case Is::ult:
    return {"<", false};
  case Is::ule:
    return {"<=", false};
  case Is::ugt:
    return {">", false};
  case Is::uge:
    return {">=", false};
  }
}

LogicalResult compare(Emission &e, LLVM::ICmpOp op) {
  unsigned bits = bitsOf(op.getLhs().getType());
  std::string x = e.operand(op, 0), y = e.operand(op, 1);
  auto [symbol, isSigned] = comparison(op.getPredicate());
  if (isSigned) {
    x = withSign(x, bits);
    y = withSign(y, bits);
  }
  return e.set(op, x + " " + symbol + " " + y);
}

} // namespace

llvm::ArrayRef<EmittedOperation> emittedIntegers() {
  static const EmittedOperation all[] = {
      integers<LLVM::AddOp, sum>(),
      integers<LLVM::SubOp, difference>(),
      integers<LLVM::MulOp, product>(),
      integers<LLVM::UDivOp, quotient>(),
      integers<LLVM::URemOp, rest>(),
      integers<LLVM::SDivOp, signedQuotient>(),
      integers<LLVM::SRemOp, signedRest>(),
      integers<LLVM::AndOp, both>(),
      integers<LLVM::OrOp, either>(),
      integers<LLVM::XOrOp, other>(),
      integers<LLVM::ShlOp, left>(),
      integers<LLVM::LShrOp, right>(),
      integers<LLVM::AShrOp, signedRight>(),
      ofBits<LLVM::CountLeadingZerosOp, clz>(),
      ofBits<LLVM::CountTrailingZerosOp, ctz>(),
      ofBits<LLVM::CtPopOp, popcount>(),
      ofBits<LLVM::BitReverseOp, reverse>(),
      emitted<LLVM::ICmpOp, compare>(),
  };
  return all;
}

} // namespace costate::conversion
