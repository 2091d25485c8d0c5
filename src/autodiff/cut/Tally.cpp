#include "autodiff/cut/Tally.h"

#include "autodiff/rules/Rules.h"
#include "ir/LoopPairs.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::autodiff {

enum Which : int64_t { SoFar, BeforeLast, count };

Tally::Tally(Builder &b) {
  auto type = ir::LocalType::get(b.getContext(), b.getI64Type(), Which::count);
  numbers = ir::LocalOp::create(b, type);
  for (int64_t which : {SoFar, BeforeLast})
    store(b, indexConstant(b, 0), which);
}

Value Tally::load(Builder &b, int64_t which) const {
  return ir::LocalLoadOp::create(b, b.getI64Type(), numbers,
                                 indexConstant(b, which));
}

void Tally::store(Builder &b, Value value, int64_t which) const {
  ir::LocalStoreOp::create(b, value, numbers, indexConstant(b, which));
}

void Tally::add(Builder &b, Number bytes) const {
  Value more = bytes.at(b).asInteger();
  store(b, arith::AddIOp::create(b, load(b, SoFar), more), SoFar);
}

bool Tally::canTell(Operation *loop) {
  auto open = dyn_cast<scf::WhileOp>(loop);
  if (open && !loopsOf(*open.getBeforeBody()).empty())
    return false;
  return llvm::all_of(loopsOf(*tape::bodyOf(loop)), [](Operation *inner) {
    return LoopNumbers::of(inner) && !inner->hasAttr(ir::rerunAttr) &&
           canTell(inner);
  });
}

void Tally::addIteration(Block &body, int64_t number,
                         function_ref<bool(Operation *)> adds) const {
  SmallVector<Operation *> loops = loopsOf(body);
  Builder b(body.getParentOp()->getLoc(), &body, body.begin());
  store(b, load(b, SoFar), BeforeLast);
  add(b, recordOf(number, b));
  for (Operation *loop : loops)
    if (!adds(loop))
      addWhole(loop);
}

/// In front of a condition something may be saved once more.
void Tally::addWhole(Operation *loop) const {
  SmallVector<Operation *> inner = loopsOf(*tape::bodyOf(loop));
  Builder b(loop->getLoc(), loop->getContext());
  b.setInsertionPointAfter(loop);
  Number times = Number::ofInteger(b, iterationsOf(loop, b));
  Number more = times.constant(isa<scf::WhileOp>(loop) ? 1 : 0);
  add(b, recordOf(*LoopNumbers::of(loop), b) * (times + more));
  for (Operation *nested : inner)
    addWhole(nested);
}

Value Tally::hasRoom(Builder &b, Value room) const {
  Value all = load(b, SoFar);
  Value last = arith::SubIOp::create(b, all, load(b, BeforeLast));
  Value next = arith::AddIOp::create(b, all, last);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, next, room);
}

Value Tally::bytes(Builder &b) const { return load(b, SoFar); }

} // namespace costate::autodiff
