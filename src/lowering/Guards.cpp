#include "lowering/Guards.h"

#include <unordered_map>

namespace costate::lowering {

using namespace syntax;

static bool isLogical(const Statement &statement) {
  return statement.kind == Kind::Pure && statement.type == DType::Bool &&
         (statement.op == Op::And || statement.op == Op::Or);
}

Guards::Guards(const Block &block, const std::vector<uint32_t> &uses,
               std::vector<uint32_t> &position)
    : block(block), uses(uses), position(position), owner(block.size(), none) {
  std::vector<uint32_t> firstMovable(block.size());
  uint32_t first = 0;
  for (uint32_t at = 0; at < block.size(); ++at) {
    firstMovable[at] = first;
    if (hasEffect(block[at].kind))
      first = at + 1;
    if (block[at].value != none)
      position[block[at].value] = at;
  }
  // From the back: an operator inside a guarded operand takes its part.
  for (size_t at = block.size(); at-- > 0;)
    if (isLogical(block[at]))
      claim(at, firstMovable[at]);
  for (uint32_t at = 0; at < block.size(); ++at) {
    if (!isGuarded(at))
      continue;
    guarded.resize(block.size());
    guarded[owner[at]].push_back(at);
  }
}

const std::vector<uint32_t> &Guards::guardedBy(size_t at) const {
  static const std::vector<uint32_t> nothing;
  return at < guarded.size() ? guarded[at] : nothing;
}

bool Guards::isMovable(ValueId value, uint32_t first, uint32_t last) const {
  uint32_t at = position[value];
  return at >= first && at < last && block[at].value == value &&
         block[at].kind != Kind::Scalar;
}

void Guards::claim(size_t at, uint32_t firstMovable) {
  std::unordered_map<ValueId, uint32_t> seen;
  std::vector<ValueId> todo = {block[at].operands[1]};
  std::vector<uint32_t> found;
  bool loads = false;
  while (!todo.empty()) {
    ValueId value = todo.back();
    todo.pop_back();
    if (++seen[value] != uses[value] || !isMovable(value, firstMovable, at))
      continue;
    const Statement &statement = block[position[value]];
    loads |= statement.kind == Kind::Load ||
             statement.kind == Kind::LoadLocal || statement.kind == Kind::Call;
    found.push_back(position[value]);
    todo.insert(todo.end(), statement.operands.begin(),
                statement.operands.end());
  }
  if (loads)
    for (uint32_t one : found)
      owner[one] = at;
}

} // namespace costate::lowering
