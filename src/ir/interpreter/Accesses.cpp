/// Arrays and tapes.

#include "ir/Kernel.h"
#include "ir/Tape.h"
#include "ir/interpreter/Machine.h"
#include "ir/interpreter/Operations.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace costate::ir {

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

template <class T> T read(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T> void write(std::byte *at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

struct Bool {}; // in memory one byte, true unless 0

template <class T> bool load(Machine &m, const Instruction &op) {
  const std::byte *at = access(m, op, 0, Loads);
  if (!at)
    return false;
  if constexpr (std::is_same_v<T, Bool>)
    m.put(op, uint64_t(read<uint8_t>(at) != 0));
  else
    m.put(op, uint64_t(read<T>(at)));
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
    write(at, static_cast<T>(m.operand(op, 0)));
  return true;
}

template <class T> T operandAs(Machine &m, const Instruction &op) {
  if constexpr (std::is_floating_point_v<T>) {
    m.noteAddend(m.floating<T>(op, 0));
    return m.floating<T>(op, 0);
  } else {
    return static_cast<T>(m.operand(op, 0));
  }
}

/// The detail is its use.
template <class T> bool add(Machine &m, const Instruction &op) {
  std::byte *at = access(m, op, 1, static_cast<Use>(op.detail));
  if (!at)
    return false;
  write<T>(at, read<T>(at) + operandAs<T>(m, op));
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

template <class T, bool isMax>
bool takeExtremum(Machine &m, const Instruction &op) {
  std::byte *at = access(m, op, 1, static_cast<Use>(op.detail));
  if (!at)
    return false;
  T value, old = read<T>(at);
  if constexpr (std::is_floating_point_v<T>)
    value = m.floating<T>(op, 0);
  else
    value = static_cast<T>(m.operand(op, 0));
  bool isNumber = value == value;
  if (isNumber &&
      (isMax ? isAbove(value, old) : old != old || isAbove(old, value)))
    write<T>(at, value);
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

Handler selectLoad(Operation *op, Instruction &, Code &) {
  unsigned width = widthOf(op->getResult(0).getType());
  return width == 1    ? load<Bool>
         : width == 32 ? load<uint32_t>
                       : load<uint64_t>;
}

/// Whether all iterations of the range around `op` have `value` in common.
bool isShared(Value value, Operation *op) {
  auto range = op->getParentOfType<RangeOp>();
  return matchPattern(value, m_Constant()) ||
         (range && !range.getRegion().isAncestor(value.getParentRegion()));
}

Handler selectStore(Operation *op, Instruction &instruction, Code &) {
  instruction.detail = isShared(op->getOperand(0), op) ? SharedStores : Stores;
  unsigned width = widthOf(op->getOperand(0).getType());
  return width == 1    ? store<Bool>
         : width == 32 ? store<uint32_t>
                       : store<uint64_t>;
}

Handler selectAdd(Operation *op, Instruction &instruction, Code &) {
  // An exclusive addition promises that no other iteration uses the element.
  instruction.detail = cast<AtomicAddOp>(op).getExclusive() ? Stores : Updates;
  Type type = op->getOperand(0).getType();
  if (type.isF32())
    return add<float>;
  if (type.isF64())
    return add<double>;
  return type.isInteger(32) ? add<uint32_t> : add<uint64_t>;
}

template <bool isMax>
Handler selectExtremum(Operation *op, Instruction &instruction, Code &) {
  instruction.detail = op->hasAttr("exclusive") ? Stores
                       : isMax                  ? Maxima
                                                : Minima;
  Type element = cast<ArrayType>(op->getOperand(1).getType()).getElementType();
  if (element.isF32())
    return takeExtremum<float, isMax>;
  if (element.isF64())
    return takeExtremum<double, isMax>;
  if (element.isUnsignedInteger())
    return element.isUnsignedInteger(32) ? takeExtremum<uint32_t, isMax>
                                         : takeExtremum<uint64_t, isMax>;
  return element.isInteger(32) ? takeExtremum<int32_t, isMax>
                               : takeExtremum<int64_t, isMax>;
}

Handler selectTake(Operation *op, Instruction &instruction, Code &) {
  instruction.detail = cast<AtomicTakeOp>(op).getExclusive() ? Stores : Takes;
  return op->getResult(0).getType().isF32() ? take<float> : take<double>;
}

Handler selectExtent(Operation *op, Instruction &instruction, Code &) {
  instruction.detail = cast<ExtentOp>(op).getDim();
  return extent;
}

//===-- Tapes -------------------------------------------------------------===//

bool push(Machine &m, const Instruction &op) { return m.push(op); }
bool pop(Machine &m, const Instruction &op) { return m.pop(op); }
bool turn(Machine &, const Instruction &) { return true; }

/// Where the record is listed; it is as large as in compiled code.
uint32_t recordOf(std::optional<int64_t> number, TypeRange types, Code &code) {
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
  code.records.push_back({text, number.value_or(-1), bytes + (bits + 7) / 8});
  return code.records.size() - 1;
}

Handler selectPush(Operation *op, Instruction &instruction, Code &code) {
  instruction.detail =
      recordOf(cast<tape::PushOp>(op).getRecord(), op->getOperandTypes(), code);
  return push;
}

Handler selectPop(Operation *op, Instruction &instruction, Code &code) {
  instruction.detail =
      recordOf(cast<tape::PopOp>(op).getRecord(), op->getResultTypes(), code);
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
      {"costate.extent", selectExtent},
      {"costate.copy", always<copy>},
      {"tape.push", selectPush},
      {"tape.pop", selectPop},
      {"tape.turn", always<turn>},
  };
  return known;
}

} // namespace costate::ir
