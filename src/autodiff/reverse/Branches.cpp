/// The reverse of branches.

#include "autodiff/reverse/Reverser.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

namespace {

/// One side of a branch and its reverse under construction.
struct Side {
  Side(Block &forward, Scope &parent, Location loc)
      : block(new Block), b(loc, loc.getContext()) {
    b.setInsertionPointToEnd(block);
    scope = &parent.nested(forward, b);
  }

  Block *block;
  Builder b;
  Scope *scope;
  Adjoints adjoints;
};

/// Appends `slots` results to `branch`, which its sides yield as `kept`, one
/// list a side; returns the new results.
SmallVector<Value> widen(scf::IfOp branch, ArrayRef<Type> slots,
                         ArrayRef<SmallVector<Value>> kept, Scope &outer) {
  for (unsigned side : {0, 1}) {
    Operation *yield = branch->getRegion(side).front().getTerminator();
    Builder b(branch.getLoc(), yield);
    SmallVector<Value> yielded(yield->getOperands());
    for (auto [slot, value] : llvm::zip(slots, kept[side]))
      yielded.push_back(value ? value
                              : arith::ConstantOp::create(
                                    b, cast<TypedAttr>(b.getZeroAttr(slot))));
    yield->setOperands(yielded);
  }
  SmallVector<Type> types(branch.getResultTypes());
  llvm::append_range(types, slots);
  Block *yes = branch.thenBlock(), *no = branch.elseBlock();
  branch.getThenRegion().getBlocks().remove(yes);
  branch.getElseRegion().getBlocks().remove(no);
  Builder b(branch.getLoc(), branch);
  SmallVector<Value> results =
      createIf(b, branch.getCondition(), types, yes, no);
  unsigned old = branch.getNumResults();
  for (auto [result, wider] : llvm::zip_first(branch.getResults(), results))
    outer.rename(result, wider);
  branch.replaceAllUsesWith(ValueRange(results).take_front(old));
  branch.erase();
  return SmallVector<Value>(llvm::drop_begin(results, old));
}

/// Gives each saved value a slot of its type; sides share slots, since only one
/// of them runs. Returns the slot of each saved value of `side`.
SmallVector<unsigned> assignSlots(ArrayRef<Value> saved,
                                  SmallVectorImpl<Type> &slots,
                                  SmallVectorImpl<Value> &kept) {
  SmallVector<unsigned> places;
  kept.resize(slots.size());
  for (Value value : saved) {
    unsigned place = 0;
    while (place < slots.size() &&
           (slots[place] != value.getType() || kept[place]))
      ++place;
    if (place == slots.size()) {
      slots.push_back(value.getType());
      kept.emplace_back();
    }
    kept[place] = value;
    places.push_back(place);
  }
  return places;
}

/// Makes what the reverses of both sides need results of the forward branch.
void keepAsResults(scf::IfOp branch, ArrayRef<Scope *> sides, Scope &outer) {
  SmallVector<Type> slots;
  SmallVector<Value> kept[2];
  SmallVector<unsigned> places[2];
  for (unsigned side : {0, 1})
    places[side] = assignSlots(sides[side]->plan(), slots, kept[side]);
  kept[0].resize(slots.size());
  SmallVector<Value> results;
  if (!slots.empty())
    results = widen(branch, slots, kept, outer);
  for (unsigned side : {0, 1}) {
    SmallVector<Value> known;
    for (unsigned place : places[side])
      known.push_back(outer.use(results[place]));
    sides[side]->finishWith(known);
  }
}

/// An else region where there is none.
void completeBranch(scf::IfOp branch) {
  if (!branch.getElseRegion().empty())
    return;
  OpBuilder b(branch.getContext());
  b.createBlock(&branch.getElseRegion());
  scf::YieldOp::create(b, branch.getLoc());
}

} // namespace

LogicalResult Reverser::reverseIf(scf::IfOp branch, Results g, Sweep &sweep) {
  completeBranch(branch);
  Location loc = branch.getLoc();
  Value condition = sweep.scope.use(branch.getCondition());
  Side yes(*branch.thenBlock(), sweep.scope, loc);
  Side no(*branch.elseBlock(), sweep.scope, loc);
  Side *sides[] = {&yes, &no};
  SmallVector<Value> names;
  for (Side *side : sides) {
    Block &forward = side == &yes ? *branch.thenBlock() : *branch.elseBlock();
    Sweep inner{side->b, *side->scope, side->adjoints};
    for (auto [value, adjoint] :
         llvm::zip(forward.getTerminator()->getOperands(), g))
      add(inner, value, adjoint);
    if (failed(reverseOps(operationsOf(forward), inner)))
      return failure();
    for (Value value : side->adjoints.remaining())
      if (!llvm::is_contained(names, value))
        names.push_back(value);
  }
  if (sweep.scope.isDirect()) {
    sweep.scope.atEnd(
        [branch, sides = std::array{yes.scope, no.scope},
         &outer = sweep.scope] { keepAsResults(branch, sides, outer); });
  } else {
    yes.scope->endWithRecord();
    no.scope->endWithRecord();
  }
  for (Side *side : sides) {
    SmallVector<Value> yielded;
    for (Value name : names)
      yielded.push_back(
          zeroIfNull(side->b, side->adjoints.take(name), name.getType()));
    scf::YieldOp::create(side->b, yielded);
  }
  SmallVector<Value> reversed = createIf(
      sweep.b, condition, TypeRange(ValueRange(names)), yes.block, no.block);
  for (auto [name, adjoint] : llvm::zip(names, reversed))
    add(sweep, name, adjoint);
  return success();
}

} // namespace costate::autodiff
