#pragma once
/// What the interpreter makes of a kernel: blocks of instructions over numbered
/// slots.

#include <cstdint>
#include <string>
#include <vector>

namespace costate::interpreter {

class Machine;
struct Instruction;

/// Runs one instruction; false if the machine has failed.
using Handler = bool (*)(Machine &, const Instruction &);

/// A list of slots: a part of Code::lists. The slots of the kernel's arguments
/// come first, so that the slot of an array is the number of its argument.
struct Slots {
  uint32_t first = 0, count = 0;
};

struct Instruction {
  Handler run = nullptr;
  Slots operands;
  uint32_t result = 0;      ///< slot of the first result; the others follow
  uint32_t results = 0;     ///< how many
  uint32_t place = 0;       ///< index in Code::places
  uint32_t block = 0;       ///< the first of its regions; the others follow
  void *function = nullptr; ///< that it calls instead of the host's
  uint32_t detail = 0; ///< a predicate, a dimension, a record: see its handler
  uint8_t operandWidth = 0; ///< bits of the last operand
  uint8_t resultWidth = 0;  ///< bits of the first result
  bool watched = false;     ///< may be part of a race
};

struct Block {
  std::vector<Instruction> instructions;
  uint32_t argument = 0; ///< slot of the first argument; the others follow
  Slots yields;          ///< operands of the terminator
};

/// What holds an argument or an element of it.
enum class Kind : uint8_t { I1, I32, I64, F32, F64 };

struct Parameter {
  Kind kind;
  size_t elementBytes; ///< of an array
  int rank;            ///< -1: a scalar
  int64_t name; ///< the number of the argument, counted from 1, for messages
  bool written;
  std::vector<int64_t> extents; ///< those that are known, -1 elsewhere
};

/// Where an instruction comes from.
struct Place {
  std::string operation;
  int file = -1; ///< index in Code::files
  unsigned line = 0;
};

/// What is known of a record of a tape.
struct Record {
  std::string types;
  int64_t number; ///< -1: unknown
  size_t bytes;
  size_t words; ///< bytes of the tape of a lane, each value has 8 there

  bool matches(const Record &other) const {
    bool same = number == other.number || number < 0 || other.number < 0;
    return same && types == other.types;
  }
  std::string describe() const {
    return (number < 0 ? "a record" : "record " + std::to_string(number)) +
           " of (" + types + ")";
  }
};

/// A check for inf and NaN, or a message.
struct Check {
  std::string text;
  int condition;               ///< which operand; -1: none
  bool added;                  ///< see costate.check_element
  std::vector<uint8_t> widths; ///< messages: of the operands
  bool refuses;                ///< see costate.assert
};

/// The elements of a private array, within those of all.
struct LocalArray {
  uint32_t first, size;
};

struct Code {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Block> blocks;       ///< the first is the kernel's
  std::vector<uint64_t> constants; ///< the slots as they are at the start
  std::vector<uint32_t> lists;
  std::vector<Place> places; ///< the first is the kernel's
  std::vector<std::string> files;
  std::vector<Record> records;
  std::vector<Check> checks;
  std::vector<LocalArray> locals;
  uint32_t localElements = 0; ///< of all of them

  /// "kernel `NAME` at FILE:LINE"
  std::string describe(uint32_t place) const {
    const Place &at = places[place];
    std::string text = "kernel `" + name + "`";
    if (at.file < 0)
      return text;
    return text + " at " + files[at.file] + ":" + std::to_string(at.line);
  }
};

} // namespace costate::interpreter
