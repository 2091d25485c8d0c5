#include "lowering/Analysis.h"

#include "syntax/Operands.h"

#include <utility>

namespace costate::lowering {

using syntax::countOf;
using syntax::Kind;
using syntax::none;
using syntax::Role;

Jumps &Jumps::operator|=(Jumps other) {
  breaks |= other.breaks;
  continues |= other.continues;
  returns |= other.returns;
  return *this;
}

// What this file and Blocks.cpp tell apart.
static_assert(countOf(Role::Jump) == 3, "Break, Continue, Return");
static_assert(countOf(Role::Control) == 4, "If, For, While, Range");

static bool isLoop(const Statement &statement) {
  return statement.kind == Kind::For || statement.kind == Kind::While;
}

Analysis::Analysis(const Kernel &kernel)
    : useCounts(kernel.values.size()),
      next(static_cast<VarId>(kernel.variables.size())) {
  for (ValueId result : kernel.results)
    ++useCounts[result];
  walk(kernel.body);
}

Jumps Analysis::jumpsOf(const Statement &statement) const {
  if (hasBlocks(statement.kind))
    return of(statement).jumps;
  return {statement.kind == Kind::Break, statement.kind == Kind::Continue,
          statement.kind == Kind::Return};
}

void Analysis::count(const Statement &statement) {
  forEachOperand(statement, [&](ValueId value) { ++useCounts[value]; });
}

/// Statements first in order, then sets from the back, where the set of a
/// suffix is the set of the next longer one without what it declares.
Analysis::Summary Analysis::walk(const Block &block) {
  for (const Statement &statement : block)
    walk(statement);
  Summary summary;
  for (size_t at = block.size(); at-- > 0;) {
    if (hasBlocks(block[at].kind) && jumpsOf(block[at]).any())
      facts[&block[at]].rest.assign(summary.assigned.begin(),
                                    summary.assigned.end());
    add(block[at], summary);
  }
  return summary;
}

void Analysis::add(const Statement &statement, Summary &summary) {
  Jumps jumps = jumpsOf(statement);
  summary.jumps |= jumps;
  if (hasBlocks(statement.kind)) {
    const Facts &found = of(statement);
    summary.assigned.insert(found.assigned.begin(), found.assigned.end());
  } else if (statement.kind == Kind::AssignVar) {
    summary.assigned.insert(statement.variable);
  } else if (statement.kind == Kind::DeclareVar) {
    summary.assigned.erase(statement.variable);
  } else if (jumps.any()) {
    summary.assigned.insert(flagOf(statement));
  }
}

VarId Analysis::flagOf(const Statement &jump) {
  VarId &flag = jump.kind == Kind::Break      ? targets.breakFlag
                : jump.kind == Kind::Continue ? targets.continueFlag
                                              : *returnTarget;
  if (flag == none)
    flag = next++;
  return flag;
}

void Analysis::walk(const Statement &statement) {
  count(statement);
  if (!hasBlocks(statement.kind))
    return;
  Facts found;
  Summary summary = walkBlocks(statement, found);
  for (VarId own : {found.breakFlag, found.continueFlag, found.returnFlag})
    summary.assigned.erase(own);
  found.assigned.assign(summary.assigned.begin(), summary.assigned.end());
  found.jumps = summary.jumps;
  facts[&statement] = std::move(found);
}

Analysis::Summary Analysis::walkBlocks(const Statement &statement,
                                       Facts &found) {
  Targets outer = targets;
  VarId *outerReturn = returnTarget;
  if (statement.kind != Kind::If)
    targets = {};
  if (statement.kind == Kind::Range)
    returnTarget = &found.returnFlag;
  Summary all;
  for (const Block &block : statement.blocks) {
    Summary one = walk(block);
    all.assigned.merge(one.assigned);
    all.jumps |= one.jumps;
  }
  if (isLoop(statement)) {
    found.breakFlag = targets.breakFlag;
    found.continueFlag = targets.continueFlag;
    all.jumps.breaks = all.jumps.continues = false;
  }
  if (statement.kind == Kind::Range)
    all.jumps = {};
  if (statement.kind != Kind::If)
    targets = outer;
  returnTarget = outerReturn;
  return all;
}

} // namespace costate::lowering
