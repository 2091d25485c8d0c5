#pragma once
/// The state of one run of the interpreter.

#include "base/Result.h"
#include "interpreter/Code.h"
#include "interpreter/Interpreter.h"
#include "interpreter/Roundings.h"

#include <bit>
#include <span>

namespace costate::interpreter {

/// What a work item does to an element. A shared store is one of a value that
/// all work items have in common.
enum Use : uint8_t {
  Unwatched = 0,
  Loads = 1,
  Updates = 2,
  Stores = 4,
  SharedStores = 8,
  Minima = 16,
  Maxima = 32,
  Takes = 64
};

/// What the work items of a range have done to an element.
struct Mark {
  uint64_t range = 0; ///< in which range; an older one counts as nothing
  int64_t workItem = 0;
  uint32_t place = 0; ///< of the first use
  uint8_t uses = 0;
  bool shared = false; ///< by several work items
};

struct Array {
  std::byte *data = nullptr;
  std::span<const int64_t> extents;
  size_t elementSize = 0;
  size_t size = 0;         ///< elements
  std::vector<Mark> marks; ///< one per element, once they are watched
};

struct Tape {
  std::vector<uint64_t> values;
  std::vector<uint32_t> records; ///< index in Code::records
  size_t bytes = 0;
  // Where it is measured:
  size_t words = 0;
  size_t measured = 0; ///< the most of the forward sweep
  bool isReversed = false;
};

/// Slots hold bits, zero extended: a bool is 0 or 1, an f32 its 32 bits.
class Machine {
public:
  Machine(const Code &code, const InterpreterOptions &options)
      : code(code), options(options), roundings(options.roundings),
        slots(code.constants), localElements(code.localElements) {}

  //===-- Values ---------------------------------------------------------===//

  uint32_t slotOf(const Instruction &op, uint32_t k) const {
    return code.lists[op.operands.first + k];
  }
  uint64_t operand(const Instruction &op, uint32_t k) const {
    return slots[slotOf(op, k)];
  }
  template <class T> T floating(const Instruction &op, uint32_t k) const {
    return asFloat<T>(operand(op, k));
  }
  template <class T> void put(const Instruction &op, T value) {
    slots[op.result] = asBits(value);
  }
  Array &array(const Instruction &op, uint32_t k) {
    return arrays[slotOf(op, k)];
  }

  template <class T> static T asFloat(uint64_t bits) {
    if constexpr (sizeof(T) == 4)
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    else
      return std::bit_cast<double>(bits);
  }
  static uint64_t asBits(uint64_t bits) { return bits; }
  static uint64_t asBits(double value) {
    return std::bit_cast<uint64_t>(value);
  }
  static uint64_t asBits(float value) { return std::bit_cast<uint32_t>(value); }

  /// Copies all of `from`, and only then writes the slots from `to` on.
  void move(Slots from, uint32_t to);

  //===-- Running --------------------------------------------------------===//

  bool run(uint32_t block);
  bool fail(const Instruction &op, ErrorCode code, const std::string &text);

  /// Notes that work item `workItem` uses an element; false in a race.
  bool watch(const Instruction &op, uint32_t argument, size_t element, Use use);

  bool push(const Instruction &op);
  bool pop(const Instruction &op);
  void claim(size_t bytes);
  /// False if a record is left.
  bool checkEmpty(const Instruction &op, const Tape &tape);
  Tape &tape() { return inRange ? workItemTape : serialTape; }

  void noteAddend(double value) {
    if (value < 0)
      value = -value;
    if (value > report.largestAddend)
      report.largestAddend = value;
  }

  const Code &code;
  const InterpreterOptions &options;
  Roundings roundings;
  InterpreterReport report;
  std::vector<uint64_t> slots;
  std::vector<uint64_t> localElements; ///< of private arrays
  std::vector<Array> arrays; ///< by argument; scalars leave theirs empty
  Tape serialTape, workItemTape;
  bool inRange = false;
  uint64_t ranges = 0;  ///< that have started
  int64_t workItem = 0; ///< of the range that runs
  std::optional<Failure> failure;

private:
  std::vector<uint64_t> moved;
};

} // namespace costate::interpreter
