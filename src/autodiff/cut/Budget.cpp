#include "autodiff/cut/Budget.h"

#include "autodiff/cut/Counting.h"
#include "autodiff/cut/Levels.h"
#include "autodiff/cut/Online.h"
#include "autodiff/replay/Accesses.h"
#include "autodiff/rules/Rules.h"
#include "ir/LoopPairs.h"
#include "sizing/Record.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

using Builder = ImplicitLocOpBuilder;

/// The number of a loop and of all its copies, while a gradient is made.
constexpr StringLiteral loopAttr = "costate.loop";
/// On a value that stands for bytes: what a segment of that loop begins with,
/// or what an iteration saves.
constexpr StringLiteral stateAttr = "costate.state_of";
constexpr StringLiteral recordAttr = "costate.record_of";

std::optional<int64_t> numberOf(Operation *op, StringRef attribute) {
  auto number = op->getAttrOfType<IntegerAttr>(attribute);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

bool isLoop(Operation *op) { return isa<scf::ForOp, scf::WhileOp>(op); }

/// The loops of `block` that are in no other one there.
SmallVector<Operation *> loopsOf(Block &block) {
  SmallVector<Operation *> loops;
  for (Operation &op : block) {
    if (isLoop(&op))
      loops.push_back(&op);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      for (Region &region : branch->getRegions())
        if (!region.empty())
          llvm::append_range(loops, loopsOf(region.front()));
  }
  return loops;
}

/// Whether it saves too little to be cut, whatever it does.
bool isShort(Operation *op) {
  constexpr int64_t few = 32;
  std::optional<int64_t> count = tape::constantCount(op);
  return count && *count <= few && loopsOf(*tape::bodyOf(op)).empty();
}

class Planner {
public:
  Planner(TripCounts &tripCounts, function_ref<bool(Operation *)> canRunAgain,
          bool measured)
      : tripCounts(tripCounts), canRunAgain(canRunAgain), measured(measured) {}

  /// Numbers all loops, then cuts those of one work item or of serial code.
  void run(Block &block, Location loc) {
    block.walk([&](Operation *op) {
      if (isLoop(op) && !op->hasAttr(loopAttr))
        op->setAttr(loopAttr, Builder(loc, op).getI64IntegerAttr(loops++));
    });
    if (worthwhile(block).empty() && entered(block).empty())
      return;
    Builder b(loc, &block, block.begin());
    Value budget = tape::BudgetOp::create(b, b.getI64Type(), IntegerAttr());
    plan(block, Number::ofInteger(b, budget), mostLevels);
  }

private:
  /// The loops of `block` to be cut.
  SmallVector<Operation *> worthwhile(Block &block) {
    SmallVector<Operation *> chosen;
    for (Operation *loop : loopsOf(block))
      if (!isShort(loop) && !loop->hasAttr(ir::rerunAttr) &&
          !loop->hasAttr(ir::restAttr) && !loop->hasAttr(countsAttr) &&
          canRunAgain(loop) && (!measured || isKnown(loop, loop)))
        chosen.push_back(loop);
    return chosen;
  }

  /// Where sizes must be known: the other loops of `block` with loops in them
  /// to be cut.
  SmallVector<scf::ForOp> entered(Block &block) {
    SmallVector<scf::ForOp> loops;
    SmallVector<Operation *> chosen = worthwhile(block);
    for (Operation *op : loopsOf(block)) {
      auto loop = dyn_cast<scf::ForOp>(op);
      if (!measured || !loop || llvm::is_contained(chosen, op) ||
          loop->hasAttr(ir::rerunAttr) || loop->hasAttr(countsAttr) ||
          ir::contains<ir::RangeOp>(op))
        continue;
      Block &body = *loop.getBody();
      if (!worthwhile(body).empty() || !entered(body).empty())
        loops.push_back(loop);
    }
    return loops;
  }

  /// `budget`: bytes for all loops of `block`, equal shares.
  void plan(Block &block, Number budget, unsigned levels) {
    SmallVector<Operation *> chosen = worthwhile(block);
    SmallVector<scf::ForOp> others = entered(block);
    if (size_t count = chosen.size() + others.size(); count > 1)
      budget = budget * (1.0 / double(count));
    for (scf::ForOp loop : others)
      enter(loop, budget, levels);
    for (Operation *loop : chosen)
      cut(loop, budget, levels);
  }

  /// Cuts the loops in `loop`, which keeps all that its iterations save.
  void enter(scf::ForOp loop, Number budget, unsigned levels) {
    Builder b(loop.getLoc(), loop);
    Number count = Number::ofInteger(b, loop.getUpperBound()).atLeast(1);
    Number own = bytesOf(recordAttr, *numberOf(loop, loopAttr), b);
    Number each = (budget.at(b) / count - own).atLeast(0);
    plan(*loop.getBody(), each, levels);
  }

  /// As `recordOf`, and no loop in it runs again.
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
    if (!counted || !inner->hasAttr(loopAttr) ||
        outer->isAncestor(
            counted.getUpperBound().getParentBlock()->getParentOp()))
      return {};
    return counted.getUpperBound();
  }

  void cut(Operation *op, Number budget, unsigned levels) {
    Builder b(op->getLoc(), op);
    Number within = budget.at(b);
    if (double kept = keptOf(*tape::bodyOf(op)))
      within = (within - kept).atLeast(1);
    if (auto counted = dyn_cast<scf::ForOp>(op))
      cutFor(counted, within, levels);
    else if (measured)
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

  /// What is cut as it runs says too late how much its parts save.
  void cutCounted(scf::WhileOp loop, Number budget, unsigned levels) {
    if (readsWritten(loop))
      return;
    Attribute name = loop->getAttr(loopAttr);
    scf::ForOp counted = countFirst(loop, tripCounts);
    if (!counted)
      return;
    counted->setAttr(loopAttr, name);
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

  /// Behind the states of all segments, one that runs again saves the states of
  /// its own segments, and as much as the smallest one has iterations. Parts of
  /// whole iterations take up to three more.
  void cutMeasured(scf::ForOp loop, Value iterations, const LoopSizes &sizes,
                   Number budget, unsigned levels) {
    Builder b(loop.getLoc(), loop);
    Number record = *sizes.record;
    budget =
        (budget - (record + sizes.state) * 3).atLeast(leastFor(sizes, levels));
    Schedule schedule = scheduleOf(sizes, budget, levels);
    Number claimed = schedule.levels.back().length * record;
    for (const Level &level : ArrayRef(schedule.levels).drop_front())
      claimed = claimed + level.count * sizes.state;
    Value bytes = claimed.asInteger();
    scf::ForOp rest = divide(loop, iterations, schedule, b);
    Builder before(rest.getLoc(), rest);
    tape::ClaimOp::create(before, bytes);
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
    int64_t begins = loops++;
    Attribute name = loop->getAttr(loopAttr);
    std::optional<OnlineSchedule> schedule;
    auto lengthOf = [&](Builder &b, Value number) {
      Value none = indexConstant(b, 0);
      schedule.emplace(sizesOf(loop, none, b),
                       bytesOf(stateAttr, begins, b).atLeast(1), budget.at(b),
                       levels - 1);
      return schedule->lengthOf(Number::ofInteger(b, number)).asInteger();
    };
    auto [segments, segment] = cutOnline(loop, tripCounts, lengthOf);
    if (!segment)
      return;
    Builder b(segment.getLoc(), segment);
    schedule.emplace(schedule->sizes.at(b), schedule->begin.at(b),
                     schedule->budget.at(b), schedule->levels);
    Schedule division = schedule->divisionOf(
        Number::ofInteger(b, segments.getAfterArguments().back()),
        Number::ofInteger(b, segment.getUpperBound()));
    plan(*segment.getBody(), division.share, levelsInLoops);
    segments->setAttr(loopAttr, b.getI64IntegerAttr(begins));
    segment->setAttr(loopAttr, name);
    divideFurther(segment, integersOf(division.levels));
    nameParts(segments, name);
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
  static void nameParts(Operation *segments, Attribute name) {
    segments->walk([&](scf::ForOp part) {
      if (part->hasAttr(ir::segmentAttr) && !part->hasAttr(loopAttr))
        part->setAttr(loopAttr, name);
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
    Attribute name = loop->getAttr(loopAttr);
    Parts parts = cutInto(whole, loop, tripCounts);
    divideFurther(parts.segment, ArrayRef(levels).drop_front());
    nameParts(parts.segments, name);
    parts.segments->setAttr(loopAttr, name);
    parts.rest->setAttr(loopAttr, name);
    return parts.rest;
  }

  LoopSizes sizesOf(Operation *loop, Value iterations, Builder &b) {
    int64_t number = *numberOf(loop, loopAttr);
    return {Number::ofInteger(b, iterations),
            bytesOf(stateAttr, number, b).atLeast(1),
            bytesOf(recordAttr, number, b), recordOf(loop, loop, b)};
  }

  /// What an iteration saves with the loops in it; none if those may have any
  /// number of iterations, for all that is known before `outer`.
  std::optional<Number> recordOf(Operation *loop, Operation *outer,
                                 Builder &b) {
    int64_t number = *numberOf(loop, loopAttr);
    Number all = bytesOf(recordAttr, number, b);
    for (Operation *inner : loopsOf(*tape::bodyOf(loop))) {
      Value bound = boundOf(inner, outer);
      std::optional<Number> record =
          bound ? recordOf(inner, outer, b) : std::nullopt;
      if (!record)
        return std::nullopt;
      all = all + Number::ofInteger(b, bound).atLeast(0) * *record;
    }
    return all.atLeast(1);
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

  Number bytesOf(StringRef what, int64_t number, Builder &b) {
    auto cast =
        UnrealizedConversionCastOp::create(b, b.getI64Type(), ValueRange());
    cast->setAttr(what, b.getI64IntegerAttr(number));
    return Number::ofInteger(b, cast.getResult(0));
  }

  TripCounts &tripCounts;
  function_ref<bool(Operation *)> canRunAgain;
  bool measured;
  int64_t loops = 0;
};

/// The bytes that loops of one number push, with those of loops in them that
/// have no number.
class Pushed {
public:
  Pushed(ir::KernelOp gradient, bool measured) : measured(measured) {
    gradient.walk([&](tape::PushOp push) { add(push); });
    for (auto [loop, bytes] : byLoop) {
      int64_t number = *numberOf(loop, loopAttr);
      auto &most = loop->hasAttr(ir::rerunAttr) ? states : records;
      most[number] = std::max(most[number], bytes);
    }
  }

  int64_t stateOf(int64_t number) const { return states.lookup(number); }
  int64_t recordOf(int64_t number) const { return records.lookup(number); }

private:
  /// Of a device's tape, before numbers are narrowed, which takes as much or
  /// less.
  int64_t bytesOf(tape::PushOp push) const {
    if (!measured)
      return sizing::recordBytes(push.getValues());
    bool words = push->getParentOfType<ir::RangeOp>();
    sizing::RecordLayout layout(push.getValues().getTypes(), words);
    return llvm::alignTo(layout.size(), 8);
  }

  void add(tape::PushOp push) {
    int64_t bytes = bytesOf(push);
    Operation *loop = push->getParentOp();
    for (; loop && !isa<ir::KernelOp>(loop) && !loop->hasAttr(loopAttr);
         loop = loop->getParentOp())
      bytes *= tape::constantCount(loop).value_or(1);
    if (loop && loop->hasAttr(loopAttr))
      byLoop[loop] += bytes;
  }

  llvm::MapVector<Operation *, int64_t> byLoop;
  llvm::DenseMap<int64_t, int64_t> states, records;
  bool measured;
};

} // namespace

void cutByBudget(ir::KernelOp kernel, TripCounts &tripCounts,
                 function_ref<bool(Operation *)> canRunAgain, bool measured) {
  SmallVector<Block *> blocks{kernel.getBody()};
  kernel.walk([&](ir::RangeOp range) { blocks.push_back(range.getBody()); });
  Planner planner(tripCounts, canRunAgain, measured);
  for (Block *block : blocks)
    planner.run(*block, block->getParentOp()->getLoc());
}

void resolveSizes(ir::KernelOp gradient, bool measured) {
  Pushed pushed(gradient, measured);
  gradient.walk([&](UnrealizedConversionCastOp size) {
    std::optional<int64_t> state = numberOf(size, stateAttr);
    std::optional<int64_t> record = numberOf(size, recordAttr);
    if (!state && !record)
      return;
    Builder b(size.getLoc(), size);
    int64_t bytes = state ? pushed.stateOf(*state) : pushed.recordOf(*record);
    size.getResult(0).replaceAllUsesWith(indexConstant(b, bytes));
    size.erase();
  });
  gradient.walk([](Operation *op) { op->removeAttr(loopAttr); });
}

} // namespace costate::autodiff
