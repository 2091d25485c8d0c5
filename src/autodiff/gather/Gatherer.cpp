#include "autodiff/gather/Gatherer.h"

#include "autodiff/gather/Forms.h"
#include "autodiff/gather/Numbers.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

/// Copies for single elements of the border.
static constexpr size_t mostCopies = 128;

bool Gatherer::plan() {
  inner.resize(range.getIndices().size());
  hull.resize(inner.size());
  size_t copies = 0;
  for (const Addition &addition : additions) {
    size_t product = 1;
    auto &mine = candidatesOf[addition.op];
    for (auto [p, reach] : llvm::enumerate(addition.reaches)) {
      auto found = candidates(reach, extentOf(p), assumed);
      if (!found)
        return false;
      product *= found->size();
      mine.push_back(std::move(*found));
      for (const Affine &form : reach.steps->assumed)
        assumed.push_back(form);
      bound(reach, extentOf(p), conditionsOf(addition, p), inner[p], hull[p]);
    }
    copies += product;
  }
  // Of several candidates most are not there, and none is loaded for them.
  branchless &= copies == additions.size();
  if (branchless)
    assumeItems();
  return copies <= mostCopies;
}

void Gatherer::emitRange() {
  front.setInsertionPoint(range);
  Values lows, extents;
  for (Bounds &bounds : hull) {
    Value low = least(front, bounds.lows),
          high = least(front, bounds.highs, -1);
    lows.push_back(low);
    extents.push_back(front.createOrFold<arith::SubIOp>(high, low));
  }
  if (branchless)
    emptyIfNoItems(extents.front());
  if (numbered)
    return emitNumbered(lows, extents);
  auto gather = emitRange(extents);
  Builder b = Builder::atBlockBegin(range.getLoc(), gather.getBody());
  for (auto [low, index] : llvm::zip(lows, gather.getIndices()))
    element.push_back(b.createOrFold<arith::AddIOp>(index, low));
  emitParts(b);
}

Affine Gatherer::extentOf(unsigned p) const {
  return analysis.extentOf(indices[p]);
}

void Gatherer::assumeItems() {
  for (const Together &together : together())
    for (auto [p, side] : llvm::enumerate(commonConditions(together).sides)) {
      for (const Affine &low : side.lows)
        assumed.push_back(extentOf(p) - low - 1);
      for (const Affine &high : side.highs) {
        assumed.push_back(high - 1);
        for (const Affine &low : side.lows)
          assumed.push_back(high - low - 1);
      }
    }
}

void Gatherer::emptyIfNoItems(Value &extent) {
  Value zero = indexConstant(front, 0);
  for (Value count : range.getExtents())
    extent = front.createOrFold<arith::SelectOp>(
        compare(front, arith::CmpIPredicate::sgt, count, zero), extent, zero);
}

Bounds Gatherer::conditionsOf(const Addition &addition, unsigned p) {
  Bounds bounds;
  Operation *op = addition.op;
  for (; op->getParentOp() != range; op = op->getParentOp()) {
    auto branch = cast<scf::IfOp>(op->getParentOp());
    bool answer = op->getBlock() == branch.thenBlock();
    addCondition(branch.getCondition(), answer, p, bounds);
  }
  return bounds;
}

void Gatherer::addCondition(Value condition, bool answer, unsigned p,
                            Bounds &bounds) {
  if (auto conjunction = condition.getDefiningOp<arith::AndIOp>();
      conjunction && answer) {
    addCondition(conjunction.getLhs(), true, p, bounds);
    addCondition(conjunction.getRhs(), true, p, bounds);
    return;
  }
  const Steps *steps = analysis.of(condition);
  if (!steps || steps->index != indices[p] || !steps->assumed.empty())
    return;
  auto isOther = [&](const Step &step) { return step.answer() == !answer; };
  if (isOther(steps->all.front()))
    bounds.lows.push_back(steps->end(0, extentOf(p)));
  if (isOther(steps->all.back()))
    bounds.highs.push_back(steps->all.back().from);
}

ir::RangeOp Gatherer::emitRange(ValueRange extents) {
  auto gather = ir::RangeOp::create(front, extents);
  gather->setAttr(ir::gatherAttr, front.getUnitAttr());
  front.setInsertionPoint(gather);
  return gather;
}

void Gatherer::emitNumbered(ValueRange lows, ValueRange extents) {
  Values highs;
  for (auto [low, extent] : llvm::zip(lows, extents))
    highs.push_back(front.createOrFold<arith::AddIOp>(low, extent));
  ir::RangeOp gather = emitRange(lows.front());
  Builder b = Builder::atBlockBegin(range.getLoc(), gather.getBody());
  scf::IfOp items = emitBranch(b);
  Builder then(range.getLoc(), items.thenBlock()->getTerminator());
  for (size_t p = 0; p < lows.size(); ++p)
    element.push_back(UnrealizedConversionCastOp::create(
                          then, then.getI64Type(), ValueRange())
                          .getResult(0));
  emitInterior(then);
  SmallVector<Cut> cuts; // which the interior decides
  for (auto [p, low] : llvm::enumerate(lows))
    cuts.push_back(cutBetween(front, low, least(front, inner[p].lows, -1),
                              least(front, inner[p].highs), highs[p]));
  gather.getExtentsMutable().assign(countAll(front, cuts));
  Value number = gather.getIndices().front(), inside = countInside(front, cuts);
  b.setInsertionPoint(items);
  items.getConditionMutable().assign(
      compare(b, arith::CmpIPredicate::slt, number, inside));
  then.setInsertionPointToStart(items.thenBlock());
  for (auto [unknown, value] :
       llvm::zip(element, elementInside(front, then, cuts, number))) {
    unknown.replaceAllUsesWith(value);
    unknown.getDefiningOp()->erase();
  }
  Builder otherwise(range.getLoc(), items.elseBlock()->getTerminator());
  element = elementOfBorder(front, otherwise, cuts,
                            arith::SubIOp::create(otherwise, number, inside));
  emitBorder(otherwise, /*ofRow=*/false);
}

void Gatherer::emitParts(Builder &b) {
  unsigned last = inner.size() - 1;
  scf::IfOp rows;
  if (last > 0) {
    rows = emitBranch(b);
    Builder otherwise(range.getLoc(), rows.elseBlock()->getTerminator());
    emitBorder(otherwise, /*ofRow=*/false);
  }
  Block *whole = rows ? rows.thenBlock() : b.getInsertionBlock();
  Builder row(range.getLoc(), whole->getTerminator());
  scf::IfOp items = emitBranch(row);
  Builder then(range.getLoc(), items.thenBlock()->getTerminator());
  emitInterior(then);
  Builder otherwise(range.getLoc(), items.elseBlock()->getTerminator());
  emitBorder(otherwise, /*ofRow=*/last > 0);
  b.setInsertionPoint(rows ? rows : items);
  items.getConditionMutable().assign(isInside(b, last, last + 1));
  if (rows)
    rows.getConditionMutable().assign(isInside(b, 0, last));
}

scf::IfOp Gatherer::emitBranch(Builder &b) {
  Value unknown = arith::ConstantOp::create(b, b.getBoolAttr(true));
  auto branch = scf::IfOp::create(b, unknown, /*withElseRegion=*/true);
  branch->setAttr(ir::interiorAttr, front.getUnitAttr());
  return branch;
}

Value Gatherer::isInside(Builder &b, unsigned begin, unsigned end) {
  using P = arith::CmpIPredicate;
  Value inside;
  for (unsigned p = begin; p < end; ++p) {
    Value low = least(front, inner[p].lows, -1),
          high = least(front, inner[p].highs);
    inside = both(b, inside, compare(b, P::sge, element[p], low));
    inside = both(b, inside, compare(b, P::slt, element[p], high));
  }
  return inside;
}

} // namespace costate::autodiff
