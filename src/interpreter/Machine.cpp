#include "interpreter/Machine.h"

namespace costate::interpreter {

void Machine::move(Slots from, uint32_t to) {
  const uint32_t *list = code.lists.data() + from.first;
  if (from.count == 1) {
    slots[to] = slots[*list];
    return;
  }
  moved.clear();
  for (uint32_t k = 0; k < from.count; ++k)
    moved.push_back(slots[list[k]]);
  std::copy(moved.begin(), moved.end(), slots.begin() + to);
}

bool Machine::run(uint32_t number) {
  const Block &block = code.blocks[number];
  uint64_t size = block.instructions.size() + 1; // the terminator
  if (options.steps - report.steps < size) {
    failure = Failure{ErrorCode::KernelFailed,
                      "kernel `" + code.name + "` has run " +
                          std::to_string(options.steps) +
                          " operations and has not come to its end"};
    return false;
  }
  report.steps += size;
  for (const Instruction &op : block.instructions)
    if (!op.run(*this, op))
      return false;
  return true;
}

bool Machine::fail(const Instruction &op, ErrorCode error,
                   const std::string &text) {
  failure = Failure{error, code.describe(op.place) + ": " + text};
  return false;
}

//===-- Races -------------------------------------------------------------===//

static std::string indexText(const Array &array, size_t element) {
  std::string text;
  for (size_t d = array.extents.size(); d-- > 0;) {
    size_t extent = static_cast<size_t>(array.extents[d]);
    text = std::to_string(element % extent) + (text.empty() ? "" : ", ") + text;
    element /= extent;
  }
  return "[" + text + "]";
}

/// Whether several work items may use an element in these ways.
static bool mayShare(uint8_t uses) {
  return std::has_single_bit(uses) && uses != Stores;
}

static const char *describe(uint8_t uses) {
  if (uses & (Stores | SharedStores))
    return "stored by one of them";
  if (!(uses & Loads))
    return "updated by them in different ways";
  return "updated by one of them and loaded by the other";
}

bool Machine::watch(const Instruction &op, uint32_t argument, size_t element,
                    Use use) {
  if (use == Unwatched)
    return true;
  Array &array = arrays[argument];
  if (array.marks.empty())
    array.marks.resize(array.size);
  Mark &mark = array.marks[element];
  if (mark.range != ranges)
    mark = Mark{ranges, workItem, op.place, 0, false};
  mark.shared |= mark.workItem != workItem;
  if (use == SharedStores && mark.place != op.place)
    use = Stores; // perhaps of another value
  mark.uses |= use;
  if (!mark.shared || mayShare(mark.uses))
    return true;
  return fail(op, ErrorCode::Race,
              "element " + indexText(array, element) + " of argument " +
                  std::to_string(code.parameters[argument].name) +
                  " is used by work items " + std::to_string(mark.workItem) +
                  " and " + std::to_string(workItem) + " of one range, and " +
                  describe(mark.uses) +
                  ", so the result depends on their order");
}

//===-- Tapes -------------------------------------------------------------===//

bool Machine::push(const Instruction &op) {
  size_t bytes = code.records[op.detail].bytes;
  size_t used = serialTape.bytes + workItemTape.bytes;
  if (options.tapeBytes - used < bytes)
    return fail(op, ErrorCode::OutOfMemory,
                "a record of " + std::to_string(bytes) +
                    " bytes does not fit after the " + std::to_string(used) +
                    " bytes that the tapes hold");
  Tape &tape = this->tape();
  for (uint32_t k = 0; k < op.operands.count; ++k)
    tape.values.push_back(operand(op, k));
  tape.records.push_back(op.detail);
  tape.bytes += bytes;
  tape.words += code.records[op.detail].words;
  if (!tape.isReversed)
    claim(0);
  else if (options.measured && tape.words > tape.measured)
    return fail(op, ErrorCode::Internal,
                "the reverse sweep takes " + std::to_string(tape.words) +
                    " bytes, and the forward sweep has told of " +
                    std::to_string(tape.measured));
  ++report.pushes;
  report.peakTapeBytes = std::max(report.peakTapeBytes, used + bytes);
  return true;
}

bool Machine::pop(const Instruction &op) {
  Tape &tape = this->tape();
  const Record &record = code.records[op.detail];
  if (tape.records.empty() ||
      !record.matches(code.records[tape.records.back()]))
    return fail(op, ErrorCode::Internal,
                "pop of " + record.describe() + " finds " +
                    (tape.records.empty()
                         ? "an empty tape"
                         : code.records[tape.records.back()].describe()));
  auto first = tape.values.end() - op.results;
  std::copy(first, tape.values.end(), slots.begin() + op.result);
  tape.values.erase(first, tape.values.end());
  tape.records.pop_back();
  tape.bytes -= record.bytes;
  tape.words -= record.words;
  return true;
}

void Machine::claim(size_t bytes) {
  Tape &tape = this->tape();
  tape.measured = std::max(tape.measured, tape.words + bytes);
}

bool Machine::checkEmpty(const Instruction &op, const Tape &tape) {
  if (tape.records.empty())
    return true;
  std::string where = inRange ? "work item " + std::to_string(workItem)
                              : std::string("the kernel");
  return fail(op, ErrorCode::Internal,
              where + " ends with " + std::to_string(tape.records.size()) +
                  " records on its tape; the last is " +
                  code.records[tape.records.back()].describe());
}

} // namespace costate::interpreter
