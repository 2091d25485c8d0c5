/// Operations on integers and floats.

#include "base/HostFunctions.h"
#include "base/Philox.h"
#include "interpreter/Elements.h"
#include "interpreter/Operations.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;

namespace costate::interpreter {
namespace {

//===-- Integers ----------------------------------------------------------===//

uint64_t maskOf(unsigned width) { return ~uint64_t(0) >> (64 - width); }

/// An operand: its bits, zero extended.
struct Int {
  uint64_t bits;
  unsigned width;

  int64_t value() const { // with its sign
    unsigned unused = 64 - width;
    return static_cast<int64_t>(bits << unused) >> unused;
  }
  uint64_t mostNegative() const { return uint64_t(1) << (width - 1); }
  unsigned count() const { return bits & (width - 1); } // of a total shift
};

using Defined = std::optional<uint64_t>; // nothing: no defined result

/// `F` computes the low bits of the result from one or two operands.
template <auto F> bool integer(Machine &m, const Instruction &op) {
  Defined bits;
  Int a{m.operand(op, 0), op.operandWidth};
  if constexpr (std::is_invocable_v<decltype(F), Int>)
    bits = F(a);
  else
    bits = F(a, Int{m.operand(op, 1), op.operandWidth});
  if (!bits)
    return m.fail(op, ErrorCode::KernelFailed,
                  "`" + m.code.places[op.place].operation +
                      "` has no defined result for its operands");
  m.put(op, *bits & maskOf(op.resultWidth));
  return true;
}

constexpr auto divS = [](Int a, Int b) -> Defined {
  if (b.bits == 0 || (a.bits == a.mostNegative() && b.value() == -1))
    return {};
  return a.value() / b.value();
};
constexpr auto remS = [](Int a, Int b) -> Defined {
  if (b.bits == 0)
    return {};
  return b.value() == -1 ? 0 : a.value() % b.value();
};
constexpr auto floorDivS = [](Int a, Int b) -> Defined {
  Defined quotient = divS(a, b), rest = remS(a, b);
  if (!quotient || !rest)
    return {};
  bool below = *rest != 0 && (a.value() < 0) != (b.value() < 0);
  return *quotient - below;
};
constexpr auto ceilDivS = [](Int a, Int b) -> Defined {
  Defined quotient = divS(a, b), rest = remS(a, b);
  if (!quotient || !rest)
    return {};
  bool above = *rest != 0 && (a.value() < 0) == (b.value() < 0);
  return *quotient + above;
};
constexpr auto divU = [](Int a, Int b) -> Defined {
  return b.bits == 0 ? Defined() : a.bits / b.bits;
};
constexpr auto remU = [](Int a, Int b) -> Defined {
  return b.bits == 0 ? Defined() : a.bits % b.bits;
};
constexpr auto ceilDivU = [](Int a, Int b) -> Defined {
  if (b.bits == 0)
    return {};
  return a.bits / b.bits + (a.bits % b.bits != 0);
};

/// Division of the kernel dialect: 0 for a divisor of 0, MIN / -1 = MIN.
constexpr auto totalDivS = [](Int a, Int b) -> uint64_t {
  if (b.value() == -1)
    return -a.bits;
  return b.bits == 0 ? 0 : a.value() / b.value();
};
constexpr auto totalDivU = [](Int a, Int b) -> uint64_t {
  return b.bits == 0 ? 0 : a.bits / b.bits;
};
constexpr auto totalRemS = [](Int a, Int b) -> uint64_t {
  return b.bits == 0 || b.value() == -1 ? 0 : a.value() % b.value();
};
constexpr auto totalRemU = [](Int a, Int b) -> uint64_t {
  return b.bits == 0 ? 0 : a.bits % b.bits;
};

template <auto Shift>
constexpr auto defined = [](Int a, Int b) -> Defined {
  return b.bits < a.width ? Defined(Shift(a, b)) : Defined();
};
constexpr auto shl = [](Int a, Int b) -> uint64_t {
  return a.bits << b.count();
};
constexpr auto shrU = [](Int a, Int b) -> uint64_t {
  return a.bits >> b.count();
};
constexpr auto shrS = [](Int a, Int b) -> uint64_t {
  return a.value() >> b.count();
};

bool random(Machine &m, const Instruction &op) {
  m.slots[op.result] =
      philox(m.operand(op, 0), m.operand(op, 1), m.operand(op, 2));
  return true;
}

template <auto OfSigned, auto OfUnsigned, class Op>
Handler bySign(Operation *op, Instruction &, Code &) {
  return cast<Op>(op).getIsUnsigned() ? integer<OfUnsigned> : integer<OfSigned>;
}

/// Low and high half of a product or sum.
template <auto F> bool twoHalves(Machine &m, const Instruction &op) {
  Int a{m.operand(op, 0), op.operandWidth},
      b{m.operand(op, 1), op.operandWidth};
  auto wide = F(a, b);
  m.slots[op.result] = static_cast<uint64_t>(wide) & maskOf(op.resultWidth);
  m.slots[op.result + 1] =
      static_cast<uint64_t>(wide >> a.width) & maskOf(op.resultWidth);
  return true;
}

bool addExtended(Machine &m, const Instruction &op) {
  uint64_t a = m.operand(op, 0), mask = maskOf(op.operandWidth);
  uint64_t sum = (a + m.operand(op, 1)) & mask;
  m.slots[op.result] = sum;
  m.slots[op.result + 1] = sum < a;
  return true;
}

//===-- Comparisons -------------------------------------------------------===//

/// A predicate is the set of relations for which it holds.
enum Relation : uint32_t { Equal = 1, Greater = 2, Less = 4, Unordered = 8 };

template <class T> uint32_t relate(T a, T b) {
  return a == b ? Equal : a > b ? Greater : a < b ? Less : Unordered;
}

uint32_t relationsOf(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return Equal;
  case P::ne:
    return Greater | Less;
  case P::slt:
  case P::ult:
    return Less;
  case P::sle:
  case P::ule:
    return Less | Equal;
  case P::sgt:
  case P::ugt:
    return Greater;
  case P::sge:
  case P::uge:
    return Greater | Equal;
  }
  llvm_unreachable("unknown predicate");
}

uint32_t relationsOf(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return 0;
  case P::OEQ:
    return Equal;
  case P::OGT:
    return Greater;
  case P::OGE:
    return Greater | Equal;
  case P::OLT:
    return Less;
  case P::OLE:
    return Less | Equal;
  case P::ONE:
    return Less | Greater;
  case P::ORD:
    return Less | Greater | Equal;
  case P::UEQ:
    return Unordered | Equal;
  case P::UGT:
    return Unordered | Greater;
  case P::UGE:
    return Unordered | Greater | Equal;
  case P::ULT:
    return Unordered | Less;
  case P::ULE:
    return Unordered | Less | Equal;
  case P::UNE:
    return Unordered | Less | Greater;
  case P::UNO:
    return Unordered;
  case P::AlwaysTrue:
    return Unordered | Less | Greater | Equal;
  }
  llvm_unreachable("unknown predicate");
}

bool compareSigned(Machine &m, const Instruction &op) {
  Int a{m.operand(op, 0), op.operandWidth},
      b{m.operand(op, 1), op.operandWidth};
  m.put(op, uint64_t((relate(a.value(), b.value()) & op.detail) != 0));
  return true;
}

bool compareUnsigned(Machine &m, const Instruction &op) {
  uint32_t relation = relate(m.operand(op, 0), m.operand(op, 1));
  m.put(op, uint64_t((relation & op.detail) != 0));
  return true;
}

template <class T> bool compareFloats(Machine &m, const Instruction &op) {
  uint32_t relation = relate(m.floating<T>(op, 0), m.floating<T>(op, 1));
  m.put(op, uint64_t((relation & op.detail) != 0));
  return true;
}

Handler selectCmpI(Operation *op, Instruction &instruction, Code &) {
  arith::CmpIPredicate predicate = cast<arith::CmpIOp>(op).getPredicate();
  instruction.detail = relationsOf(predicate);
  return predicate >= arith::CmpIPredicate::ult ? compareUnsigned
                                                : compareSigned;
}

Handler selectCmpF(Operation *op, Instruction &instruction, Code &) {
  instruction.detail = relationsOf(cast<arith::CmpFOp>(op).getPredicate());
  return op->getOperand(0).getType().isF32() ? compareFloats<float>
                                             : compareFloats<double>;
}

//===-- Floats ------------------------------------------------------------===//

/// `F` computes in the type of its operands; a truth value is a bool.
template <auto F, class T> bool floating(Machine &m, const Instruction &op) {
  T a = m.floating<T>(op, 0);
  if constexpr (std::is_invocable_v<decltype(F), T>)
    m.put(op, F(a));
  else if constexpr (std::is_invocable_v<decltype(F), T, T>)
    m.put(op, F(a, m.floating<T>(op, 1)));
  else
    m.put(op, F(a, m.floating<T>(op, 1), m.floating<T>(op, 2)));
  return true;
}

template <auto F> Handler floats(Operation *op, Instruction &, Code &) {
  return op->getOperand(0).getType().isF32() ? floating<F, float>
                                             : floating<F, double>;
}

/// An addition, whose operands are noted.
template <auto F, class T> bool adding(Machine &m, const Instruction &op) {
  m.noteAddend(m.floating<T>(op, 0));
  m.noteAddend(m.floating<T>(op, 1));
  return floating<F, T>(m, op);
}

template <auto F> Handler additions(Operation *op, Instruction &, Code &) {
  return op->getOperand(0).getType().isF32() ? adding<F, float>
                                             : adding<F, double>;
}

template <class T> bool fused(Machine &m, const Instruction &op) {
  T a = m.floating<T>(op, 0), b = m.floating<T>(op, 1),
    c = m.floating<T>(op, 2);
  m.noteAddend(a * b);
  m.noteAddend(c);
  m.put(op, std::fma(a, b, c));
  return true;
}

Handler selectFma(Operation *op, Instruction &, Code &) {
  return op->getOperand(0).getType().isF32() ? fused<float> : fused<double>;
}

/// The operand that is a number, if one is not; of two zeros the first.
constexpr auto minNum = [](auto a, auto b) {
  return std::isnan(a) ? b : b < a ? b : a;
};
constexpr auto maxNum = [](auto a, auto b) {
  return std::isnan(a) ? b : b > a ? b : a;
};
/// NaN, if one operand is; -0 is below 0.
constexpr auto minimum = [](auto a, auto b) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  return a < b || (a == b && std::signbit(a)) ? a : b;
};
constexpr auto maximum = [](auto a, auto b) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
};

constexpr auto strongMul = [](auto g, auto f) { return g == 0 ? 0 : g * f; };
constexpr auto symmetricMul = [](auto g, auto f) {
  return g == 0 || f == 0 ? 0 : g * f;
};

template <class T> bool sinCos(Machine &m, const Instruction &op) {
  T angle = m.floating<T>(op, 0);
  m.slots[op.result] = Machine::asBits(std::sin(angle));
  m.slots[op.result + 1] = Machine::asBits(std::cos(angle));
  return true;
}

Handler selectSinCos(Operation *op, Instruction &, Code &) {
  return op->getOperand(0).getType().isF32() ? sinCos<float> : sinCos<double>;
}

template <class T> bool call1(Machine &m, const Instruction &op) {
  auto function = reinterpret_cast<T (*)(T)>(op.function);
  m.put(op, function(m.floating<T>(op, 0)));
  return true;
}

template <class T> bool call2(Machine &m, const Instruction &op) {
  auto function = reinterpret_cast<T (*)(T, T)>(op.function);
  m.put(op, function(m.floating<T>(op, 0), m.floating<T>(op, 1)));
  return true;
}

//===-- Conversions -------------------------------------------------------===//

/// The number nearest to `value` towards 0; out of range the nearest number.
template <class T>
uint64_t saturated(T value, unsigned width, bool isUnsigned) {
  if (std::isnan(value))
    return 0;
  T above = std::ldexp(T(1), isUnsigned ? width : width - 1); // not a number
  if (value >= above)
    return maskOf(isUnsigned ? width : width - 1);
  if (isUnsigned)
    return value > 0 ? static_cast<uint64_t>(value) : 0;
  if (value < -above)
    return uint64_t(1) << (width - 1);
  return static_cast<int64_t>(value);
}

template <class T, bool isUnsigned>
bool toInt(Machine &m, const Instruction &op) {
  uint64_t bits = saturated(m.floating<T>(op, 0), op.resultWidth, isUnsigned);
  m.put(op, bits & maskOf(op.resultWidth));
  return true;
}

Handler selectToInt(Operation *op, Instruction &, Code &) {
  bool isF32 = op->getOperand(0).getType().isF32();
  if (cast<ir::ToIntOp>(op).getIsUnsigned())
    return isF32 ? toInt<float, true> : toInt<double, true>;
  return isF32 ? toInt<float, false> : toInt<double, false>;
}

/// arith.fptosi and arith.fptoui: not defined where `toInt` saturates.
template <class T, bool isUnsigned>
bool toDefinedInt(Machine &m, const Instruction &op) {
  T value = std::trunc(m.floating<T>(op, 0));
  T above = std::ldexp(T(1), isUnsigned ? op.resultWidth : op.resultWidth - 1);
  if (value < above && value >= (isUnsigned ? 0 : -above))
    return toInt<T, isUnsigned>(m, op);
  return m.fail(op, ErrorCode::KernelFailed,
                "`" + m.code.places[op.place].operation +
                    "` has no defined result for its operand");
}

template <bool isUnsigned>
Handler selectDefinedInt(Operation *op, Instruction &, Code &) {
  return op->getOperand(0).getType().isF32() ? toDefinedInt<float, isUnsigned>
                                             : toDefinedInt<double, isUnsigned>;
}

template <class T, bool isUnsigned>
bool toFloat(Machine &m, const Instruction &op) {
  Int from{m.operand(op, 0), op.operandWidth};
  m.put(op,
        isUnsigned ? static_cast<T>(from.bits) : static_cast<T>(from.value()));
  return true;
}

template <bool isUnsigned>
Handler selectToFloat(Operation *op, Instruction &, Code &) {
  return op->getResult(0).getType().isF32() ? toFloat<float, isUnsigned>
                                            : toFloat<double, isUnsigned>;
}

/// To a number of type T.
template <class T, class From> bool narrow(Machine &m, const Instruction &op) {
  if constexpr (std::is_integral_v<T>)
    m.put(op, slotOf(elementOf<T>(m.operand(op, 0))));
  else
    m.put(op, slotOf(static_cast<T>(m.floating<From>(op, 0))));
  return true;
}

Handler selectNarrow(Operation *op, Instruction &, Code &) {
  bool isF64 = op->getOperand(0).getType().isF64();
  auto select = [&]<class T>() -> Handler {
    if constexpr (std::is_same_v<T, Bool>)
      return nullptr;
    else
      return isF64 ? narrow<T, double> : narrow<T, float>;
  };
  return byElement(cast<ir::NarrowOp>(op).getElement(), select);
}

bool extend(Machine &m, const Instruction &op) {
  m.put(op, static_cast<double>(m.floating<float>(op, 0)));
  return true;
}

bool truncate(Machine &m, const Instruction &op) {
  m.put(op, static_cast<float>(m.floating<double>(op, 0)));
  return true;
}

//===-- The rest ----------------------------------------------------------===//

bool copyBits(Machine &m, const Instruction &op) {
  m.put(op, m.operand(op, 0));
  return true;
}

bool choose(Machine &m, const Instruction &op) {
  m.put(op, m.operand(op, m.operand(op, 0) ? 1 : 2));
  return true;
}

bool tripCount(Machine &m, const Instruction &op) {
  int64_t lo = m.operand(op, 0), hi = m.operand(op, 1), step = m.operand(op, 2);
  std::optional<uint64_t> tripCount = tripCountOf(lo, hi, step);
  if (!tripCount)
    return m.fail(op, ErrorCode::KernelFailed, stepIsZero);
  m.put(op, *tripCount);
  return true;
}

Handler selectStrongMul(Operation *op, Instruction &instruction, Code &code) {
  if (cast<ir::StrongMulOp>(op).getSymmetric())
    return floats<symmetricMul>(op, instruction, code);
  return floats<strongMul>(op, instruction, code);
}

} // namespace

std::optional<uint64_t> tripCountOf(int64_t lo, int64_t hi, int64_t step) {
  if (step == 0)
    return {};
  if (step > 0 ? hi <= lo : lo <= hi)
    return 0;
  uint64_t from = lo, to = hi, stride = step;
  if (step < 0) {
    std::swap(from, to);
    stride = -stride;
  }
  return (to - from - 1) / stride + 1;
}

Handler callOf(Type type, unsigned operands) {
  if (operands == 1)
    return type.isF32() ? call1<float> : call1<double>;
  return type.isF32() ? call2<float> : call2<double>;
}

unsigned widthOf(Type type) {
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
}

llvm::ArrayRef<KnownOperation> scalarOperations() {
#define FUNCTION(name, function)                                               \
  {                                                                            \
    name, floats<[](auto x) { return function(x); }>                           \
  }
  using Wide = unsigned __int128;
  static const KnownOperation known[] = {
      {"arith.select", always<choose>},
      {"arith.bitcast", always<copyBits>},

      {"arith.addi",
       always<integer<[](Int a, Int b) { return a.bits + b.bits; }>>},
      {"arith.subi",
       always<integer<[](Int a, Int b) { return a.bits - b.bits; }>>},
      {"arith.muli",
       always<integer<[](Int a, Int b) { return a.bits * b.bits; }>>},
      {"arith.andi",
       always<integer<[](Int a, Int b) { return a.bits & b.bits; }>>},
      {"arith.ori",
       always<integer<[](Int a, Int b) { return a.bits | b.bits; }>>},
      {"arith.xori",
       always<integer<[](Int a, Int b) { return a.bits ^ b.bits; }>>},
      {"arith.minsi", always<integer<[](Int a, Int b) {
         return a.value() < b.value() ? a.bits : b.bits;
       }>>},
      {"arith.maxsi", always<integer<[](Int a, Int b) {
         return a.value() > b.value() ? a.bits : b.bits;
       }>>},
      {"arith.minui",
       always<integer<[](Int a, Int b) { return std::min(a.bits, b.bits); }>>},
      {"arith.maxui",
       always<integer<[](Int a, Int b) { return std::max(a.bits, b.bits); }>>},
      {"arith.divsi", always<integer<divS>>},
      {"arith.divui", always<integer<divU>>},
      {"arith.remsi", always<integer<remS>>},
      {"arith.remui", always<integer<remU>>},
      {"arith.floordivsi", always<integer<floorDivS>>},
      {"arith.ceildivsi", always<integer<ceilDivS>>},
      {"arith.ceildivui", always<integer<ceilDivU>>},
      {"arith.shli", always<integer<defined<shl>>>},
      {"arith.shrsi", always<integer<defined<shrS>>>},
      {"arith.shrui", always<integer<defined<shrU>>>},
      {"arith.addui_extended", always<addExtended>},
      {"arith.mulsi_extended", always<twoHalves<[](Int a, Int b) {
         return Wide(__int128(a.value()) * b.value());
       }>>},
      {"arith.mului_extended",
       always<twoHalves<[](Int a, Int b) { return Wide(a.bits) * b.bits; }>>},
      {"math.absi",
       always<integer<[](Int a) { return a.value() < 0 ? -a.bits : a.bits; }>>},
      {"math.ctpop",
       always<
           integer<[](Int a) -> uint64_t { return std::popcount(a.bits); }>>},
      {"math.ctlz", always<integer<[](Int a) -> uint64_t {
         return std::countl_zero(a.bits) - (64 - a.width);
       }>>},
      {"math.cttz", always<integer<[](Int a) -> uint64_t {
         return a.bits ? std::countr_zero(a.bits) : a.width;
       }>>},
      {"arith.cmpi", selectCmpI},

      {"costate.div", bySign<totalDivS, totalDivU, ir::DivOp>},
      {"costate.rem", bySign<totalRemS, totalRemU, ir::RemOp>},
      {"costate.shl", bySign<shl, shl, ir::ShlOp>},
      {"costate.shr", bySign<shrS, shrU, ir::ShrOp>},
      {"costate.to_int", selectToInt},
      {"costate.narrow", selectNarrow},
      {"costate.philox", always<random>},
      {"costate.trip_count", always<tripCount>},

      {"arith.extui", always<integer<[](Int a) { return a.bits; }>>},
      {"arith.extsi",
       always<integer<[](Int a) -> uint64_t { return a.value(); }>>},
      {"arith.trunci", always<integer<[](Int a) { return a.bits; }>>},
      {"arith.index_cast",
       always<integer<[](Int a) -> uint64_t { return a.value(); }>>},
      {"arith.index_castui", always<integer<[](Int a) { return a.bits; }>>},
      {"arith.sitofp", selectToFloat<false>},
      {"arith.uitofp", selectToFloat<true>},
      {"arith.fptosi", selectDefinedInt<false>},
      {"arith.fptoui", selectDefinedInt<true>},
      {"arith.extf", always<extend>},
      {"arith.truncf", always<truncate>},

      {"arith.addf", additions<[](auto a, auto b) { return a + b; }>},
      {"arith.subf", additions<[](auto a, auto b) { return a - b; }>},
      {"arith.mulf", floats<[](auto a, auto b) { return a * b; }>},
      {"arith.divf", floats<[](auto a, auto b) { return a / b; }>},
      {"arith.remf", floats<[](auto a, auto b) { return std::fmod(a, b); }>},
      {"arith.negf", floats<[](auto a) { return -a; }>},
      {"arith.minnumf", floats<minNum>},
      {"arith.maxnumf", floats<maxNum>},
      {"arith.minimumf", floats<minimum>},
      {"arith.maximumf", floats<maximum>},
      {"arith.cmpf", selectCmpF},
      {"math.fma", selectFma},
      {"math.sincos", selectSinCos},
      {"math.copysign",
       floats<[](auto a, auto b) { return std::copysign(a, b); }>},
      {"math.isfinite",
       floats<[](auto x) { return uint64_t(std::isfinite(x)); }>},
      {"math.isnan", floats<[](auto x) { return uint64_t(std::isnan(x)); }>},
      {"costate.strong_mul", selectStrongMul},
      {"costate.stop_gradient", always<copyBits>},
      {"costate.by_order", always<copyBits>},

      FUNCTION("math.absf", std::fabs),
      FUNCTION("math.floor", std::floor),
      FUNCTION("math.ceil", std::ceil),
      FUNCTION("math.round", std::round),
      FUNCTION("math.roundeven", std::nearbyint),
      FUNCTION("math.trunc", std::trunc),
      FUNCTION("math.sqrt", std::sqrt),
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, ...)                  \
  {ir::Name##Op::getOperationName(), COSTATE_FUNCTION_##operands(host::name)},
#define COSTATE_FUNCTION_1(name) floats<[](auto x) { return name(x); }>
#define COSTATE_FUNCTION_2(name)                                               \
  floats<[](auto x, auto y) { return name(x, y); }>
#include "costate/detail/operations.def"
#undef COSTATE_FUNCTION_1
#undef COSTATE_FUNCTION_2
  };
#undef FUNCTION
  return known;
}

} // namespace costate::interpreter
