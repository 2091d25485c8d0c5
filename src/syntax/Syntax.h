#pragma once
/// The statement tree that every front end builds: a kernel as nested lists of
/// statements in program order. An expression is a statement that defines a
/// value; a value is used only after its definition, in the same block or a
/// nested one. Variables are mutable and are read and assigned by statements,
/// so the tree needs no SSA construction; `lowering` does that.

#include "costate/op.h"
#include "costate/types.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace costate::syntax {

using ValueId = uint32_t; ///< index into Kernel::values
using VarId = uint32_t;   ///< index into Kernel::variables
inline constexpr uint32_t none = ~0u;

enum class Kind : uint8_t {
#define COSTATE_STATEMENT(Kind, ...) Kind,
#include "syntax/Statements.def"
};

enum class Role : uint8_t {
  Value,       ///< defines a value, and does nothing else
  Declaration, ///< of a variable
  Effect,      ///< on variables, arrays or the launch
  Mark,        ///< not in a finished tree
  Control,     ///< runs its blocks
  Jump,        ///< what follows it in its block is dead
};

enum class Counted : uint8_t { Nothing, Scalar, Array, Local, Function };

struct Traits {
  Role role;
  Counted argument;
};

inline constexpr Traits traitsOfKinds[] = {
#define COSTATE_STATEMENT(Kind, role, argument) {Role::role, Counted::argument},
#include "syntax/Statements.def"
};

constexpr Traits traitsOf(Kind kind) {
  return traitsOfKinds[static_cast<size_t>(kind)];
}
constexpr bool is(Kind kind, Role role) { return traitsOf(kind).role == role; }
constexpr int countOf(Role role) {
  int count = 0;
  for (Traits one : traitsOfKinds)
    count += one.role == role;
  return count;
}
constexpr bool hasBlocks(Kind kind) {
  return is(kind, Role::Control) || kind == Kind::Custom;
}
/// Whether it must stay where it is among its neighbours.
constexpr bool hasEffect(Kind kind) {
  return !is(kind, Role::Value) && !is(kind, Role::Declaration);
}

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  Kind kind;
  Op op = Op::Neg;
  DType type = DType::I64; ///< of `value`
  ValueId value = none;    ///< what it defines; For: the index, i64
  uint32_t argument = none;
  uint32_t variable = none;
  uint32_t dim = 0;
  uint64_t bits = 0;
  ValueId condition = none; ///< While: defined in blocks[0]
  std::vector<ValueId> operands = {};
  std::vector<ValueId> indices =
      {}; ///< Range: one i64 per extent; Call: arrays
  std::vector<ValueId> results = {}; ///< Custom, Range
  std::vector<Block> blocks = {};
  Loc loc = {};

  /// How many values it defines, from `value` on.
  size_t defines() const {
    return value == none ? 0 : kind == Kind::Range ? results.size() : 1;
  }
};

/// The form of an array of which an element that is not 0 stays what it is.
inline constexpr std::string_view directoryForm = "directory";

struct Argument {
  DType type;
  int rank;              ///< 0..maxRank; -1: a scalar
  ElementForm form = {}; ///< Array: one of its dimensions holds components.
                         ///< Scalar: the name of what it belongs to
  uint32_t number = 0;   ///< of the user's argument that it is or belongs to,
                         ///< from 1; 0: arguments are those of the user
  std::vector<int64_t> extents = {}; ///< those that are known, -1 elsewhere;
                                     ///< none: nothing is known
  bool isArray() const { return rank >= 0; }
  /// Whether an array of this shape has the rank and the extents that are
  /// known.
  bool takes(std::span<const int64_t> shape) const;
};

/// In the words of the user: `argument 3`, `number 2 of argument 3`,
/// `the f64 members of argument 3`.
std::string argumentText(const std::vector<Argument> &arguments, size_t index);

struct Variable {
  DType type;
  Loc loc;
};

/// A private array.
struct Local {
  DType type;
  int64_t size;
  Loc loc;
};

/// The highest order of derivatives that are known, and what the others lack.
struct OrderLimit {
  int order = 0; ///< 0: any
  std::string what;
  Loc loc;
};

/// A kernel, or a function that it calls.
struct Kernel {
  std::string name;
  Loc loc;
  std::vector<Argument> arguments;
  std::vector<Variable> variables;
  std::vector<Local> locals;
  std::vector<DType> values; ///< type of each ValueId
  std::vector<std::string> texts;
  Block body;
  OrderLimit limit;
  /// Functions call those in front of them. They only compute: their arguments
  /// are arrays that they read, and `parameters`.
  std::vector<Kernel> functions;
  std::vector<ValueId> parameters, results; ///< of a function
};

} // namespace costate::syntax
