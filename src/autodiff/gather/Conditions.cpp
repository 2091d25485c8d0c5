#include "autodiff/gather/Conditions.h"

#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::autodiff {

Value emit(Builder &b, const Affine &form, Value index, Value item) {
  auto wide = [&](Value value) -> Value {
    return value.getType().isInteger(64)
               ? value
               : b.createOrFold<arith::ExtSIOp>(b.getI64Type(), value);
  };
  Value sum;
  for (auto [symbol, coefficient] : form.terms) {
    Value term = wide(symbol == index ? item : symbol);
    if (coefficient != 1)
      term = b.createOrFold<arith::MulIOp>(term, indexConstant(b, coefficient));
    sum = sum ? b.createOrFold<arith::AddIOp>(sum, term) : term;
  }
  if (!sum)
    return indexConstant(b, form.constant);
  return form.constant ? b.createOrFold<arith::AddIOp>(
                             sum, indexConstant(b, form.constant))
                       : sum;
}

//===-- Boxes -------------------------------------------------------------===//

bool Box::add(StepAnalysis &analysis, ir::RangeOp range, Value condition,
              bool answer, Accepts accepts) {
  if (auto conjunction = condition.getDefiningOp<arith::AndIOp>();
      conjunction && answer) {
    bool holds = add(analysis, range, conjunction.getLhs(), true, accepts);
    return add(analysis, range, conjunction.getRhs(), true, accepts) && holds;
  }
  const Steps *steps = analysis.of(condition);
  if (!steps || !steps->index || !steps->assumed.empty())
    return false;
  auto isWanted = [&](const Step &step) { return step.answer() == answer; };
  bool isKnown = llvm::all_of(
      steps->all, [](const Step &step) { return step.answer().has_value(); });
  if (!isKnown || llvm::count_if(steps->all, isWanted) != 1 ||
      !accepts(condition, *steps))
    return false;
  size_t k = llvm::find_if(steps->all, isWanted) - steps->all.begin();
  sides.resize(range.getIndices().size());
  Bounds &side = sides[cast<BlockArgument>(steps->index).getArgNumber()];
  if (k > 0)
    side.lows.push_back(steps->all[k].from);
  if (k + 1 < steps->all.size())
    side.highs.push_back(steps->all[k + 1].from);
  answers[condition] = answer;
  return true;
}

//===-- Choices -----------------------------------------------------------===//

/// Whether both sides of `branch` compute a few integers and do nothing else.
static bool isChoice(scf::IfOp branch) {
  constexpr size_t most = 4;
  auto isCheap = [](Block &block) {
    size_t count = 0;
    return llvm::all_of(block.without_terminator(), [&](Operation &op) {
      return ++count <= most && op.getNumRegions() == 0 && isPure(&op) &&
             !isa<ir::DivOp, ir::RemOp>(op);
    });
  };
  return branch.getNumResults() && branch.elseBlock() &&
         llvm::all_of(branch.getResultTypes(),
                      [](Type type) { return type.isInteger(); }) &&
         isCheap(*branch.thenBlock()) && isCheap(*branch.elseBlock());
}

static Value choose(Builder &b, Value condition, Value yes, Value no) {
  if (matchPattern(no, m_Zero()) && no.getType().isInteger(1))
    return b.createOrFold<arith::AndIOp>(condition, yes);
  if (matchPattern(yes, m_One()) && yes.getType().isInteger(1))
    return b.createOrFold<arith::OrIOp>(condition, no);
  return b.createOrFold<arith::SelectOp>(condition, yes, no);
}

void flattenChoices(ir::RangeOp range) {
  for (auto branch : ir::all<scf::IfOp>(range)) {
    if (!isChoice(branch))
      continue;
    for (Block *side : {branch.thenBlock(), branch.elseBlock()})
      branch->getBlock()->getOperations().splice(
          branch->getIterator(), side->getOperations(), side->begin(),
          std::prev(side->end()));
    Builder b(branch.getLoc(), branch);
    for (auto [result, yes, no] :
         llvm::zip(branch.getResults(), branch.thenYield().getOperands(),
                   branch.elseYield().getOperands()))
      result.replaceAllUsesWith(choose(b, branch.getCondition(), yes, no));
    branch.erase();
  }
}

//===-- Ranges ------------------------------------------------------------===//

/// The branch in which all that `range` does stands.
static scf::IfOp onlyBranch(ir::RangeOp range) {
  scf::IfOp found;
  for (Operation &op : range.getBody()->without_terminator()) {
    if (isa<tape::PivotOp>(op) || (op.getNumRegions() == 0 && isPure(&op)))
      continue;
    auto branch = dyn_cast<scf::IfOp>(op);
    if (found || !branch || branch.getNumResults() || branch.elseBlock())
      return {};
    found = branch;
  }
  return found;
}

/// Takes `branch` away, which all work items enter.
static void enter(scf::IfOp branch) {
  Block *side = branch.thenBlock();
  branch->getBlock()->getOperations().splice(
      branch->getIterator(), side->getOperations(), side->begin(),
      std::prev(side->end()));
  branch.erase();
}

void narrow(ir::RangeOp range) {
  scf::IfOp branch = onlyBranch(range);
  if (!branch || range.getNumResults())
    return;
  StepAnalysis analysis(range);
  Box box;
  auto all = [](Value, const Steps &) { return true; };
  if (!box.add(analysis, range, branch.getCondition(), true, all))
    return;
  Builder front(range.getLoc(), range);
  Builder inside = Builder::atBlockBegin(range.getLoc(), range.getBody());
  SmallVector<Value> extents;
  for (auto [side, index, extent] :
       llvm::zip(box.sides, range.getIndices(), range.getExtents())) {
    Value low = emit(front, Affine()), high = extent;
    for (const Affine &form : side.lows)
      low = front.createOrFold<arith::MaxSIOp>(low, emit(front, form));
    for (const Affine &form : side.highs)
      high = front.createOrFold<arith::MinSIOp>(high, emit(front, form));
    extents.push_back(front.createOrFold<arith::SubIOp>(high, low));
    Value old = arith::AddIOp::create(inside, index, low);
    index.replaceAllUsesExcept(old, old.getDefiningOp());
  }
  range.getExtentsMutable().assign(extents);
  enter(branch);
}

} // namespace costate::autodiff
