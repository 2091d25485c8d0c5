/// Messages, and the search for inf and NaN.

#include "base/Message.h"
#include "interpreter/Machine.h"
#include "interpreter/Operations.h"
#include "ir/Kernel.h"

#include <bit>
#include <cmath>
#include <cstdio>

using namespace mlir;

namespace costate::interpreter {
namespace {

/// The text of a check with its numbers, and with the number of the work item.
std::string filled(const Machine &m, const Check &check,
                   std::vector<double> numbers) {
  std::string text;
  size_t next = 0;
  for (char c : check.text)
    if (c == '%' && next < numbers.size())
      text += std::to_string(numbers[next++]);
    else if (c == '@')
      text += "an element";
    else if (c != '#')
      text += c;
    else if (m.inRange)
      text += ", in work item " + std::to_string(m.workItem);
  return text;
}

template <class T>
bool applies(const Machine &m, const Instruction &op, const Check &check) {
  bool isFinite = std::isfinite(m.floating<T>(op, 0));
  return isFinite == check.added &&
         (check.condition < 0 || m.operand(op, check.condition));
}

/// Operands: the value, the condition if there is one, the numbers it is from.
template <class T> bool checkFinite(Machine &m, const Instruction &op) {
  const Check &check = m.code.checks[op.detail];
  if (!applies<T>(m, op, check))
    return true;
  std::vector<double> numbers;
  for (uint32_t k = check.condition < 0 ? 1 : 2; k < op.operands.count; ++k) {
    numbers.push_back(m.floating<T>(op, k));
    if (!std::isfinite(numbers.back()))
      return true;
  }
  numbers.push_back(m.floating<T>(op, 0));
  return m.fail(op, ErrorCode::NotFinite, filled(m, check, numbers));
}

/// Operands: the value, the array and its indices, the condition.
template <class T> bool checkElement(Machine &m, const Instruction &op) {
  const Check &check = m.code.checks[op.detail];
  if (!applies<T>(m, op, check))
    return true;
  std::vector<double> numbers = {m.floating<T>(op, 0)};
  std::optional<size_t> element = elementOf(m, op, 1);
  if (!element)
    return false;
  if (check.added) {
    T now;
    std::memcpy(&now, m.array(op, 1).data + *element * sizeof(T), sizeof(T));
    if (std::isfinite(now))
      return true;
    numbers.push_back(now);
  }
  return m.fail(op, ErrorCode::NotFinite, filled(m, check, numbers));
}

/// The text of a message with the operands from `first` on.
std::string message(Machine &m, const Instruction &op, uint32_t first) {
  const Check &check = m.code.checks[op.detail];
  uint32_t next = first;
  auto value = [&](char kind, std::string_view) -> std::string {
    uint64_t bits = m.operand(op, next);
    unsigned width = check.widths[next++];
    if (kind == elementKind)
      return ++next, "an element";
    if (kind == 'f' && width == 32)
      return std::to_string(std::bit_cast<float>(uint32_t(bits)));
    if (kind == 'f')
      return std::to_string(std::bit_cast<double>(bits));
    if (kind == 'b')
      return bits ? "true" : "false";
    if (kind == 'i')
      return std::to_string(int64_t(bits << (64 - width)) >> (64 - width));
    return std::to_string(bits);
  };
  return *costate::filled(check.text, value);
}

bool print(Machine &m, const Instruction &op) {
  std::string text = m.code.describe(op.place);
  if (m.inRange)
    text += ", work item " + std::to_string(m.workItem);
  std::puts((text + ": " + message(m, op, 0)).c_str());
  return true;
}

bool check(Machine &m, const Instruction &op) {
  if (m.operand(op, 0))
    return true;
  std::string text = message(m, op, 1);
  if (m.inRange)
    text += ", in work item " + std::to_string(m.workItem);
  return m.fail(op,
                m.code.checks[op.detail].refuses ? ErrorCode::CannotReplay
                                                 : ErrorCode::AssertionFailed,
                text);
}

template <class Op, Handler handler>
Handler selectMessage(Operation *op, Instruction &instruction, Code &code) {
  Check check{cast<Op>(op).getText().str(), -1, false, {}, false};
  check.refuses = op->hasAttr("refuses");
  for (Value value : op->getOperands())
    check.widths.push_back(widthOf(value.getType()));
  instruction.detail = code.checks.size();
  code.checks.push_back(check);
  return handler;
}

Handler selectFinite(Operation *op, Instruction &instruction, Code &code) {
  auto check = cast<ir::CheckFiniteOp>(op);
  instruction.detail = code.checks.size();
  code.checks.push_back(
      {check.getText().str(), check.getCondition() ? 1 : -1, false, {}, false});
  return check.getValue().getType().isF32() ? checkFinite<float>
                                            : checkFinite<double>;
}

Handler selectElement(Operation *op, Instruction &instruction, Code &code) {
  auto check = cast<ir::CheckElementOp>(op);
  int last = static_cast<int>(op->getNumOperands()) - 1;
  instruction.detail = code.checks.size();
  code.checks.push_back({check.getText().str(),
                         check.getCondition() ? last : -1,
                         check.getAdded(),
                         {},
                         false});
  return check.getValue().getType().isF32() ? checkElement<float>
                                            : checkElement<double>;
}

} // namespace

llvm::ArrayRef<KnownOperation> checkOperations() {
  static const KnownOperation known[] = {
      {"costate.check_finite", selectFinite},
      {"costate.check_element", selectElement},
      {"costate.print", selectMessage<ir::PrintOp, print>},
      {"costate.assert", selectMessage<ir::AssertOp, check>},
  };
  return known;
}

} // namespace costate::interpreter
