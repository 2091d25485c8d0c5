#include "autodiff/gather/Remainders.h"

#include "autodiff/gather/Additions.h"
#include "autodiff/gather/Assumptions.h"
#include "autodiff/gather/Conditions.h"
#include "autodiff/gather/Forms.h"
#include "autodiff/replay/Accesses.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::autodiff {

namespace {

/// A value that becomes a choice.
struct Choice {
  Value value;
  const Steps *steps;
};

/// The choices of one range.
class Chooser {
public:
  Chooser(ir::RangeOp range, bool splits)
      : range(range), analysis(range), splits(splits) {}

  void run() {
    find();
    if (choices.empty() || !assume())
      return;
    Builder b = Builder::atBlockBegin(range.getLoc(), range.getBody());
    Operation *first = &range.getBody()->front();
    for (const Choice &choice : choices)
      emit(choice, b);
    Operation *last = first->getPrevNode();
    eraseUnused();
    if (splits && last && canSplit())
      split(last);
  }

private:
  //===-- Which values ----------------------------------------------------===//

  void find() {
    range.walk([&](Operation *op) {
      if (op == range || op->getNumResults() != 1)
        return;
      Value value = op->getResult(0);
      if (isRemainder(op) || isFrom(op))
        remainders.insert(value);
      if (remainders.contains(value))
        if (const Steps *steps = chosen(value))
          candidates[value] = steps;
    });
    for (auto [value, steps] : candidates)
      if (!isPartOfCandidates(value))
        choices.push_back({value, steps});
  }

  static bool isRemainder(Operation *op) {
    auto rem = dyn_cast<ir::RemOp>(op);
    return rem && !rem.getIsUnsigned();
  }

  /// Whether `op` computes an index from a remainder.
  bool isFrom(Operation *op) const {
    return isa<arith::AddIOp, arith::SubIOp, arith::SelectOp, arith::ExtSIOp,
               arith::TruncIOp>(op) &&
           llvm::any_of(op->getOperands(), [&](Value operand) {
             return remainders.contains(operand);
           });
  }

  /// The steps of `value`, if they are few and can be computed.
  const Steps *chosen(Value value) {
    constexpr size_t most = 4;
    Type type = value.getType();
    if (!type.isInteger(64) && !type.isInteger(32))
      return nullptr;
    const Steps *steps = analysis.of(value);
    bool serves =
        steps && steps->index && steps->all.size() <= most &&
        llvm::all_of(steps->all, [&](const Step &step) {
          return isCommon(step.from, {}) && isCommon(step.value, steps->index);
        });
    return serves ? steps : nullptr;
  }

  /// Whether all that `form` is made of, but for `index`, is there in front of
  /// the range.
  bool isCommon(const Affine &form, Value index) {
    return llvm::all_of(form.terms, [&](auto &term) {
      Value symbol = term.first;
      return symbol == index ||
             !range.getBodyRegion().isAncestor(symbol.getParentRegion());
    });
  }

  bool isPartOfCandidates(Value value) const {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      return user->getNumResults() == 1 &&
             candidates.contains(user->getResult(0));
    });
  }

  //===-- Assumptions -----------------------------------------------------===//

  /// Makes the range one in which all steps hold, if that can be.
  bool assume() {
    SmallVector<Affine> open;
    llvm::erase_if(choices, [&](const Choice &choice) {
      auto forms = undecided(choice.steps->assumed);
      if (!forms || (!forms->empty() && pushes(range)))
        return true;
      for (const Affine &form : *forms)
        if (llvm::none_of(open,
                          [&](const Affine &a) { return isSame(a, form); }))
          open.push_back(form);
      return false;
    });
    if (!open.empty())
      divide(range, open);
    return !choices.empty();
  }

  //===-- Choices ---------------------------------------------------------===//

  /// In front of the range.
  Value common(const Affine &form) {
    Builder front(range.getLoc(), range);
    return autodiff::emit(front, form);
  }

  /// `index` times a coefficient, and what is common.
  Value formOf(Builder &b, const Affine &form, Value index) {
    int64_t coefficient = form.coefficient(index);
    Affine rest = form;
    rest.terms.erase(index);
    Value value = common(rest);
    if (coefficient == 0)
      return value;
    Value product =
        coefficient == 1
            ? index
            : arith::MulIOp::create(b, index, indexConstant(b, coefficient))
                  .getResult();
    return arith::AddIOp::create(b, product, value);
  }

  /// Where the value is, if that is in a branch; else with `front`.
  void emit(const Choice &choice, Builder &front) {
    Operation *op = choice.value.getDefiningOp();
    if (op->getBlock() == range.getBody())
      return emit(front, choice);
    Builder inner(op->getLoc(), op);
    emit(inner, choice);
  }

  void emit(Builder &b, const Choice &choice) {
    const Steps &steps = *choice.steps;
    Value result = formOf(b, steps.all.front().value, steps.index);
    for (const Step &step : llvm::drop_begin(steps.all)) {
      Value value = formOf(b, step.value, steps.index);
      Value isThere =
          compare(b, arith::CmpIPredicate::sge, steps.index, common(step.from));
      result = arith::SelectOp::create(b, isThere, value, result);
    }
    replace(b, choice, result);
  }

  void replace(Builder &b, Choice choice, Value result) {
    result = ofType(b, result, choice.value.getType());
    choice.value.replaceAllUsesWith(result);
    if (choice.steps->index == range.getIndices().back())
      along.push_back({result, choice.steps});
  }

  void eraseUnused() {
    for (Value value : llvm::reverse(remainders))
      if (value.use_empty())
        value.getDefiningOp()->erase();
  }

  //===-- The interior ----------------------------------------------------===//

  /// Code that LLVM may make vectors of, and not too much of it.
  bool canSplit() {
    constexpr int64_t most = 500;
    int64_t count = 0;
    return !along.empty() && range.getNumResults() == 0 &&
           !ir::contains(range.getBodyRegion(), [&](Operation *op) {
             return ++count > most || !isPlain(op);
           });
  }

  static bool isPlain(Operation *op) {
    if (auto add = dyn_cast<ir::AtomicAddOp>(op))
      return add.getExclusive();
    return isa<ir::LoadOp, ir::StoreOp, ir::YieldOp>(op) ||
           (op->getNumRegions() == 0 && isPure(op));
  }

  /// What is behind `last`.
  void split(Operation *last) {
    Builder b(range.getLoc(), last->getNextNode());
    auto branch = scf::IfOp::create(b, isInside(b), /*withElseRegion=*/true);
    branch->setAttr(ir::interiorAttr, b.getUnitAttr());
    Builder then(range.getLoc(), branch.thenBlock()->getTerminator());
    IRMapping values;
    for (const Choice &choice : along)
      values.map(choice.value, inside(then, choice));
    auto rest =
        llvm::make_range(std::next(branch->getIterator()),
                         range.getBody()->getTerminator()->getIterator());
    for (Operation &op : rest)
      then.clone(op, values);
    Block *otherwise = branch.elseBlock();
    otherwise->getOperations().splice(otherwise->begin(),
                                      range.getBody()->getOperations(),
                                      rest.begin(), rest.end());
  }

  Affine extent() { return analysis.extentOf(range.getIndices().back()); }

  /// Of the steps along the last index the longest ones.
  Value isInside(Builder &b) {
    std::vector<Affine> lows, highs;
    for (const Choice &choice : along) {
      size_t main = choice.steps->longest(extent());
      lows.push_back(choice.steps->all[main].from);
      highs.push_back(choice.steps->end(main, extent()));
    }
    Builder front(range.getLoc(), range);
    Value index = range.getIndices().back();
    return both(
        b, compare(b, arith::CmpIPredicate::sge, index, least(front, lows, -1)),
        compare(b, arith::CmpIPredicate::slt, index, least(front, highs)));
  }

  Value inside(Builder &b, const Choice &choice) {
    const Steps &steps = *choice.steps;
    Value value =
        formOf(b, steps.all[steps.longest(extent())].value, steps.index);
    return ofType(b, value, choice.value.getType());
  }

  ir::RangeOp range;
  StepAnalysis analysis;
  const bool splits;
  llvm::SetVector<Value> remainders; ///< and what is computed from them
  llvm::MapVector<Value, const Steps *> candidates;
  SmallVector<Choice> choices;
  SmallVector<Choice> along; ///< the last index, with new values
};

} // namespace

/// Whether remainders of its indices take much of its time.
static bool isShort(ir::RangeOp range) {
  return !ir::contains(range.getBodyRegion(),
                       llvm::IsaPred<LoopLikeOpInterface>);
}

void chooseRemainders(ir::KernelOp kernel, bool splits) {
  auto isWanted = [](ir::RangeOp range) {
    return !range->hasAttr(ir::gatherAttr) && !isOtherwise(range) &&
           isShort(range);
  };
  for (auto range : ir::all<ir::RangeOp>(kernel, isWanted))
    Chooser(range, splits).run();
}

} // namespace costate::autodiff
