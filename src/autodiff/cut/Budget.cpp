#include "autodiff/cut/Budget.h"

#include "autodiff/cut/Counting.h"
#include "autodiff/cut/Levels.h"
#include "autodiff/cut/Online.h"
#include "autodiff/cut/Tally.h"
#include "autodiff/replay/Accesses.h"
#include "autodiff/rules/Rules.h"
#include "ir/LoopPairs.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// Whether it saves too little to be cut, whatever it does.
bool isShort(Operation *op) {
  constexpr int64_t few = 32;
  constexpr unsigned small = 8;
  std::optional<int64_t> count = tape::constantCount(op);
  return count && *count <= few && op->getNumResults() <= small &&
         loopsOf(*tape::bodyOf(op)).empty();
}

class Planner {
public:
  Planner(LoopNumbers &numbers, TripCounts &tripCounts,
          function_ref<bool(Operation *)> canRunAgain, bool measured)
      : numbers(numbers), tripCounts(tripCounts), canRunAgain(canRunAgain),
        measured(measured) {}

  /// Numbers all loops, then cuts those of one work item or of serial code.
  void run(Block &block, Location loc) {
    numbers.give(block);
    if (worthwhile(block, mostLevels).empty() &&
        entered(block, mostLevels).empty())
      return;
    Builder b(loc, &block, block.begin());
    Value budget = tape::BudgetOp::create(b, b.getI64Type(), IntegerAttr());
    plan(block, Number::ofInteger(b, budget), mostLevels);
  }

private:
  /// The loops of `block` to be cut on so many levels.
  SmallVector<Operation *> worthwhile(Block &block, unsigned levels) {
    SmallVector<Operation *> chosen;
    for (Operation *loop : loopsOf(block))
      if (!isShort(loop) && !loop->hasAttr(ir::rerunAttr) &&
          !loop->hasAttr(ir::restAttr) && !loop->hasAttr(countsAttr) &&
          canRunAgain(loop) &&
          (!measured || isToldBefore(loop) ||
           (levels == mostLevels && isToldAsItRuns(loop))))
        chosen.push_back(loop);
    return chosen;
  }

  /// Where sizes must be known: the other loops of `block` with loops in them
  /// to be cut.
  SmallVector<scf::ForOp> entered(Block &block, unsigned levels) {
    SmallVector<scf::ForOp> loops;
    if (!measured || levels < mostLevels)
      return loops;
    SmallVector<Operation *> chosen = worthwhile(block, levels);
    for (Operation *op : loopsOf(block)) {
      auto loop = dyn_cast<scf::ForOp>(op);
      if (!loop || llvm::is_contained(chosen, op) ||
          loop->hasAttr(ir::rerunAttr) || loop->hasAttr(countsAttr) ||
          ir::contains<ir::RangeOp>(op))
        continue;
      Block &body = *loop.getBody();
      if (!worthwhile(body, levels).empty() || !entered(body, levels).empty())
        loops.push_back(loop);
    }
    return loops;
  }

  /// `budget`: bytes for all loops of `block`, equal shares.
  void plan(Block &block, Number budget, unsigned levels) {
    SmallVector<Operation *> chosen = worthwhile(block, levels);
    SmallVector<scf::ForOp> others = entered(block, levels);
    budget = shareOf(budget, chosen.size() + others.size());
    for (scf::ForOp loop : others)
      enter(loop, budget, levels);
    for (Operation *loop : chosen)
      cut(loop, budget, levels);
  }

  static Number shareOf(Number budget, size_t loops) {
    return loops > 1 ? budget * (1.0 / double(loops)) : budget;
  }

  /// Cuts the loops in `loop`, which keeps all that its iterations save.
  void enter(scf::ForOp loop, Number budget, unsigned levels) {
    Builder b(loop.getLoc(), loop);
    Number count = Number::ofInteger(b, loop.getUpperBound()).atLeast(1);
    Number own = recordOf(numberOf(loop), b);
    Number each = (budget.at(b) / count - own).atLeast(0);
    plan(*loop.getBody(), each, levels);
  }

  /// Whether it is known, when the loop begins, how much it saves.
  bool isToldBefore(Operation *loop) {
    auto open = dyn_cast<scf::WhileOp>(loop);
    return isKnown(loop, loop) &&
           (!open || (onlyComputes(open) && !readsWritten(open)));
  }

  /// Whether a loop ahead can add up what iterations will save.
  bool isToldAsItRuns(Operation *loop) {
    auto open = dyn_cast<scf::WhileOp>(loop);
    return (!open || onlyComputes(open)) && Tally::canTell(loop);
  }

  /// As `wholeRecordOf`, and no loop in it runs again.
  bool isKnown(Operation *loop, Operation *outer) {
    auto open = dyn_cast<scf::WhileOp>(loop);
    if (open && !loopsOf(*open.getBeforeBody()).empty())
      return false;
    return llvm::all_of(loopsOf(*tape::bodyOf(loop)), [&](Operation *inner) {
      return boundOf(inner, outer) && !inner->hasAttr(ir::rerunAttr) &&
             isKnown(inner, outer);
    });
  }

  /// The iterations of a loop in `outer`; null: not known in front of that.
  static Value boundOf(Operation *inner, Operation *outer) {
    auto counted = dyn_cast<scf::ForOp>(inner);
    if (!counted || !LoopNumbers::of(inner) ||
        outer->isAncestor(
            counted.getUpperBound().getParentBlock()->getParentOp()))
      return {};
    return counted.getUpperBound();
  }

  void cut(Operation *op, Number budget, unsigned levels) {
    Builder b(op->getLoc(), op);
    Number within = withoutKept(budget.at(b), op);
    auto counted = dyn_cast<scf::ForOp>(op);
    if (measured && !isKnown(op, op))
      cutUneven(op, within);
    else if (counted)
      cutFor(counted, within, levels);
    else if (measured && isToldBefore(op))
      cutCounted(cast<scf::WhileOp>(op), within, levels);
    else
      cutWhile(cast<scf::WhileOp>(op), within, levels);
  }

  /// Counting reads memory as the launch has found it: the gradient might need
  /// what nobody has kept.
  static bool readsWritten(scf::WhileOp loop) {
    llvm::DenseSet<Value> written;
    loop->getParentOfType<ir::KernelOp>().walk([&](Operation *op) {
      if (!isa<ir::LoadOp, ir::ExtentOp>(op))
        written.insert(op->operand_begin(), op->operand_end());
    });
    return llvm::any_of(accessesIn(loop), [&](const ArrayAccess &access) {
      return access.isLoad() && written.contains(access.array);
    });
  }

  /// Counted first, it says how much its parts save.
  void cutCounted(scf::WhileOp loop, Number budget, unsigned levels) {
    int64_t number = numberOf(loop);
    scf::ForOp counted = countFirst(loop, tripCounts);
    numbers.set(counted, number);
    cutFor(counted, budget, levels);
  }

  void cutFor(scf::ForOp loop, Number budget, unsigned levels) {
    Builder b(loop.getLoc(), loop);
    Value iterations =
        arith::MaxSIOp::create(b, loop.getUpperBound(), indexConstant(b, 0));
    LoopSizes sizes = sizesOf(loop, iterations, b);
    if (measured)
      return cutMeasured(loop, iterations, sizes, budget.at(b), levels);
    Schedule schedule = scheduleOf(sizes, budget.at(b), levels);
    plan(*loop.getBody(), schedule.share, levelsInLoops);
    divide(loop, iterations, schedule, b);
  }

  void cutMeasured(scf::ForOp loop, Value iterations, const LoopSizes &sizes,
                   Number budget, unsigned levels) {
    Builder b(loop.getLoc(), loop);
    MeasuredSchedule measured = measuredSchedule(sizes, budget, levels);
    Value bytes = measured.claimed.asInteger();
    scf::ForOp rest = divide(loop, iterations, measured.schedule, b);
    if (levels < mostLevels)
      return; // a loop ahead has told it
    Builder before(rest.getLoc(), rest);
    tape::ClaimOp::create(before, bytes);
  }

  struct MeasuredSchedule {
    Schedule schedule;
    Number claimed; ///< what segments that run again save
  };

  /// Behind the states of all segments, one that runs again saves the states of
  /// its own segments, and as much as the smallest one has iterations. Parts of
  /// whole iterations take up to three more.
  static MeasuredSchedule measuredSchedule(const LoopSizes &sizes,
                                           Number budget, unsigned levels) {
    Number record = *sizes.record;
    budget =
        (budget - (record + sizes.state) * 3).atLeast(leastFor(sizes, levels));
    Schedule schedule = scheduleOf(sizes, budget, levels);
    Number claimed = claimOf(ArrayRef(schedule.levels).drop_front(),
                             schedule.levels.back().length, sizes);
    return {schedule, claimed};
  }

  /// Of a segment with segments on these levels, the smallest ones of `length`.
  static Number claimOf(ArrayRef<Level> levels, Number length,
                        const LoopSizes &sizes) {
    Number claimed = length * *sizes.record;
    for (const Level &level : levels)
      claimed = claimed + level.count * sizes.state;
    return claimed;
  }

  /// With less, a plan would keep more than one that has as much: with three
  /// levels, four times the fourth root.
  static Number leastFor(const LoopSizes &sizes, unsigned levels) {
    Number record = *sizes.record, state = sizes.state;
    Number all = sizes.iterations * record * state;
    Number least = all.root() * 2 + record + state;
    if (levels < 3)
      return least;
    Number reached = (all * state * state).root().root() * 4;
    return least.atMost(reached + record + state * 5);
  }

  /// One of the levels are the segments of the forward sweep.
  void cutWhile(scf::WhileOp loop, Number budget, unsigned levels) {
    int64_t begins = numbers.next();
    int64_t name = numberOf(loop);
    std::optional<OnlineSchedule> schedule;
    auto lengthOf = [&](Builder &b, Value number) {
      LoopSizes sizes = sizesOf(loop, indexConstant(b, 0), b);
      Number begin = stateOf(begins, b).atLeast(1);
      Number within = budget.at(b);
      if (measured)
        within = (within - (*sizes.record + sizes.state) * 3).atLeast(1);
      schedule.emplace(sizes, begin, within, levels - 1, measured);
      return schedule->lengthOf(Number::ofInteger(b, number)).asInteger();
    };
    auto [segments, segment, ahead] = cutOnline(loop, tripCounts, {lengthOf});
    if (!segment)
      return;
    Builder b(segment.getLoc(), segment);
    schedule.emplace(schedule->sizes.at(b), schedule->begin.at(b),
                     schedule->budget.at(b), schedule->levels, measured);
    Schedule division = schedule->divisionOf(
        Number::ofInteger(b, segments.getAfterArguments().back()),
        Number::ofInteger(b, segment.getUpperBound()));
    if (measured)
      tape::ClaimOp::create(b, claimOf(division.levels,
                                       division.levels.back().length,
                                       schedule->sizes)
                                   .asInteger());
    else
      plan(*segment.getBody(), division.share, levelsInLoops);
    numbers.set(segments, begins);
    numbers.set(segment, name);
    divideFurther(segment, integersOf(division.levels));
    nameParts(segments, name);
  }

  /// A loop whose iterations save what nobody knows before: a segment ends
  /// where they have saved what it has room for. They have a part of the budget
  /// for the loops in them.
  void cutUneven(Operation *op, Number budget) {
    int64_t begins = numbers.next();
    int64_t name = numberOf(op);
    Number share = budget * 0.25;
    auto counted = dyn_cast<scf::ForOp>(op);
    auto loop =
        counted ? openLoop(counted, tripCounts) : cast<scf::WhileOp>(op);
    std::optional<Tally> tally;
    Value room;
    auto lengthOf = [&](Builder &b, Value number) {
      LoopSizes sizes = sizesOf(loop, indexConstant(b, 0), b);
      Number begin = stateOf(begins, b).atLeast(1);
      OnlineSchedule schedule{sizes, begin, budget.at(b), 1, measured};
      room = schedule.bytesOf(Number::ofInteger(b, number)).asInteger();
      tally.emplace(b);
      return indexConstant(b, INT64_MAX);
    };
    auto hasRoom = [&](Builder &b) { return tally->hasRoom(b, room); };
    auto [segments, segment, ahead] =
        cutOnline(loop, tripCounts, {lengthOf, hasRoom});
    tallyIterations(ahead, name, share, *tally);
    Builder b(segment.getLoc(), segment);
    tape::ClaimOp::create(b, tally->bytes(b));
    plan(*segment.getBody(), share.at(b), levelsInLoops);
    numbers.set(segments, begins);
    numbers.set(segment, name);
  }

  /// `share`: for the loops in an iteration, as the segment behind it has.
  void tallyIterations(scf::WhileOp ahead, int64_t name, Number share,
                       const Tally &tally) {
    Block &body = *ahead.getAfterBody();
    SmallVector<Operation *> chosen = worthwhile(body, levelsInLoops);
    Builder b(ahead.getLoc(), ahead);
    share = shareOf(share.at(b), chosen.size());
    tally.addIteration(body, name, [&](Operation *loop) {
      bool isCut = llvm::is_contained(chosen, loop);
      if (isCut)
        tallyCut(loop, share, tally);
      return isCut;
    });
  }

  void tallyCut(Operation *loop, Number share, const Tally &tally) {
    Builder b(loop->getLoc(), loop->getContext());
    b.setInsertionPointAfter(loop);
    LoopSizes sizes = sizesOf(loop, iterationsOf(loop, b), b);
    auto [schedule, claimed] =
        measuredSchedule(sizes, withoutKept(share.at(b), loop), levelsInLoops);
    Number states = schedule.levels.front().count * sizes.state;
    Number most = claimed.atLeast(schedule.rest * *sizes.record);
    tally.add(b, states + most);
  }

  static SmallVector<Segments> integersOf(ArrayRef<Level> levels) {
    return llvm::map_to_vector(levels, [](Level level) {
      Segments segments;
      segments.count = level.count.asInteger();
      segments.length = level.length.asInteger();
      return segments;
    });
  }

  static void divideFurther(scf::ForOp segment, ArrayRef<Segments> levels) {
    for (Segments level : levels) {
      level.iterations = level.covered = segment.getUpperBound();
      segment = divideInto(level, segment);
    }
  }

  /// Also of levels; loops in an iteration have names.
  static void nameParts(Operation *segments, int64_t name) {
    segments->walk([&](scf::ForOp part) {
      if (part->hasAttr(ir::segmentAttr) && !LoopNumbers::of(part))
        LoopNumbers::set(part, name);
    });
  }

  /// Returns the loop over the rest.
  scf::ForOp divide(scf::ForOp loop, Value iterations, const Schedule &schedule,
                    Builder &b) {
    Value rest = schedule.rest.asInteger();
    Value covered = arith::SubIOp::create(b, iterations, rest);
    SmallVector<Segments> levels = integersOf(schedule.levels);
    Segments &whole = levels.front();
    whole.iterations = iterations, whole.covered = covered, whole.rest = rest;
    int64_t name = numberOf(loop);
    Parts parts = cutInto(whole, loop, tripCounts);
    divideFurther(parts.segment, ArrayRef(levels).drop_front());
    nameParts(parts.segments, name);
    numbers.set(parts.segments, name);
    numbers.set(parts.rest, name);
    return parts.rest;
  }

  LoopSizes sizesOf(Operation *loop, Value iterations, Builder &b) {
    int64_t number = numberOf(loop);
    return {Number::ofInteger(b, iterations), stateOf(number, b).atLeast(1),
            recordOf(number, b), wholeRecordOf(loop, loop, b)};
  }

  /// What an iteration saves with the loops in it; none if those may have any
  /// number of iterations, for all that is known before `outer`.
  std::optional<Number> wholeRecordOf(Operation *loop, Operation *outer,
                                      Builder &b) {
    Number all = recordOf(numberOf(loop), b);
    for (Operation *inner : loopsOf(*tape::bodyOf(loop))) {
      Value bound = boundOf(inner, outer);
      std::optional<Number> record =
          bound ? wholeRecordOf(inner, outer, b) : std::nullopt;
      if (!record)
        return std::nullopt;
      all = all + Number::ofInteger(b, bound).atLeast(0) * *record;
    }
    return all.atLeast(1);
  }

  static Number withoutKept(Number budget, Operation *loop) {
    double kept = keptOf(*tape::bodyOf(loop));
    return kept ? (budget - kept).atLeast(1) : budget;
  }

  /// Bytes of the private arrays that the loop only reads: kept once.
  static double keptOf(Block &body) {
    double bytes = 0;
    for (Value local : localsOf(body, /*changed=*/false)) {
      auto type = cast<ir::LocalType>(local.getType());
      bytes += double(type.getSize()) *
               type.getValueType().getIntOrFloatBitWidth() / 8;
    }
    return bytes;
  }

  static int64_t numberOf(Operation *loop) { return *LoopNumbers::of(loop); }

  LoopNumbers &numbers;
  TripCounts &tripCounts;
  function_ref<bool(Operation *)> canRunAgain;
  bool measured;
};

} // namespace

void cutByBudget(ir::KernelOp kernel, LoopNumbers &numbers,
                 TripCounts &tripCounts,
                 function_ref<bool(Operation *)> canRunAgain, bool measured) {
  SmallVector<Block *> blocks{kernel.getBody()};
  kernel.walk([&](ir::RangeOp range) { blocks.push_back(range.getBody()); });
  Planner planner(numbers, tripCounts, canRunAgain, measured);
  for (Block *block : blocks)
    planner.run(*block, block->getParentOp()->getLoc());
}

} // namespace costate::autodiff
