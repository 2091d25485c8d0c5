#include "conversion/Lanes/Choice.h"

#include "conversion/Lanes/LaneBody.h"
#include "sizing/Costs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {

namespace {

/// Looks for what cannot be done by lanes at all.
class Obstacles {
public:
  Obstacles(const Shapes &shapes, bool deterministic)
      : shapes(shapes), deterministic(deterministic) {}

  std::string find(scf::ForOp row, unsigned lanes) {
    std::string obstacle = ofSums(row);
    if (obstacle.empty())
      obstacle = ofPrivateArrays(row, lanes);
    row.getBody()->walk([&](Operation *op) {
      if (obstacle.empty())
        obstacle = of(op);
    });
    return obstacle;
  }

private:
  std::string of(Operation *op) const {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return ofFor(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return ofIf(branch);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return shapes.parts(loop) && Balance(loop).popsOthers
                 ? "a loop that undoes another one"
                 : "";
    if (auto add = dyn_cast<ir::AtomicAddOp>(op))
      return deterministic && !add.getExclusive() &&
                     isa<FloatType>(add.getValue().getType())
                 ? "additions whose order is that of the work items"
                 : "";
    if (isa<LLVM::LLVMDialect>(op->getDialect()))
      return ofMachineCode(op);
    return isKnown(op) ? "" : "`" + op->getName().getStringRef().str() + "`";
  }

  static bool isKnown(Operation *op) {
    return isa<scf::IfOp, scf::YieldOp, scf::ConditionOp, tape::PushOp,
               tape::PopOp, tape::BudgetOp, ir::LoadOp, ir::StoreOp,
               ir::ExtentOp, ir::PhiloxOp, arith::ConstantOp>(op) ||
           ir::isOfLocal(op) || isForEachLane(op) || isElementwise(op);
  }

  std::string ofIf(scf::IfOp branch) const {
    Balance balance(branch);
    return !shapes.isUniform(branch.getCondition()) && balance.popsOthers &&
                   balance.leavesRecords
               ? "a branch that pushes and pops records of other ones"
               : "";
  }

  std::string ofFor(scf::ForOp loop) const {
    if (!shapes.parts(loop))
      return "";
    Balance balance(loop);
    if (balance.popsOthers && balance.leavesRecords)
      return "a loop that pushes and pops records of other loops";
    bool isPlain = matchPattern(loop.getLowerBound(), m_Zero()) &&
                   matchPattern(loop.getStep(), m_One());
    return isPlain ? "" : "the bounds of a loop";
  }

  /// Words of the worker may be changed; other stores are updates of integers
  /// in places of a thread.
  std::string ofMachineCode(Operation *op) const {
    auto store = dyn_cast<LLVM::StoreOp>(op);
    if (shapes.areShared(op->getOperands()) &&
        (!store || isa<BlockArgument>(store.getAddr())))
      return "";
    // The number of the work item, for what it prints.
    auto slot = store ? store.getAddr().getDefiningOp<LLVM::GEPOp>() : nullptr;
    if (slot && isa<BlockArgument>(slot.getBase()))
      return "`print`";
    return "updates of an integer that all work items share";
  }

  /// They stand on the stack of a thread, for each lane.
  static std::string ofPrivateArrays(scf::ForOp row, unsigned lanes) {
    constexpr int64_t mostBytes = 64 * 1024;
    int64_t bytes = 0;
    row.getBody()->walk(
        [&](ir::LocalOp local) { bytes += local.getType().bytes(); });
    return bytes * std::max(16u, lanes) > 16 * mostBytes
               ? "private arrays of more than 64 KiB"
               : "";
  }

  std::string ofSums(scf::ForOp row) const {
    for (auto [sum, next] :
         llvm::zip_equal(row.getRegionIterArgs(), row.getYieldedValues())) {
      Operation *add = next.getDefiningOp();
      if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add) ||
          add->getOperand(0) != sum || !sum.hasOneUse())
        return minimum.str();
    }
    return "";
  }

  const Shapes &shapes;
  bool deterministic;
};

/// Estimates in instructions: of one work item alone, and of a vector of them.
class Costs {
public:
  Costs(const Shapes &shapes, const InterleavedAccesses &interleaved,
        unsigned lanes, unsigned bits)
      : shapes(shapes), interleaved(interleaved), lanes(lanes), bits(bits) {}

  bool pay(scf::ForOp row) {
    add(*row.getBody(), 1, 1);
    return wide < costs.gain * lanes * alone;
  }

  /// Of all operations of an iteration, on a vector of which no lane waits.
  double ofIteration(Block &body) {
    busy = 0;
    add(body, 1, 1);
    return busy;
  }
  /// Of one operation, on a vector.
  double of(Operation *op) const { return wideCost(op, costOf(op)); }
  static bool isFunction(Operation *op) {
    return op->hasTrait<ir::OpTrait::IsFunction>() || isa<arith::RemFOp>(op);
  }
  bool isGathered(Operation *op) const {
    auto access = cast<ir::ElementAccess>(op);
    return !interleaved.of(op) && !shapes.areShared(access.getIndices()) &&
           !shapes.areNeighbours(access.getIndices());
  }
  /// Of a mask for each iteration of a loop that lanes leave at different
  /// times: a comparison, and what it keeps of each value where that is an
  /// instruction.
  double ofMask(ValueRange carried) const {
    double cost = 1;
    if (bits < 512)
      for (Value value : carried)
        cost += shapes.isUniform(value) ? 0 : registersOf(value.getType());
    return cost;
  }
  /// How long a loop is taken to run.
  static constexpr double iterations = sizing::guessedTripCount;

private:
  void add(Block &block, double times, double wideTimes) {
    for (Operation &op : block) {
      bool isLoop = isa<LoopLikeOpInterface>(op);
      double more = isLoop ? iterations : 1;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          add(inner, more * times, more * wideTimes * waitingIn(&op));
      if (op.getNumRegions() == 0 && !matchPattern(&op, m_Constant()))
        add(&op, times, wideTimes);
    }
  }

  void add(Operation *op, double times, double wideTimes) {
    double one = costOf(op);
    alone += times * one;
    double onVector = wideCost(op, one);
    wide += wideTimes * onVector;
    busy += times * onVector;
  }

  /// For the longest of all lanes: neighbours may have loops of one length, but
  /// those in branches and in other loops differ.
  double waitingIn(Operation *op) const {
    auto loop = dyn_cast<scf::ForOp>(op);
    bool waits =
        loop && shapes.parts(loop) && !loop->getParentOp()->hasAttr(rowAttr);
    return waits ? 1 + costs.waiting * llvm::Log2_32(lanes) : 1;
  }

  static bool isOnIntegers(Operation *op) {
    return op->getNumResults() == 1 && op->getNumOperands() > 0 &&
           !ir::isOfLocal(op) && !isa<ir::ElementAccess>(op) &&
           op->getResult(0).getType().isInteger();
  }

  /// Accesses and calls are weighed by their shapes; square roots overlap with
  /// all else.
  double costOf(Operation *op) const {
    if (isa<ir::ElementAccess, func::CallOp, math::SqrtOp>(op))
      return 1;
    auto cost = static_cast<double>(table.of(op));
    return cost == 1 && isOnIntegers(op) ? costs.index : cost;
  }

  double wideCost(Operation *op, double one) const {
    if (isa<ir::LoadOp, ir::StoreOp>(op) || isExclusive(op))
      return accessCost(op);
    if (shapes.areShared(op->getOperands()))
      return one;
    if (addsLanesUp(op, shapes))
      return costs.sum;
    if (isForEachLane(op) || isa<ir::DivOp, ir::RemOp>(op))
      return lanes * (one + costs.alone);
    return one * registersOf(op);
  }

  double registersOf(Operation *op) const {
    return op->getNumResults() == 0 ? 1
                                    : registersOf(op->getResult(0).getType());
  }
  double registersOf(Type type) const {
    unsigned width = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 1;
    return std::max(1.0, static_cast<double>(width) * lanes / bits);
  }

  double accessCost(Operation *op) const {
    if (const Interleaved *group = interleaved.of(op))
      return 1 + group->count;
    return isGathered(op) ? costs.gathered * lanes : costs.access;
  }

  const Shapes &shapes;
  const InterleavedAccesses &interleaved;
  unsigned lanes, bits;
  double alone = 0, wide = 0, busy = 0;
  sizing::Costs table{sizing::Target::Cpu};
  const sizing::LaneCosts &costs = sizing::laneCosts();
};

/// The time of a row in cycles, if each vector is `copies` ones. Iterations of
/// a loop wait for each other, so several vectors may take no longer than one.
class Latencies {
public:
  Latencies(const Shapes &shapes, const Costs &costs)
      : shapes(shapes), costs(costs) {}

  double perVector(scf::ForOp row, unsigned copies) {
    return cycles(*row.getBody(), copies) / copies;
  }

private:
  double cycles(Block &block, unsigned copies) {
    double work = 0, inner = 0;
    for (Operation &op : block) {
      if (op.getNumRegions() == 0 && !matchPattern(&op, m_Constant()))
        work += costs.of(&op) / table.rate;
      for (Region &region : op.getRegions())
        for (Block &part : region)
          inner += isa<LoopLikeOpInterface>(op) ? loop(&op, part, copies)
                                                : cycles(part, copies);
    }
    bool isIteration = isa<LoopLikeOpInterface>(block.getParentOp());
    if (isIteration && parts(block.getParentOp()))
      work += costs.ofMask(carriedBy(block)) / table.rate;
    return std::max(isIteration ? chain(block) : 0.0, copies * work) + inner;
  }

  double loop(Operation *op, Block &body, unsigned copies) {
    double waiting = parts(op) ? 1 + table.waiting * llvm::Log2_32(copies) : 1;
    return Costs::iterations * waiting * cycles(body, copies);
  }

  bool parts(Operation *loop) const {
    auto counted = dyn_cast<scf::ForOp>(loop);
    return counted ? shapes.parts(counted)
                   : shapes.parts(cast<scf::WhileOp>(loop));
  }
  static Block::BlockArgListType carriedBy(Block &body) {
    return isa<scf::ForOp>(body.getParentOp())
               ? body.getArguments().drop_front()
               : body.getArguments();
  }

  using Times = llvm::DenseMap<Value, double>;

  /// From what an iteration is given to what it hands on. What inner loops take
  /// is no part of it.
  double chain(Block &body) const {
    Times ready;
    for (Value argument : carriedBy(body))
      ready[argument] = 0;
    return follow(body, ready, std::nullopt);
  }

  /// When what a block hands on is there, if it runs from `start` on; null: at
  /// once.
  double follow(Block &block, Times &ready, std::optional<double> start) const {
    double last = start.value_or(0);
    for (Operation &op : block) {
      std::optional<double> given = latest(&op, ready, start);
      if (!given)
        continue;
      double end = *given + latencyOf(&op);
      if (isa<scf::IfOp>(op))
        for (Region &region : op.getRegions())
          for (Block &side : region)
            end = std::max(end, follow(side, ready, given));
      for (Value result : op.getResults())
        ready[result] = end;
      if (op.hasTrait<OpTrait::IsTerminator>())
        last = end;
    }
    return last;
  }

  static std::optional<double> latest(Operation *op, const Times &ready,
                                      std::optional<double> start) {
    auto look = [&](Operation *user) {
      for (Value operand : user->getOperands())
        if (auto found = ready.find(operand); found != ready.end())
          start = std::max(start.value_or(0), found->second);
    };
    isa<LoopLikeOpInterface>(op) ? op->walk(look) : look(op);
    return start;
  }

  double latencyOf(Operation *op) const {
    if (op->getNumRegions() > 0 || op->hasTrait<OpTrait::IsTerminator>())
      return 0;
    if (Costs::isFunction(op))
      return table.function;
    if (isa<arith::DivFOp, math::SqrtOp>(op))
      return table.quotient;
    if (isa<ir::LoadOp>(op))
      return costs.isGathered(op) ? table.gather : table.load;
    bool isFloat =
        op->getNumResults() == 1 && isa<FloatType>(op->getResult(0).getType());
    return isFloat && !isa<arith::SelectOp>(op) ? table.arithmetic
                                                : table.integer;
  }

  const Shapes &shapes;
  const Costs &costs;
  const sizing::LatencyCosts &table = sizing::laneCosts().latencies;
};

constexpr unsigned mostLanes = 64; // a mask is a number
/// Operations of a row that take long to compile, of all copies.
constexpr unsigned mostOperations = 150;

/// How many vectors of registers are one of the row.
class Copies {
public:
  Copies(scf::ForOp row, const Shapes &shapes, unsigned lanes, unsigned bits)
      : row(row), shapes(shapes), lanes(lanes), bits(bits) {}

  unsigned best(const Costs &costs) {
    Latencies latencies(shapes, costs);
    double gain = sizing::laneCosts().latencies.gain;
    double least = latencies.perVector(row, 1);
    unsigned best = 1;
    for (unsigned copies = 2; copies <= most(); copies *= 2)
      if (double time = latencies.perVector(row, copies); time < gain * least) {
        least = time;
        best = copies;
      }
    return best;
  }

private:
  /// Registers that a function takes for itself.
  static constexpr unsigned ofFunction = 4;
  /// Records of more lanes would take memory, and half of the values may leave
  /// the registers: that costs less than to wait.
  unsigned most() {
    bool isLong = bits == 512;
    unsigned values = isLong ? 56 : 28, live = 1, operations = 0;
    bool saves = false;
    row.getBody()->walk([&](Operation *op) {
      ++operations;
      saves |= isa<tape::PushOp>(op);
      if (isa<LoopLikeOpInterface>(op))
        live = std::max(live, liveIn(op));
    });
    return std::min({saves ? 4u : 8u, mostLanes / lanes, values / live,
                     mostOperations / operations});
  }

  /// Vectors that an iteration has from outside.
  unsigned liveIn(Operation *loop) const {
    llvm::SmallPtrSet<Value, 8> values;
    bool hasFunction = false;
    loop->walk([&](Operation *op) {
      hasFunction |= Costs::isFunction(op);
      for (Value operand : op->getOperands())
        if (!shapes.isUniform(operand) && isFromOutside(operand, loop))
          values.insert(operand);
    });
    return static_cast<unsigned>(values.size()) +
           (hasFunction ? ofFunction : 0);
  }

  static bool isFromOutside(Value value, Operation *loop) {
    Operation *owner = value.getParentBlock()->getParentOp();
    return isa<BlockArgument>(value) ? owner == loop || !loop->isAncestor(owner)
                                     : !loop->isAncestor(owner);
  }

  scf::ForOp row;
  const Shapes &shapes;
  unsigned lanes, bits;
};

/// Straight code is left to the loop vectoriser of LLVM, which does not bear
/// that some of it leaves the loop, unless that gathers components.
bool isStraight(scf::ForOp row, const InterleavedAccesses &interleaved) {
  auto isControl = [](Operation *op) {
    auto assertion = dyn_cast<ir::AssertOp>(op);
    return op->getNumRegions() > 0 || isa<tape::PushOp>(op) ||
           (assertion && assertion.getRefuses());
  };
  return !interleaved.defeatVectoriser() &&
         !ir::contains(row.getRegion(), isControl);
}

/// Whether those of two vectors take less time than twice those of one: the sum
/// of lanes is made once for both, and where there are more rows of memory than
/// the processor fetches ahead, each is touched half as often.
bool paysTwice(scf::ForOp row, const Shapes &shapes) {
  unsigned rows = 0;
  bool addsUp = false;
  row.getBody()->walk([&](Operation *op) {
    addsUp |= addsLanesUp(op, shapes);
    auto access = dyn_cast<ir::ElementAccess>(op);
    rows += access && shapes.areNeighbours(access.getIndices());
  });
  return addsUp || rows > sizing::laneCosts().streams;
}

/// Of the type that the body computes with.
unsigned lanesOf(scf::ForOp row, unsigned bits, bool isTwice) {
  unsigned narrow = 0, wide = 0;
  row.getBody()->walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      narrow += type.isF32();
      wide += type.isF64();
    }
  });
  unsigned lanes = bits / (wide > narrow ? 64 : 32);
  return std::min(16u, isTwice ? 2 * lanes : lanes);
}

unsigned operationsIn(scf::ForOp row) {
  unsigned operations = 0;
  row.getBody()->walk([&](Operation *) { ++operations; });
  return operations;
}

/// Lanes without work items take as long in loops as others, and have records
/// as well, which may take most of the memory. What runs within a budget has
/// few work items with long loops.
unsigned fewOf(scf::ForOp row, unsigned lanes) {
  bool loops = false, isCut = false;
  row.getBody()->walk([&](Operation *op) {
    loops |= isa<LoopLikeOpInterface>(op);
    isCut |= isa<tape::BudgetOp, tape::ClaimOp>(op);
  });
  unsigned part = sizing::laneCosts().few;
  unsigned most = isCut ? mostTwice : mostOperations;
  return loops && operationsIn(row) <= most ? std::max(1u, lanes / part) : 0;
}

/// Iterations of the loops that take as long as to find the order of lengths,
/// and to load elsewhere than from neighbours.
unsigned idleOf(const Lengths &lengths, Costs costs, unsigned lanes) {
  double iteration = 0;
  for (scf::ForOp loop : lengths.loops())
    iteration += costs.ofIteration(*loop.getBody());
  iteration /= static_cast<double>(lengths.loops().size());
  return static_cast<unsigned>(sizing::laneCosts().ordered * lanes /
                               std::max(iteration, 1.0)) +
         1;
}

} // namespace

Choice chooseLanes(scf::ForOp row, const Shapes &shapes, const TapeOrder &order,
                   const InterleavedAccesses &interleaved,
                   const Lengths &lengths, const LaneOptions &options) {
  if (isStraight(row, interleaved))
    return {0, "straight code, left to the loop vectoriser"};
  std::string obstacle =
      Obstacles(shapes, options.deterministic).find(row, options.lanes);
  if (obstacle.empty() && !order.isOpposite())
    obstacle = "a branch that undoes several other ones";
  if (!obstacle.empty())
    return {0, obstacle};
  bool isTwice = !options.lanes && paysTwice(row, shapes);
  unsigned lanes =
      options.lanes ? options.lanes : lanesOf(row, options.bits, isTwice);
  Costs costs(shapes, interleaved, lanes, options.bits);
  bool pays = options.lanes ? lanes > 1 : costs.pay(row);
  if (pays && !options.lanes)
    lanes *= Copies(row, shapes, lanes, options.bits).best(costs);
  if (pays) {
    Choice choice{lanes, "", options.lanes ? 0 : fewOf(row, lanes)};
    if (lengths.areKnown() && operationsIn(row) <= mostTwice)
      choice.idle = idleOf(
          lengths, Costs(shapes, interleaved, lanes, options.bits), lanes);
    return choice;
  }
  // Its sums are those of lanes all the same.
  return {row.getNumResults() ? 1u : 0u,
          options.lanes ? "" : "lanes would take longer"};
}

} // namespace costate::conversion
