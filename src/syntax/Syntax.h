#pragma once
/// The statement tree that every front end builds: a kernel as nested lists of
/// statements in program order. An expression is a statement that defines a
/// value; a value is used only after its definition, in the same block or a
/// nested one. Variables are mutable and are read and assigned by statements,
/// so the tree needs no SSA construction; `lowering` does that.

#include "costate/op.h"
#include "costate/types.h"

#include <cstdint>
#include <string>
#include <vector>

namespace costate::syntax {

using ValueId = uint32_t; ///< index into Kernel::values
using VarId = uint32_t;   ///< index into Kernel::variables
inline constexpr uint32_t none = ~0u;

enum class Kind : uint8_t {
  // define `value`
  Const,     ///< `bits`: the value, in its own representation, zero extended
  Scalar,    ///< the scalar argument `argument`
  Extent,    ///< i64 extent `dim` of array argument `argument`
  Load,      ///< element `operands` of array argument `argument`
  LoadLocal, ///< element operands[0] of the private array `argument`
  Pure,      ///< `op` on `operands`
  Custom,    ///< a function of `operands` with partial derivatives; blocks: the
  ///< function, the derivatives; `indices`: their arguments, one block
  ///< after the other, the last one the result; `results`: of each block
  Call,    ///< the function number `argument` of `operands` and of the arrays
           ///< `indices`; its first result
  Result,  ///< result number `dim` of the Call that defines operands[0]
  ReadVar, ///< the current value of `variable`
  // define nothing
  DeclareVar,   ///< `variable` starts with operands[0]
  AssignVar,    ///< `variable` becomes operands[0]
  DeclareLocal, ///< the private array `argument`, of zeros
  StoreLocal,   ///< element operands[1] of the private array `argument` becomes
                ///< operands[0]
  Store,        ///< element operands[1..] of `argument` becomes operands[0]
  Update,       ///< element operands[1..] of `argument` becomes `op` (Add, Min,
                ///< Max, And, Or or Xor) of itself and operands[0], in one
                ///< indivisible step; may define the `value` that it had before
  Exchange,     ///< likewise becomes operands[0]; defines what it was before
  CompareExchange, ///< element operands[2..] becomes operands[0] if it has the
                   ///< bits of operands[1]; defines what it was before
  Print,  ///< operands; `bits`: which of the texts, with a letter in braces
          ///< for each of them: i, u, b or f
  Assert, ///< operands[0], and those of its text like Print
  Enter,
  Leave, ///< the function `bits` begins and ends; not in a finished tree
  If,    ///< operands[0]; blocks: then and, if there is one, else
  For,   ///< value = lo + k*step; operands: lo, hi, step, all i64; blocks: body
  While, ///< blocks: condition (ends in the value `condition`), body
  Range, ///< operands: i64 extents, outermost first; `indices`; blocks: body.
         ///< May define the sums of `results` over the work items (`op`
         ///< Add) or their least pair of I64 (Min): `value` and the next
  Break,
  Continue,
  Return,
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  Kind kind;
  Op op = Op::Neg;
  DType type = DType::I64;   ///< of `value`
  ValueId value = none;      ///< what it defines; For: the index, i64
  uint32_t argument = none;
  uint32_t variable = none;
  uint32_t dim = 0;
  uint64_t bits = 0;
  ValueId condition = none;  ///< While: defined in blocks[0]
  std::vector<ValueId> operands = {};
  std::vector<ValueId> indices = {}; ///< Range: one i64 per extent; Call: arrays
  std::vector<ValueId> results = {}; ///< Custom, Range
  std::vector<Block> blocks = {};
  Loc loc = {};

  /// How many values it defines, from `value` on.
  size_t defines() const {
    return value == none ? 0 : kind == Kind::Range ? results.size() : 1;
  }
};

struct Argument {
  DType type;
  int rank;      ///< 0..maxRank; -1: a scalar
  ElementForm form = {}; ///< Array: one of its dimensions holds components.
                         ///< Scalar: the name of what it belongs to
  uint32_t number = 0;   ///< of the user's argument that it is or belongs to,
                         ///< from 1; 0: arguments are those of the user
  bool isArray() const { return rank >= 0; }
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
