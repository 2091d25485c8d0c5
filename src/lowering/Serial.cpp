#include "lowering/Lowering.h"

#include "syntax/Operands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace costate::lowering {

using syntax::Kind;
using syntax::none;

/// The body of a kernel. Ranges stay directly in it: a RETURN in front of a
/// range does not put it into a branch but sets its extents to 0.
void Lowering::lowerSerial(const Block &block) {
  Run run = prepare(block);
  flags.returnFlag = analysis.returnFlag();
  clear(flags.returnFlag, at(kernel.loc));
  size_t first = 0;
  while (first < block.size() && !analysis.jumpsOf(block[first]).returns)
    ++first;
  lower(run, 0, std::min(first + 1, block.size()));
  if (first < block.size() && block[first].kind != Kind::Return)
    lowerAfterReturn(run, first + 1);
}

void Lowering::lowerAfterReturn(const Run &run, size_t first) {
  lastUseOfValue.resize(values.size());
  lastUseOfVariable.resize(current.size());
  for (size_t at = first; at < run.block.size(); ++at)
    findLastUses(run.block[at], at);
  // Segments are branches: what they declare for each other stands in front.
  for (size_t at = first; at < run.block.size(); ++at)
    if (run.block[at].kind == Kind::DeclareLocal)
      declareLocal(run.block[at]);
  for (size_t at = first, end; at < run.block.size(); at = end) {
    end = at + 1;
    if (run.block[at].kind == Kind::Range) {
      lowerRange(run.block[at], current[flags.returnFlag]);
      continue;
    }
    while (end < run.block.size() && run.block[end].kind != Kind::Range &&
           !analysis.jumpsOf(run.block[end - 1]).returns)
      ++end;
    lowerSegment(run, at, end);
  }
}

void Lowering::findLastUses(const Statement &statement, uint32_t part) {
  forEachOperand(statement,
                 [&](ValueId value) { lastUseOfValue[value] = part; });
  if (statement.variable != none)
    lastUseOfVariable[statement.variable] = part;
  for (const Block &block : statement.blocks)
    for (const Statement &inner : block)
      findLastUses(inner, part);
}

/// What a segment assigns or declares for statements after it.
std::vector<VarId> Lowering::variablesAfter(const Run &run, size_t begin,
                                            size_t end) {
  std::set<VarId> found = {flags.returnFlag};
  for (size_t at = begin; at < end; ++at) {
    const Statement &statement = run.block[at];
    std::vector<VarId> assigned = {statement.variable};
    if (!statement.blocks.empty())
      assigned = analysis.of(statement).assigned;
    for (VarId variable : assigned)
      if (variable != none && lastUseOfVariable[variable] >= end)
        found.insert(variable);
  }
  return {found.begin(), found.end()};
}

std::vector<ValueId> Lowering::valuesAfter(const Run &run, size_t begin,
                                           size_t end) {
  std::vector<ValueId> found;
  for (size_t at = begin; at < end; ++at)
    if (run.block[at].value != none &&
        lastUseOfValue[run.block[at].value] >= end)
      found.push_back(run.block[at].value);
  return found;
}

/// Serial statements after a possible RETURN, the last of which may have one,
/// with 0 for what they leave to later statements.
void Lowering::lowerSegment(const Run &run, size_t begin, size_t end) {
  Location loc = at(run.block[begin]);
  std::vector<VarId> results = variablesAfter(run, begin, end);
  std::vector<ValueId> escaping = valuesAfter(run, begin, end);
  for (ValueId value : escaping) {
    results.push_back(current.size());
    slotTypes.push_back(kernel.values[value]);
    current.push_back(nullptr);
  }
  VarId firstSlot = current.size() - escaping.size();
  auto body = [&] {
    lower(run, begin, end);
    for (auto [i, value] : llvm::enumerate(escaping))
      current[firstSlot + i] = values[value];
  };
  Jumps returned;
  returned.returns = true;
  branch(loc, goesOn(loc, returned), results, body, nullptr);
  for (auto [i, value] : llvm::enumerate(escaping))
    values[value] = current[firstSlot + i];
}

} // namespace costate::lowering
