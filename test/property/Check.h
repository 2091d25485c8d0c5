#pragma once
/// Is what a program becomes right?

#include "property/Coverage.h"
#include "property/Program.h"

namespace costate::property {

struct Verdict {
  enum Kind {
    Right,
    Refused, ///< Error(CannotReplay): it has no gradient, the rest is right
    Wild,    ///< values too large to judge derivatives, the rest is right
    Racing,  ///< work items meet on an element, and debug kernels say so
    Invalid, ///< no program: a name is missing
    Wrong
  } kind = Right;
  std::string text = "";
  int differences = 0; ///< entries that central differences could judge
};

/// How a wrong program is wrong, without numbers.
std::string kindOf(const Verdict &verdict);

/// On the interpreter: compares the results with those of the statement tree
/// (Reference.h), bit by bit; reverse mode with forward mode and with central
/// differences in every entry of every array, at values that `seed` chooses;
/// and what a gradient must keep: memory, sums of adjoints. Then compares
/// compiled code with the interpreter, bit by bit where the order of additions
/// is fixed: the primal and its gradient in one of several ways, or the
/// tangent, by the seed. Adds what was right to `coverage`.
Verdict check(const Node &program, unsigned seed, Coverage *coverage = nullptr);

/// Compiled code with 1, 2, 4, 8 and 16 lanes: what `check` compares of one
/// way, and the same bits for all of them in deterministic kernels.
Verdict checkLanes(const Node &program, unsigned seed);

/// Compiled gradients within several budgets for tapes: the bits of one that
/// has all memory, or an error.
Verdict checkBudgets(const Node &program, unsigned seed);

/// Only the results against those of the statement tree: many times faster.
Verdict checkLowering(const Node &program, unsigned seed);

} // namespace costate::property
