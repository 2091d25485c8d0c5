#pragma once
/// A part of a block as a function.

#include "syntax/Operands.h"

#include <optional>

namespace costate::syntax {

/// How often things are used, by number.
template <class Numbers> struct UseCounts {
  Numbers values, variables, locals;

  /// Adds the uses of `block` `sign` times.
  void add(const Block &block, int sign) {
    for (const Statement &statement : block) {
      forEachOperand(statement, [&](ValueId value) { values[value] += sign; });
      if (statement.variable != none)
        variables[statement.variable] += sign;
      if (usesLocal(statement))
        locals[statement.argument] += sign;
      for (const Block &inner : statement.blocks)
        add(inner, sign);
    }
  }
};
using Uses = UseCounts<std::vector<uint32_t>>;

Uses usesOf(const Kernel &kernel);

/// Statements, with those inside and those of the functions that they call.
size_t sizeOf(const Block &block, const Kernel &kernel);

/// A part of a block as a function with numbers of its own, which is the same
/// for parts that differ in their arguments only.
struct Extraction {
  Kernel function;
  std::vector<uint64_t> key; ///< equal for equal functions
  /// In the kernel: what the parameters and arrays are.
  std::vector<ValueId> values;  ///< then come the `variables`
  std::vector<VarId> variables; ///< read in front, as further arguments
  std::vector<uint32_t> arrays;
  /// What the kernel needs of it: a value, or the last value of a variable,
  /// which it declares (`declares`) or assigns.
  struct Output {
    ValueId value = none, inner = none;
    VarId variable = none;
    bool declares = false;
  };
  std::vector<Output> outputs;
};

/// Nothing for a part that does more than compute: that has effects other than
/// on variables, is left by jumps, or uses private arrays that others use.
std::optional<Extraction> extract(const Block &part, const Kernel &kernel,
                                  const Uses &all);

} // namespace costate::syntax
