/// The search for inf and NaN.

#include "ir/Kernel.h"
#include "ir/interpreter/Machine.h"
#include "ir/interpreter/Operations.h"

#include <cmath>

using namespace mlir;

namespace costate::ir {
namespace {

/// The text of a check with its numbers, and with the number of the iteration.
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
      text += ", in iteration " + std::to_string(m.iteration);
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

Handler selectFinite(Operation *op, Instruction &instruction, Code &code) {
  auto check = cast<CheckFiniteOp>(op);
  instruction.detail = code.checks.size();
  code.checks.push_back(
      {check.getText().str(), check.getCondition() ? 1 : -1, false});
  return check.getValue().getType().isF32() ? checkFinite<float>
                                            : checkFinite<double>;
}

Handler selectElement(Operation *op, Instruction &instruction, Code &code) {
  auto check = cast<CheckElementOp>(op);
  int last = static_cast<int>(op->getNumOperands()) - 1;
  instruction.detail = code.checks.size();
  code.checks.push_back({check.getText().str(),
                         check.getCondition() ? last : -1, check.getAdded()});
  return check.getValue().getType().isF32() ? checkElement<float>
                                            : checkElement<double>;
}

} // namespace

llvm::ArrayRef<KnownOperation> checkOperations() {
  static const KnownOperation known[] = {
      {"costate.check_finite", selectFinite},
      {"costate.check_element", selectElement},
  };
  return known;
}

} // namespace costate::ir
