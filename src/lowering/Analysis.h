#pragma once
/// What lowering has to know of a statement tree before it emits anything.

#include "syntax/Syntax.h"

#include <set>
#include <unordered_map>

namespace costate::lowering {

using syntax::Block;
using syntax::Kernel;
using syntax::Statement;
using syntax::ValueId;
using syntax::VarId;

/// Jumps that a statement may make out of itself.
struct Jumps {
  bool breaks = false, continues = false, returns = false;
  bool any() const { return breaks || continues || returns; }
  Jumps &operator|=(Jumps other);
};

/// Jumps become assignments of bool variables, the *flags*, which are numbered
/// after the variables of the kernel.
struct Facts {
  /// The variables and flags from outside that it may assign, in order.
  std::vector<VarId> assigned;
  /// The same for the statements after it in its block, if it may jump.
  std::vector<VarId> rest;
  Jumps jumps;
  VarId breakFlag = syntax::none;    ///< of a loop, if it is left by BREAK
  VarId continueFlag = syntax::none; ///< of a loop with CONTINUE
  VarId returnFlag = syntax::none;   ///< of a range with RETURN
};

/// One walk over a kernel.
class Analysis {
public:
  explicit Analysis(const Kernel &kernel);

  /// Of an If, For, While, Range or Custom.
  const Facts &of(const Statement &statement) const {
    return facts.at(&statement);
  }
  /// Empty for a statement without blocks, but for a jump.
  Jumps jumpsOf(const Statement &statement) const;
  /// The flag of a RETURN in serial code, or `none`.
  VarId returnFlag() const { return serialReturn; }
  /// Variables and flags.
  VarId numVariables() const { return next; }
  /// How many operands each value is.
  const std::vector<uint32_t> &uses() const { return useCounts; }

private:
  struct Targets {
    VarId breakFlag = syntax::none;
    VarId continueFlag = syntax::none;
  };
  struct Summary {
    std::set<VarId> assigned;
    Jumps jumps;
  };

  Summary walk(const Block &block);
  void walk(const Statement &statement);
  Summary walkBlocks(const Statement &statement, Facts &found);
  void add(const Statement &statement, Summary &summary);
  VarId flagOf(const Statement &jump);
  void count(const Statement &statement);

  std::unordered_map<const Statement *, Facts> facts;
  std::vector<uint32_t> useCounts;
  VarId next;
  VarId serialReturn = syntax::none;
  Targets targets;                     ///< of BREAK and CONTINUE
  VarId *returnTarget = &serialReturn; ///< of RETURN
};

} // namespace costate::lowering
