/// Arrays and tapes.

#include "interpreter/Elements.h"
#include "interpreter/Operations.h"
#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace costate::interpreter {

std::optional<size_t> elementOf(Machine &m, const Instruction &op,
                                uint32_t position) {
  const Array &array = m.array(op, position);
  size_t element = 0;
  for (uint32_t d = 0; d < array.extents.size(); ++d) {
    uint64_t index = m.operand(op, position + 1 + d);
    uint64_t extent = static_cast<uint64_t>(array.extents[d]);
    if (index >= extent) {
      const Parameter &parameter = m.code.parameters[m.slotOf(op, position)];
      m.fail(op, ErrorCode::OutOfRange,
             "index " + std::to_string(static_cast<int64_t>(index)) +
                 " is outside dimension " + std::to_string(d) +
                 " of argument " + std::to_string(parameter.name) +
                 ", whose extent is " + std::to_string(extent));
      return {};
    }
    element = element * extent + index;
  }
  return element;
}

namespace {

/// Where an access goes; null if it must not.
std::byte *access(Machine &m, const Instruction &op, uint32_t position,
                  Use use) {
  std::optional<size_t> element = elementOf(m, op, position);
  if (!element)
    return nullptr;
  if (op.watched && m.options.races &&
      !m.watch(op, m.slotOf(op, position), *element, use))
    return nullptr;
  const Array &array = m.array(op, position);
  return array.data + *element * array.elementSize;
}

template <class T> bool load(Machine &m, const Instruction &op) {
  const std::byte *at = access(m, op, 0, Loads);
  if (!at)
    return false;
  if constexpr (std::is_same_v<T, Bool>)
    m.put(op, uint64_t(read<uint8_t>(at) != 0));
  else
    m.put(op, slotOf(read<T>(at)));
  return true;
}

/// The detail is its use.
template <class T> bool store(Machine &m, const Instruction &op) {
  std::byte *at = access(m, op, 1, static_cast<Use>(op.detail));
  if (!at)
    return false;
  if constexpr (std::is_same_v<T, Bool>)
    write(at, static_cast<uint8_t>(m.operand(op, 0)));
  else
    write(at, elementOf<T>(m.operand(op, 0)));
  return true;
}

template <class T> T sum(T old, T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(old) +
                          static_cast<uint64_t>(value));
  else
    return static_cast<T>(Wide<T>(old) + Wide<T>(value));
}

/// What an addition to an element makes of it.
template <class T> T added(Machine &m, Use use, T old, T value) {
  T nearest = sum(old, value);
  if constexpr (std::is_integral_v<T>)
    return nearest;
  else
    return use == Updates ? m.roundings.sum(old, value, nearest) : nearest;
}

template <class T> T product(T old, T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(old) *
                          static_cast<uint64_t>(value));
  else
    return static_cast<T>(Wide<T>(old) * Wide<T>(value));
}

/// The detail is its use.
template <class T> bool add(Machine &m, const Instruction &op) {
  std::byte *at = access(m, op, 1, static_cast<Use>(op.detail));
  if (!at)
    return false;
  T value = elementOf<T>(m.operand(op, 0));
  if constexpr (!std::is_integral_v<T>)
    m.noteAddend(value);
  write(at, added(m, static_cast<Use>(op.detail), read<T>(at), value));
  return true;
}

/// Whether `a` comes before `b` as their maximum: NaN comes last, and -0 is
/// less than 0.
template <class T> bool isAbove(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b))
      return !std::isnan(a);
    if (a == b)
      return std::signbit(b) && !std::signbit(a);
  }
  return a > b;
}

template <class T, bool isMax> T extremum(T old, T value) {
  Wide<T> before = old, now = value;
  bool wins = now == now && (isMax ? isAbove(now, before)
                                   : before != before || isAbove(before, now));
  return wins ? value : old;
}

template <class T, bool isMax>
bool takeExtremum(Machine &m, const Instruction &op) {
  std::byte *at = access(m, op, 1, static_cast<Use>(op.detail));
  if (!at)
    return false;
  T value = elementOf<T>(m.operand(op, 0));
  write(at, extremum<T, isMax>(read<T>(at), value));
  return true;
}

template <class T> struct Fetch {
  template <T (*next)(Machine &, T old, T value)>
  static bool run(Machine &m, const Instruction &op) {
    std::byte *at = access(m, op, 1, static_cast<Use>(op.detail));
    if (!at)
      return false;
    T old = read<T>(at), value = elementOf<T>(m.operand(op, 0));
    if constexpr (!std::is_integral_v<T>)
      m.noteAddend(value);
    write(at, next(m, old, value));
    m.put(op, slotOf(old));
    return true;
  }

  static T second(Machine &, T, T value) { return value; }
  static T both(Machine &, T old, T value) { return old & value; }
  static T either(Machine &, T old, T value) { return old | value; }
  static T differing(Machine &, T old, T value) { return old ^ value; }
  static T summed(Machine &m, T old, T value) {
    return added(m, Updates, old, value);
  }
  static T times(Machine &, T old, T value) { return product(old, value); }
  template <bool isMax> static T extreme(Machine &, T old, T value) {
    return extremum<T, isMax>(old, value);
  }

  static Handler select(StringRef kind) {
    if constexpr (std::is_integral_v<T>) {
      if (kind == "and")
        return run<both>;
      if (kind == "or")
        return run<either>;
      if (kind == "xor")
        return run<differing>;
    }
    return kind == "add"   ? run<summed>
           : kind == "mul" ? run<times>
           : kind == "min" ? run<extreme<false>>
           : kind == "max" ? run<extreme<true>>
                           : run<second>;
  }
};

template <class T> bool compareExchange(Machine &m, const Instruction &op) {
  std::byte *at = access(m, op, 2, Updates);
  if (!at)
    return false;
  T old = read<T>(at), expected = elementOf<T>(m.operand(op, 1));
  if (std::memcmp(&old, &expected, sizeof(T)) == 0)
    write(at, elementOf<T>(m.operand(op, 0)));
  m.put(op, slotOf(old));
  return true;
}

template <class T> bool take(Machine &m, const Instruction &op) {
  std::byte *at = access(m, op, 0, static_cast<Use>(op.detail));
  if (!at)
    return false;
  m.put(op, read<T>(at));
  write<T>(at, 0);
  return true;
}

bool extent(Machine &m, const Instruction &op) {
  m.put(op, uint64_t(m.array(op, 0).extents[op.detail]));
  return true;
}

bool copy(Machine &m, const Instruction &op) {
  const Array &from = m.array(op, 0), &to = m.array(op, 1);
  if (!std::ranges::equal(from.extents, to.extents))
    return m.fail(op, ErrorCode::BadArgument,
                  "the two arrays of a copy differ in their extents");
  if (from.size)
    std::memmove(to.data, from.data, from.size * from.elementSize);
  return true;
}

Type elementTypeOf(Value array) {
  return cast<ir::ArrayType>(array.getType()).getElementType();
}

Handler selectLoad(Operation *op, Instruction &, Code &) {
  return byElement(elementTypeOf(op->getOperand(0)),
                   []<class T>() -> Handler { return load<T>; });
}

/// Whether all work items of the range around `op` have `value` in common.
bool isShared(Value value, Operation *op) {
  auto range = op->getParentOfType<ir::RangeOp>();
  return matchPattern(value, m_Constant()) ||
         (range && !range.getRegion().isAncestor(value.getParentRegion()));
}

Handler selectStore(Operation *op, Instruction &instruction, Code &) {
  instruction.detail = ir::holdsOwners(op->getOperand(1)) ? Unwatched
                       : isShared(op->getOperand(0), op)  ? SharedStores
                                                          : Stores;
  return byElement(elementTypeOf(op->getOperand(1)),
                   []<class T>() -> Handler { return store<T>; });
}

/// For numbers.
template <class Select> Handler byNumber(Value array, const Select &select) {
  return byElement(elementTypeOf(array), [&]<class T>() -> Handler {
    if constexpr (std::is_same_v<T, Bool>)
      return nullptr;
    else
      return select.template operator()<T>();
  });
}

/// A bool is a byte that is 0 or 1.
template <class Select>
Handler byNumberOrByte(Value array, const Select &select) {
  return byElement(elementTypeOf(array), [&]<class T>() -> Handler {
    using Number = std::conditional_t<std::is_same_v<T, Bool>, uint8_t, T>;
    return select.template operator()<Number>();
  });
}

Handler selectAdd(Operation *op, Instruction &instruction, Code &) {
  // An exclusive addition promises that no other work item uses the element.
  instruction.detail =
      cast<ir::AtomicAddOp>(op).getExclusive() ? Stores : Updates;
  return byNumber(op->getOperand(1),
                  []<class T>() -> Handler { return add<T>; });
}

template <bool isMax>
Handler selectExtremum(Operation *op, Instruction &instruction, Code &) {
  instruction.detail = op->hasAttr("exclusive") ? Stores
                       : isMax                  ? Maxima
                                                : Minima;
  return byNumber(op->getOperand(1),
                  []<class T>() -> Handler { return takeExtremum<T, isMax>; });
}

Handler selectFetch(Operation *op, Instruction &instruction, Code &) {
  StringRef kind = cast<ir::AtomicFetchOp>(op).getKind();
  instruction.detail = kind == "min"   ? Minima
                       : kind == "max" ? Maxima
                                       : Updates;
  return byNumberOrByte(op->getOperand(1), [&]<class T>() -> Handler {
    return Fetch<T>::select(kind);
  });
}

Handler selectCompareExchange(Operation *op, Instruction &, Code &) {
  return byNumberOrByte(op->getOperand(2), []<class T>() -> Handler {
    return compareExchange<T>;
  });
}

Handler selectTake(Operation *op, Instruction &instruction, Code &) {
  instruction.detail =
      cast<ir::AtomicTakeOp>(op).getExclusive() ? Stores : Takes;
  return op->getResult(0).getType().isF32() ? take<float> : take<double>;
}

Handler selectExtent(Operation *op, Instruction &instruction, Code &) {
  instruction.detail = cast<ir::ExtentOp>(op).getDim();
  return extent;
}

//===-- Tapes -------------------------------------------------------------===//

bool push(Machine &m, const Instruction &op) { return m.push(op); }
bool pop(Machine &m, const Instruction &op) { return m.pop(op); }
bool pivot(Machine &m, const Instruction &) {
  return m.tape().isReversed = true;
}
bool claim(Machine &m, const Instruction &op) {
  m.claim(m.operand(op, 0));
  return true;
}

bool budget(Machine &m, const Instruction &op) {
  size_t bytes = m.options.budget.value_or(m.options.tapeBytes);
  m.put(op, static_cast<uint64_t>(std::min<size_t>(bytes, INT64_MAX)));
  return true;
}

/// Where the record is listed; it is as large as in compiled code.
uint32_t recordOf(Operation *op, std::optional<int64_t> number, TypeRange types,
                  Code &code) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(types, stream);
  for (size_t k = 0; k < code.records.size(); ++k)
    if (code.records[k].types == text &&
        code.records[k].number == number.value_or(-1))
      return k;
  size_t bits = 0, bytes = 0;
  for (Type type : types)
    type.isInteger(1) ? ++bits : bytes += widthOf(type) / 8;
  size_t bitBytes = (bits + 7) / 8;
  bool inLanes = bool(op->getParentOfType<ir::RangeOp>());
  size_t words = inLanes ? 8 * (types.size() - bits + bitBytes)
                         : llvm::alignTo(bytes + bitBytes, 8);
  code.records.push_back({text, number.value_or(-1), bytes + bitBytes, words});
  return code.records.size() - 1;
}

Handler selectPush(Operation *op, Instruction &instruction, Code &code) {
  instruction.detail = recordOf(op, cast<tape::PushOp>(op).getRecord(),
                                op->getOperandTypes(), code);
  return push;
}

Handler selectPop(Operation *op, Instruction &instruction, Code &code) {
  instruction.detail = recordOf(op, cast<tape::PopOp>(op).getRecord(),
                                op->getResultTypes(), code);
  return pop;
}

} // namespace

llvm::ArrayRef<KnownOperation> accessOperations() {
  static const KnownOperation known[] = {
      {"costate.load", selectLoad},
      {"costate.store", selectStore},
      {"costate.atomic_add", selectAdd},
      {"costate.atomic_min", selectExtremum<false>},
      {"costate.atomic_max", selectExtremum<true>},
      {"costate.atomic_take", selectTake},
      {"costate.atomic_fetch", selectFetch},
      {"costate.compare_exchange", selectCompareExchange},
      {"costate.extent", selectExtent},
      {"costate.copy", always<copy>},
      {"tape.push", selectPush},
      {"tape.pop", selectPop},
      {"tape.pivot", always<pivot>},
      {"tape.budget", always<budget>},
      {"tape.claim", always<claim>},
  };
  return known;
}

} // namespace costate::interpreter
