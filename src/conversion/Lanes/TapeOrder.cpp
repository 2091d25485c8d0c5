#include "conversion/Lanes/TapeOrder.h"

using namespace mlir;

namespace costate::conversion {

TapeOrder::TapeOrder(scf::ForOp row, const Shapes &shapes)
    : shapes(shapes), records(tape::recordsOf(row)) {
  visit(row.getRegion());
}

void TapeOrder::visit(Region &region) {
  for (Operation &op : region.getOps())
    visit(&op);
}

void TapeOrder::visit(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visitIf(branch);
  for (Region &region : op->getRegions())
    visit(region);
  auto push = dyn_cast<tape::PushOp>(op);
  auto pop = dyn_cast<tape::PopOp>(op);
  if (!push && !pop)
    return;
  std::optional<int64_t> number = push ? push.getRecord() : pop.getRecord();
  if (!number)
    opposite = false;
  else if (records.contains(*number))
    push ? tape.push_back(*number) : take(*number);
}

void TapeOrder::visitIf(scf::IfOp branch) {
  Region &then = branch.getThenRegion(), &other = branch.getElseRegion();
  bool isSwapped = heightOf(other) > heightOf(then);
  if (isSwapped)
    elseFirst.insert(branch);
  visit(isSwapped ? other : then);
  visit(isSwapped ? then : other);
}

size_t TapeOrder::heightOf(Region &region) const {
  size_t height = 0;
  region.walk([&](tape::PopOp pop) {
    for (size_t k = tape.size(); pop.getRecord() && k > height; --k)
      if (tape[k - 1] == int64_t(*pop.getRecord()))
        height = k;
  });
  return height;
}

void TapeOrder::take(int64_t number) {
  for (size_t k = tape.size(); k > 0; --k) {
    if (tape[k - 1] == number) {
      tape.erase(tape.begin() + (k - 1));
      return;
    }
    if (!areApart(records.at(tape[k - 1]), records.at(number)))
      break;
  }
  opposite = false;
}

/// Whether `a` and `b` stand on different sides of a branch that all lanes take
/// together.
static bool areOnSides(Operation *a, Operation *b, const Shapes &shapes) {
  Region *side = a->getParentRegion();
  while (!side->getParentOp()->isAncestor(b))
    side = side->getParentRegion();
  auto branch = dyn_cast<scf::IfOp>(side->getParentOp());
  return branch && !side->isAncestor(b->getParentRegion()) &&
         shapes.isUniform(branch.getCondition());
}

bool TapeOrder::areApart(const tape::Record &a, const tape::Record &b) const {
  return areOnSides(a.push, b.push, shapes) || areOnSides(a.pop, b.pop, shapes);
}

} // namespace costate::conversion
