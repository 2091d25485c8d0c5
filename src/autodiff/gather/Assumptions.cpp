#include "autodiff/gather/Assumptions.h"

#include "autodiff/gather/Conditions.h"
#include "autodiff/gather/Forms.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

static constexpr llvm::StringLiteral otherwiseAttr = "costate.otherwise";

bool isOtherwise(ir::RangeOp range) { return range->hasAttr(otherwiseAttr); }

std::optional<SmallVector<Affine>> undecided(ArrayRef<Affine> forms) {
  SmallVector<Affine> rest;
  for (const Affine &form : forms) {
    if (form.isConstant() && form.constant < 0)
      return std::nullopt;
    if (form.isConstant() ||
        llvm::any_of(rest, [&](const Affine &a) { return isSame(a, form); }))
      continue;
    if (!isKnownToHost(form))
      return std::nullopt;
    rest.push_back(form);
  }
  return rest;
}

void divide(ir::RangeOp range, ArrayRef<Affine> forms) {
  Builder b(range.getLoc(), range);
  Value holds;
  for (const Affine &form : forms)
    holds = both(b, holds,
                 compare(b, arith::CmpIPredicate::sge, emit(b, form),
                         indexConstant(b, 0)));
  auto branch = scf::IfOp::create(b, range.getResultTypes(), holds,
                                  /*withElseRegion=*/true);
  range->replaceAllUsesWith(branch);
  Operation *other = range->clone();
  other->setAttr(otherwiseAttr, b.getUnitAttr());
  for (auto [block, op] : {std::pair(branch.thenBlock(), range.getOperation()),
                           std::pair(branch.elseBlock(), other)}) {
    if (op->getBlock())
      op->moveBefore(block, block->begin());
    else
      block->push_front(op);
    if (op->getNumResults()) {
      b.setInsertionPointToEnd(block);
      scf::YieldOp::create(b, op->getResults());
    }
  }
}

} // namespace costate::autodiff
