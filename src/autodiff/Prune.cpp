#include "autodiff/Prune.h"

#include "autodiff/activity/Flow.h"
#include "ir/LoopPairs.h"
#include "ir/Operations.h"
#include "ir/Plan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// What is kept whoever needs it: effects, and besides
enum class Roots { Claims, ClaimsAndRanges, Nothing };

/// Marks what the effects of a kernel need.
class Liveness {
public:
  Liveness(ir::KernelOp kernel, Roots roots)
      : records(tape::recordsOf(kernel)) {
    if (roots == Roots::Nothing)
      kernel.walk([&](tape::ClaimOp claim) {
        if (Attribute pair = pairOf(claim))
          claims[pair] = claim;
      });
    kernel.walk([&](Operation *op) {
      bool isKept = isa<ir::RangeOp>(op)     ? roots == Roots::ClaimsAndRanges
                    : isa<tape::ClaimOp>(op) ? roots != Roots::Nothing
                                             : isRoot(op);
      if (isKept)
        keep(op);
      if (auto plan = dyn_cast<tape::PlanOp>(op))
        keepPlanned(plan);
    });
    for (size_t k = 0; k < live.size(); ++k)
      visit(live[k]);
    for (auto [number, record] : records)
      for (Value value : record.pop.getValues())
        fields[number].push_back(isLive(value));
  }

  bool isKept(Operation *op) const { return kept.contains(op); }
  bool isLive(Value value) const { return live.contains(value); }
  /// Which values of a numbered record are live.
  ArrayRef<bool> fieldsOf(int64_t number) const {
    return fields.find(number)->second;
  }

private:
  /// What a numbered record holds is live if it is used after its pop.
  static bool isRoot(Operation *op) {
    if (isa<tape::PushOp, tape::PopOp>(op))
      return !op->hasAttr("record");
    return op->getNumRegions() == 0 && !isa<ir::LoadOp>(op) &&
           !ir::isOfLocal(op) && !isa<tape::BudgetOp, tape::ScheduleOp>(op) &&
           !isMemoryEffectFree(op);
  }

  /// A plan for readers tells of records, and results of branches, as they were
  /// made.
  void keepPlanned(tape::PlanOp plan) {
    for (auto [number, record] : records)
      for (Value value : record.pop.getValues())
        need(value);
    auto branch = dyn_cast<scf::IfOp>(plan->getParentOp());
    Operation *yield = plan->getBlock()->getTerminator();
    for (auto [at, value] : llvm::enumerate(yield->getOperands()))
      if (branch && llvm::is_contained(plan.getSaved(), value))
        need(branch.getResult(at));
  }

  /// What a schedule for readers tells of: the loop over a segment, and that
  /// over the rest.
  void keepScheduled(Operation *loop) {
    tape::ScheduleOp schedule = tape::scheduleOf(loop);
    if (!schedule)
      return;
    keep(schedule);
    for (Operation &part : *tape::bodyOf(loop))
      if (part.hasAttr(ir::segmentAttr))
        keep(&part);
    Operation *rest = schedule.getRest() ? loop->getNextNode() : nullptr;
    while (rest && !rest->hasAttr(ir::restAttr))
      rest = rest->getNextNode();
    if (rest)
      keep(rest);
  }

  /// A private array that somebody loads from needs what is written to it.
  void keepWrites(ir::LocalOp local) {
    for (Operation *user : local->getUsers())
      if (ir::writesLocal(user))
        keep(user);
  }

  void need(Value value) { live.insert(value); }

  void keep(Operation *op) {
    while (!isa<ir::KernelOp>(op) && kept.insert(op).second) {
      needOperands(op);
      keepClaim(op);
      if (isa<scf::ForOp, scf::WhileOp>(op))
        keepScheduled(op);
      op = op->getParentOp();
    }
  }

  /// The forward loop that runs again is in front of what it claims, or around
  /// it, if it is cut as it runs.
  static Attribute pairOf(tape::ClaimOp claim) {
    Operation *loop = claim->getParentOp();
    if (!loop->hasAttr(ir::rerunAttr))
      loop = claim->getPrevNode();
    while (!loop->hasAttr(ir::rerunAttr))
      loop = loop->getPrevNode();
    return loop->getAttr(tape::pairAttr);
  }

  /// What is saved when the loop runs again has been claimed, whatever the
  /// forward sweep saves.
  void keepClaim(Operation *op) {
    Attribute pair = op->getAttr(tape::pairAttr);
    if (Operation *claim = pair ? claims.lookup(pair) : nullptr)
      keep(claim);
  }

  /// What an operation needs whichever of its results are live.
  void needOperands(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      need(loop.getLowerBound());
      need(loop.getUpperBound());
      need(loop.getStep());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      need(loop.getConditionOp().getCondition());
    } else if (!isa<tape::PushOp>(op) || isRoot(op)) {
      for (Value operand : op->getOperands())
        need(operand);
    }
  }

  void visit(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      op = cast<BlockArgument>(value).getOwner()->getParentOp();
    keep(op);
    for (Value source : sourcesOf(value))
      need(source);
    if (auto local = dyn_cast<ir::LocalOp>(op)) {
      keepWrites(local);
    } else if (auto pop = dyn_cast<tape::PopOp>(op); pop && pop.getRecord()) {
      if (tape::PushOp push = records.lookup(*pop.getRecord()).push) {
        keep(push);
        need(push.getValues()[cast<OpResult>(value).getResultNumber()]);
      }
    }
  }

  llvm::DenseMap<int64_t, tape::Record> records;
  llvm::DenseMap<Attribute, Operation *> claims; ///< by pairs of loops
  llvm::DenseMap<int64_t, SmallVector<bool>> fields;
  llvm::DenseSet<Operation *> kept;
  llvm::SetVector<Value> live; ///< grows while it is gone through
};

/// Erases what is not live and rebuilds loops and branches without their dead
/// values.
class Sweep {
public:
  explicit Sweep(const Liveness &liveness) : liveness(liveness) {}

  void block(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (op.hasTrait<OpTrait::IsTerminator>())
        continue;
      if (!liveness.isKept(&op)) {
        op.dropAllUses();
        op.erase();
        continue;
      }
      if (isa<ir::CustomOp>(op))
        continue;
      if (op.getNumRegions())
        shrink(&op);
      else if (auto push = dyn_cast<tape::PushOp>(op))
        shrinkPush(push);
      else if (auto pop = dyn_cast<tape::PopOp>(op); pop && pop.getRecord())
        rebuild(pop, {});
    }
  }

private:
  /// Keeps of `values` those whose counterpart is live.
  SmallVector<Value> pick(ValueRange values, ValueRange counterparts) {
    SmallVector<Value> picked;
    for (auto [value, counterpart] : llvm::zip(values, counterparts))
      if (liveness.isLive(counterpart))
        picked.push_back(value);
    return picked;
  }

  void eraseArguments(Block &block) {
    block.eraseArguments([&](BlockArgument argument) {
      bool index =
          isa<scf::ForOp>(block.getParentOp()) && argument.getArgNumber() == 0;
      if (index || liveness.isLive(argument))
        return false;
      argument.dropAllUses();
      return true;
    });
  }

  void shrink(Operation *op) {
    SmallVector<Value> operands(op->getOperands());
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      operands.assign(
          {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
      llvm::append_range(operands, pick(loop.getInitArgs(), loop.getResults()));
      setTerminator(*loop.getBody(), loop.getResults());
      eraseArguments(*loop.getBody());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      operands = pick(loop.getInits(), loop.getBeforeArguments());
      shrinkWhile(loop);
    } else {
      for (Region &region : op->getRegions())
        if (!region.empty())
          setTerminator(region.front(), op->getResults());
    }
    for (Region &region : op->getRegions())
      if (!region.empty())
        block(region.front());
    rebuild(op, operands);
  }

  void shrinkWhile(scf::WhileOp loop) {
    scf::ConditionOp condition = loop.getConditionOp();
    SmallVector<Value> forwarded = pick(condition.getArgs(), loop.getResults());
    condition.getArgsMutable().assign(forwarded);
    scf::YieldOp yield = loop.getYieldOp();
    SmallVector<Value> next =
        pick(yield.getOperands(), loop.getBeforeArguments());
    yield->setOperands(next);
    eraseArguments(*loop.getBeforeBody());
    eraseArguments(*loop.getAfterBody());
  }

  void setTerminator(Block &block, ValueRange results) {
    Operation *terminator = block.getTerminator();
    SmallVector<Value> yielded = pick(terminator->getOperands(), results);
    terminator->setOperands(yielded);
  }

  void shrinkPush(tape::PushOp push) {
    if (!push.getRecord())
      return;
    SmallVector<Value> values;
    for (auto [value, isLive] :
         llvm::zip(push.getValues(), liveness.fieldsOf(*push.getRecord())))
      if (isLive)
        values.push_back(value);
    push->setOperands(values);
  }

  void rebuild(Operation *op, ArrayRef<Value> operands) {
    SmallVector<Type> types;
    for (Value result : op->getResults())
      if (liveness.isLive(result))
        types.push_back(result.getType());
    if (types.size() == op->getNumResults() &&
        operands.size() == op->getNumOperands())
      return;
    Operation *shrunk = ir::remade(op, operands, types);
    unsigned next = 0;
    for (Value result : op->getResults())
      if (liveness.isLive(result))
        result.replaceAllUsesWith(shrunk->getResult(next++));
    op->dropAllUses();
    op->erase();
  }

  const Liveness &liveness;
};

} // namespace

static void prune(ir::KernelOp kernel, Roots roots) {
  Liveness liveness(kernel, roots);
  Sweep(liveness).block(kernel.getBodyRegion().front());
}

void prune(ir::KernelOp kernel) { prune(kernel, Roots::Claims); }

void pruneWithinParts(ir::KernelOp kernel) {
  prune(kernel, Roots::ClaimsAndRanges);
}

void pruneGradient(ir::KernelOp gradient) {
  prune(gradient, Roots::Nothing);
  gradient.walk([](tape::ScheduleOp schedule) {
    if (schedule.getKeep() &&
        !ir::contains<tape::PushOp>(tape::loopOf(schedule)))
      schedule.erase();
  });
}

} // namespace costate::autodiff
