#include "autodiff/gather/Unfold.h"

#include "autodiff/Normalize.h"
#include "autodiff/replay/Accesses.h"
#include "autodiff/replay/Affine.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace costate::autodiff {

namespace {

//===-- Loops over neighbours ---------------------------------------------===//

/// Iterations of all loops around an operation, and operations of a work item.
constexpr int64_t mostNeighbours = 64, mostOperations = 2048;

/// Whether a bound does not come from sums of i32, which wrap around: what
/// Affine says of these holds for indices of arrays only.
bool isExact(Value bound) {
  Operation *op = bound.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return llvm::all_of(op->getOperands(), isExact);
  auto extension = dyn_cast_or_null<arith::ExtSIOp>(op);
  return !extension || !isa_and_nonnull<arith::AddIOp, arith::SubIOp>(
                           extension.getIn().getDefiningOp());
}

/// How many numbers there are from `low` to `high`, if that is known; else 0.
int64_t countBetween(Value low, Value high, Value step) {
  if (!matchPattern(step, m_One()))
    return 0;
  auto count = high.getDefiningOp<ir::TripCountOp>();
  if (count && matchPattern(low, m_Zero()))
    return countBetween(count.getLo(), count.getHi(), count.getStep());
  if (!isExact(low) || !isExact(high))
    return 0;
  return constantDifference(Affine::of(high), Affine::of(low)).value_or(0);
}

int64_t tripCount(scf::ForOp loop) {
  bool isPlain =
      !loop.getUnsignedCmp() && loop.getInductionVar().getType().isInteger(64);
  return isPlain ? countBetween(loop.getLowerBound(), loop.getUpperBound(),
                                loop.getStep())
                 : 0;
}

/// What a value is computed from, in its work item.
struct Origin {
  bool loop = false, range = false;
};

Origin originOf(Value value, scf::ForOp loop, ir::RangeOp range) {
  Origin found;
  SmallVector<Value> open{value};
  llvm::SmallPtrSet<Value, 16> seen;
  while (!open.empty()) {
    Value one = open.pop_back_val();
    if (!seen.insert(one).second)
      continue;
    found.loop |= one == loop.getInductionVar();
    found.range |= llvm::is_contained(range.getIndices(), one);
    Operation *op = one.getDefiningOp();
    if (op && range->isProperAncestor(op) && op->getNumRegions() == 0 &&
        isPure(op))
      llvm::append_range(open, op->getOperands());
  }
  return found;
}

bool loadsNeighbours(scf::ForOp loop, ir::RangeOp range) {
  return ir::contains(loop.getRegion(), [&](Operation *op) {
    auto load = dyn_cast<ir::LoadOp>(op);
    return load && llvm::any_of(load.getIndices(), [&](Value index) {
             Origin origin = originOf(index, loop, range);
             return origin.loop && origin.range;
           });
  });
}

int64_t operationsIn(Operation *op) {
  int64_t count = 0;
  op->walk([&](Operation *) { ++count; });
  return count;
}

/// Whether a loop says nothing of itself that would be lost.
bool isPlain(scf::ForOp loop) { return loop->getDiscardableAttrs().empty(); }

/// Loops with their trip counts, from the inside out; none if one of a nest
/// would become too long.
SmallVector<std::pair<scf::ForOp, int64_t>> shortLoops(ir::RangeOp range) {
  SmallVector<std::pair<scf::ForOp, int64_t>> found;
  range.walk([&](scf::ForOp loop) {
    int64_t count = tripCount(loop);
    if (count < 1 || count > mostNeighbours || !isPlain(loop) ||
        ir::contains(loop.getRegion(), llvm::IsaPred<scf::WhileOp>) ||
        !loadsNeighbours(loop, range))
      return;
    found.push_back({loop, count});
  });
  auto around = [&](scf::ForOp loop) {
    int64_t times = 1;
    for (auto [other, count] : found)
      times *= other->isAncestor(loop) ? count : 1;
    return times;
  };
  int64_t operations = 0;
  bool isShort = llvm::all_of(found, [&](auto &entry) {
    operations += operationsIn(entry.first) * around(entry.first);
    return around(entry.first) <= mostNeighbours;
  });
  if (!isShort || operations > mostOperations)
    found.clear();
  return found;
}

void unroll(scf::ForOp loop, int64_t count) {
  normalizeLoops(loop);
  Builder b(loop.getLoc(), loop);
  loop.setUpperBound(indexConstant(b, count));
  (void)loopUnrollFull(loop);
}

void unrollLoops(ir::RangeOp range) {
  auto loops = shortLoops(range);
  if (loops.empty())
    return;
  for (auto [loop, count] : loops)
    unroll(loop, count);
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  (void)applyPatternsGreedily(range->getRegion(0), {}, config);
}

//===-- Choices of elements -----------------------------------------------===//

/// Whether a branch does nothing but load what it yields, perhaps.
bool onlyLoads(Block &block) {
  return llvm::all_of(block.without_terminator(), [](Operation &op) {
    return isa<ir::LoadOp>(op) || (op.getNumRegions() == 0 && isPure(&op));
  });
}

/// The loads of one array, one of them in each branch, of which one is the
/// result of `branch`.
std::optional<std::pair<ir::LoadOp, ir::LoadOp>> loadsOf(scf::IfOp branch,
                                                         unsigned number) {
  auto load = [&](scf::YieldOp yield) -> ir::LoadOp {
    auto found = yield.getOperand(number).getDefiningOp<ir::LoadOp>();
    bool isOwn =
        found && found->getBlock() == yield->getBlock() && found->hasOneUse();
    return isOwn ? found : ir::LoadOp();
  };
  ir::LoadOp yes = load(branch.thenYield()), no = load(branch.elseYield());
  if (!yes || !no || yes.getArray() != no.getArray() ||
      yes->getAttrDictionary() != no->getAttrDictionary())
    return std::nullopt;
  return std::pair(yes, no);
}

/// A load of the one or the other element becomes one of an index that is the
/// one or the other, if the branches do nothing else.
void chooseIndices(scf::IfOp branch) {
  if (branch.getNumResults() == 0 || !onlyLoads(*branch.thenBlock()) ||
      !onlyLoads(*branch.elseBlock()))
    return;
  SmallVector<std::pair<ir::LoadOp, ir::LoadOp>> loads;
  for (unsigned k = 0; k < branch.getNumResults(); ++k) {
    auto both = loadsOf(branch, k);
    if (!both)
      return;
    loads.push_back(*both);
  }
  size_t all = 0;
  for (Block *block : {branch.thenBlock(), branch.elseBlock()})
    all += llvm::range_size(block->getOps<ir::LoadOp>());
  if (all != 2 * loads.size())
    return;
  for (Block *block : {branch.thenBlock(), branch.elseBlock()})
    for (Operation &op :
         llvm::make_early_inc_range(block->without_terminator()))
      if (!isa<ir::LoadOp>(op))
        op.moveBefore(branch);
  Builder b(branch.getLoc(), branch);
  for (auto [k, both] : llvm::enumerate(loads)) {
    auto [yes, no] = both;
    SmallVector<Value> indices;
    for (auto [one, other] : llvm::zip(yes.getIndices(), no.getIndices()))
      indices.push_back(
          b.createOrFold<arith::SelectOp>(branch.getCondition(), one, other));
    auto load = cast<ir::LoadOp>(b.clone(*yes));
    load.getIndicesMutable().assign(indices);
    branch.getResult(k).replaceAllUsesWith(load.getResult());
  }
  branch.erase();
}

void chooseIndices(ir::RangeOp range) {
  range.walk([](scf::IfOp branch) { chooseIndices(branch); });
}

//===-- Loops over elements -----------------------------------------------===//

/// Whether an operation may run where it did not.
bool isFree(Operation *op) {
  auto count = dyn_cast<ir::TripCountOp>(op);
  return op->getNumRegions() == 0 &&
         (isPure(op) || (count && count.cannotFail()));
}

/// The one loop of a work item that does nothing else.
scf::ForOp onlyLoop(ir::RangeOp range) {
  scf::ForOp found;
  for (Operation &op : range.getBody()->without_terminator()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop ? found || loop.getNumResults() || !isPlain(loop) : !isFree(&op))
      return {};
    found = loop ? loop : found;
  }
  return found;
}

bool canStandApart(Operation *op) {
  return isa<ir::LoadOp, ir::StoreOp, ir::AtomicAddOp, ir::YieldOp,
             scf::YieldOp, scf::IfOp, scf::ForOp>(op) ||
         isFree(op);
}

/// In front of the range what work items have in common.
void hoist(ir::RangeOp range) {
  for (Operation &op :
       llvm::make_early_inc_range(range.getBody()->without_terminator()))
    if (isFree(&op) && llvm::all_of(op.getOperands(), [&](Value operand) {
          return !range.getBodyRegion().isAncestor(operand.getParentRegion());
        }))
      op.moveBefore(range);
}

/// The iterations of `loop` as work items.
ir::RangeOp merged(ir::RangeOp range, scf::ForOp loop) {
  SmallVector<Value> extents(range.getExtents());
  extents.push_back(loop.getUpperBound());
  Value index = range.getBody()->addArgument(loop.getInductionVar().getType(),
                                             loop.getLoc());
  loop.getInductionVar().replaceAllUsesWith(index);
  loop.getBody()->getTerminator()->erase();
  range.getBody()->getOperations().splice(loop->getIterator(),
                                          loop.getBody()->getOperations());
  loop.erase();
  auto made = cast<ir::RangeOp>(ir::remade(range, extents, TypeRange()));
  range.erase();
  return made;
}

bool haveElementsOfTheirOwn(ir::RangeOp range) {
  for (auto &[array, accesses] : accessesByArray(range))
    if (!llvm::all_of(accesses,
                      [](const ArrayAccess &a) { return a.isLoad(); }) &&
        !areExclusive(range, accesses))
      return false;
  return true;
}

/// A range of which iterations of the only loop are work items, in the place of
/// `range`, or null.
ir::RangeOp mergeLoop(ir::RangeOp range) {
  scf::ForOp loop = onlyLoop(range);
  if (!loop || range.getNumResults() ||
      ir::contains(range.getBodyRegion(),
                   [](Operation *op) { return !canStandApart(op); }))
    return {};
  auto copy = cast<ir::RangeOp>(OpBuilder(range).clone(*range));
  normalizeLoops(copy);
  hoist(copy);
  loop = onlyLoop(copy);
  if (!loop ||
      copy.getBodyRegion().isAncestor(loop.getUpperBound().getParentRegion())) {
    copy.erase();
    return {};
  }
  copy = merged(copy, loop);
  if (!haveElementsOfTheirOwn(copy)) {
    copy.erase();
    return {};
  }
  range.erase();
  return copy;
}

} // namespace

void unfoldLoops(ir::KernelOp kernel) {
  for (ir::RangeOp range : ir::all<ir::RangeOp>(kernel)) {
    unrollLoops(range);
    chooseIndices(range);
    while (range)
      range = mergeLoop(range);
  }
}

} // namespace costate::autodiff
