#include "base/LengthOrder.h"
#include "conversion/KernelToLLVM/LoopNest.h"
#include "conversion/KernelToLLVM/Outline.h"
#include "conversion/Lanes/Choice.h"
#include "conversion/Lanes/LaneBody.h"
#include "conversion/Lanes/Lengths.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_FORMLANES
#include "conversion/Lanes/Passes.h.inc"

namespace {

/// Partial sums of a row: work item k is added to number k modulo 16, so that
/// the order does not follow from the number of lanes.
class PartialSums {
public:
  static constexpr unsigned count = 16;

  PartialSums(LaneBuilder &b, Type type)
      : type(type), width(std::min(b.lanes, count)), pieces(count / width),
        start(b.zero(width == 1 ? type : VectorType::get({width}, type))) {}

  bool isFloat() const { return isa<FloatType>(type); }
  /// Integers have no order.
  unsigned size() const { return isFloat() ? pieces : 1; }
  Value zero() const { return start; }

  /// The next ones: the first piece is added to, and goes to the end.
  Values next(LaneBuilder &b, ValueRange sums, Value terms, Value mask) const {
    Value sum = sums.front();
    for (unsigned first = 0; first < b.lanes; first += width) {
      bool isAll = width == b.lanes;
      Value own = isAll ? terms : b.slice(terms, first, width);
      Value some = isAll || !mask ? mask : b.slice(mask, first, width);
      sum = b.select(some, added(b, sum, own), sum);
    }
    Values all(sums.drop_front());
    all.push_back(sum);
    return all;
  }

  /// `before` and all of them, in pairs that are half of their number apart.
  /// These are the same ones whichever comes first.
  Value total(LaneBuilder &b, Value before, Values sums) const {
    if (!isFloat()) {
      Value all = width == 1 ? sums.front() : b.sum(sums.front());
      return added(b, before, all);
    }
    while (sums.size() > 1)
      sums = halved(b, sums);
    Value all = sums.front();
    for (unsigned half = width / 2; half > 0; half /= 2)
      all = arith::AddFOp::create(b, b.slice(all, 0, half),
                                  b.slice(all, half, half));
    Value sum = width == 1 ? all : b.extract(all, b.number(b.getI64Type(), 0));
    return arith::AddFOp::create(b, before, sum);
  }

private:
  Value added(LaneBuilder &b, Value sum, Value term) const {
    return isFloat() ? arith::AddFOp::create(b, sum, term).getResult()
                     : arith::AddIOp::create(b, sum, term).getResult();
  }

  static Values halved(LaneBuilder &b, const Values &sums) {
    Values result;
    size_t half = sums.size() / 2;
    for (size_t k = 0; k < half; ++k)
      result.push_back(arith::AddFOp::create(b, sums[k], sums[k + half]));
    return result;
  }

  Type type;
  unsigned width; ///< of a piece
  unsigned pieces;
  Value start;
};

/// What is known of a row.
struct RowFacts {
  explicit RowFacts(scf::ForOp row, Shape number = Shape::strided(1))
      : shapes(row, number), order(row, shapes), interleaved(row, shapes),
        nearby(row, shapes) {}

  Shapes shapes;
  TapeOrder order;
  InterleavedAccesses interleaved;
  NearbyLoads nearby;
};

/// Writes a row once more, for lanes.
class RowWriter {
public:
  RowWriter(scf::ForOp row, const RowFacts &facts, unsigned lanes)
      : row(row), facts(facts), b(row.getLoc(), OpBuilder(row), lanes) {}

  /// Rows of at most `few` work items one after the other.
  void runFewAlone(unsigned few) {
    if (few == 0)
      return;
    Value length =
        arith::SubIOp::create(b, row.getUpperBound(), row.getLowerBound());
    Value isShort = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, length,
                                          b.number(b.getI64Type(), few));
    auto branch = scf::IfOp::create(b, row.getResultTypes(), isShort,
                                    /*withElseRegion=*/true);
    row.replaceAllUsesWith(branch.getResults());
    scf::ForOp alone = row.clone();
    moveTo(branch.thenBlock(), alone);
    row->remove();
    moveTo(branch.elseBlock(), row);
    RowWriter(alone, facts, 1).run();
    b.setInsertionPoint(row);
  }

  /// In the order of lengths, block by block, where lanes would wait for more
  /// than `idle` iterations otherwise.
  /// `apart`: what is known of lanes that are no neighbours.
  void runInOrder(Lengths &lengths, unsigned idle, const RowFacts &apart) {
    Value begin = row.getLowerBound(), end = row.getUpperBound();
    auto branch = scf::IfOp::create(b, lengths.differ(b, idle),
                                    /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    emitBlocks(lengths, apart);
    b.setInsertionPointToStart(branch.elseBlock());
    emitAll(begin, end, {});
    row.erase();
  }

  void run() {
    Values inits;
    for (Value sum : row.getInitArgs()) {
      sums.emplace_back(b, sum.getType());
      inits.append(sums.back().size(), sums.back().zero());
    }
    finish(emitAll(row.getLowerBound(), row.getUpperBound(), inits));
    row.erase();
  }

private:
  Values emitAll(Value begin, Value end, Values inits) {
    if (b.lanes > 1 && isTwice()) {
      Value whole = wholeVectors(begin, end);
      inits = emitLoop(begin, whole, inits, /*isMasked=*/false);
      begin = whole;
    }
    return emitLoop(begin, end, inits, /*isMasked=*/b.lanes > 1);
  }

  void moveTo(Block *side, scf::ForOp loop) {
    side->getOperations().push_front(loop);
    if (loop.getNumResults() == 0)
      return;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(side);
    scf::YieldOp::create(b, loop.getResults());
  }

  /// Whether the body stands there twice, the first time without masks: masked
  /// stores take long, but not beside loops.
  bool isTwice() {
    unsigned count = 0;
    bool loops = false, storesInLoops = false;
    row.getBody()->walk([&](Operation *op) {
      ++count;
      loops |= isa<LoopLikeOpInterface>(op);
      storesInLoops |=
          stores(op) && op->getParentOfType<LoopLikeOpInterface>() != row;
    });
    return count <= mostTwice && (!loops || storesInLoops);
  }

  static bool stores(Operation *op) {
    return isa<ir::LocalStoreOp>(op) ||
           (isa<ir::ElementAccess>(op) && ir::writesElement(op));
  }

  /// Where the last vector ends that has all lanes.
  Value wholeVectors(Value begin, Value end) {
    Type i64 = b.getI64Type();
    Value length = arith::SubIOp::create(b, end, begin);
    Value whole = arith::AndIOp::create(
        b, length, b.number(i64, -static_cast<int64_t>(b.lanes)));
    return arith::AddIOp::create(b, begin, whole);
  }

  Values emitLoop(Value begin, Value end, ValueRange inits, bool isMasked) {
    auto loop = scf::ForOp::create(b, begin, end,
                                   b.number(b.getI64Type(), b.lanes), inits);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    if (b.lanes == 1)
      fillAlone(loop);
    else
      fill(loop, isMasked ? maskOf(loop.getInductionVar(), end) : nullptr);
    return Values(loop.getResults());
  }

  /// The lanes that have a work item.
  Value maskOf(Value first, Value end) {
    Type i64 = b.getI64Type(), i32 = b.getI32Type();
    Value left = arith::SubIOp::create(b, end, first);
    left = arith::MinSIOp::create(b, left, b.number(i64, b.lanes));
    left = arith::TruncIOp::create(b, i32, left);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                 b.laneNumbers(i32), b.splat(left));
  }

  /// One work item after the other, but with as many partial sums.
  void fillAlone(scf::ForOp loop) {
    row.getInductionVar().replaceAllUsesWith(loop.getInductionVar());
    Block *body = row.getBody();
    SmallVector<Operation *> additions;
    Values terms;
    for (Value sum : row.getYieldedValues()) {
      additions.push_back(sum.getDefiningOp());
      terms.push_back(sum.getDefiningOp()->getOperand(1));
    }
    body->getTerminator()->erase();
    for (Operation *addition : additions)
      addition->erase();
    splice(b, body, body->begin(), body->end());
    yieldSums(loop, terms, nullptr);
  }

  void yieldSums(scf::ForOp loop, ValueRange terms, Value mask) {
    Values next;
    ValueRange carried = loop.getRegionIterArgs();
    for (auto [sum, term] : llvm::zip_equal(sums, terms)) {
      llvm::append_range(
          next, sum.next(b, carried.take_front(sum.size()), term, mask));
      carried = carried.drop_front(sum.size());
    }
    if (!next.empty())
      scf::YieldOp::create(b, next);
  }

  LaneBody bodyOf(const RowFacts &facts) {
    return {b,
            facts.shapes,
            facts.order,
            facts.interleaved,
            facts.nearby,
            row->getParentOfType<LLVM::LLVMFuncOp>()};
  }

  void emitBlocks(Lengths &lengths, const RowFacts &apart) {
    Value size = b.number(b.getI64Type(), orderedBlock);
    auto blocks =
        scf::ForOp::create(b, row.getLowerBound(), row.getUpperBound(), size);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(blocks.getBody());
    Value begin = blocks.getInductionVar();
    Value count = arith::SubIOp::create(b, row.getUpperBound(), begin);
    count = arith::MinSIOp::create(b, count, size);
    emitBlock(begin, count, lengths.order(b, begin, count), apart);
  }

  /// The `count` work items from `begin` on, whose places are counted from
  /// there.
  void emitBlock(Value begin, Value count, Value places,
                 const RowFacts &apart) {
    Type i64 = b.getI64Type();
    auto loop =
        scf::ForOp::create(b, b.number(i64, 0), count, b.number(i64, b.lanes));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value first = loop.getInductionVar();
    Value each = arith::AddIOp::create(b, b.splat(begin),
                                       Lengths::placesOf(b, places, first));
    LaneBody body = bodyOf(apart);
    body.map(row.getInductionVar(), nullptr, each);
    body.emit(*row.getBody(), maskOf(first, count));
  }

  void fill(scf::ForOp loop, Value mask) {
    LaneBody body = bodyOf(facts);
    Value first = loop.getInductionVar();
    Value each = arith::AddIOp::create(b, b.splat(first),
                                       b.laneNumbers(first.getType()));
    body.map(row.getInductionVar(), first, each);
    for (Value sum : row.getYieldedValues())
      body.leaveOut(sum.getDefiningOp());
    body.emit(*row.getBody(), mask);
    Values terms;
    for (Value sum : row.getYieldedValues())
      terms.push_back(body.vector(sum.getDefiningOp()->getOperand(1)));
    yieldSums(loop, terms, mask);
  }

  void finish(ValueRange results) {
    for (auto [sum, before, old] :
         llvm::zip_equal(sums, row.getInitArgs(), row.getResults())) {
      old.replaceAllUsesWith(
          sum.total(b, before, Values(results.take_front(sum.size()))));
      results = results.drop_front(sum.size());
    }
  }

  scf::ForOp row;
  const RowFacts &facts;
  LaneBuilder b;
  SmallVector<PartialSums> sums;
};

struct FormLanes : impl::FormLanesBase<FormLanes> {
  using FormLanesBase::FormLanesBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>())
      if (function->hasAttr(rangeSiteAttr))
        visit(function);
  }

  static bool adds(LLVM::LLVMFuncOp function) {
    return ir::contains<ir::AtomicAddOp>(function);
  }

  void visit(LLVM::LLVMFuncOp function) {
    if (deterministic && adds(function)) // all in one order, later
      function->removeAttr(additionsAttr);
    SmallVector<scf::ForOp> rows;
    function.walk([&](scf::ForOp loop) {
      if (loop->hasAttr(rowAttr))
        rows.push_back(loop);
    });
    if (rows.empty())
      function->setAttr(obstacleAttr, StringAttr::get(&getContext(), minimum));
    for (scf::ForOp row : rows)
      form(row);
  }

  void form(scf::ForOp row) {
    RowFacts facts(row);
    Lengths lengths(row, facts.shapes);
    auto function = row->getParentOfType<LLVM::LLVMFuncOp>();
    Choice choice =
        chooseLanes(row, facts.shapes, facts.order, facts.interleaved, lengths,
                    {lanes, bits, deterministic});
    Builder b(&getContext());
    if (!choice.obstacle.empty())
      function->setAttr(obstacleAttr, b.getStringAttr(choice.obstacle));
    if (choice.lanes > 1)
      function->setAttr(vectorLanesAttr, b.getI64IntegerAttr(choice.lanes));
    if (choice.lanes) {
      setChunks(function,
                row.getNumResults() ? PartialSums::count : choice.lanes);
      std::optional<RowFacts> apart;
      if (ordered && choice.idle)
        apart.emplace(row, Shape::varying());
      bool inOrder = apart && canBe(row, *apart, lengths, choice.lanes);
      if (inOrder)
        function->setAttr(orderedLanesAttr, b.getUnitAttr());
      RowWriter writer(row, facts, choice.lanes);
      writer.runFewAlone(choice.few);
      inOrder ? writer.runInOrder(lengths, choice.idle, *apart) : writer.run();
    }
  }

  /// Whether nothing is in the way of so many lanes of which that is known.
  bool canBe(scf::ForOp row, const RowFacts &facts, const Lengths &lengths,
             unsigned lanes) {
    return chooseLanes(row, facts.shapes, facts.order, facts.interleaved,
                       lengths, {lanes, bits, deterministic})
        .obstacle.empty();
  }

  /// Chunks of the range whose chunk `function` runs are whole vectors. Where
  /// it has sums, their borders do not depend on the number of lanes.
  void setChunks(LLVM::LLVMFuncOp function, int64_t workItems) {
    std::string range = function.getName().str();
    range.replace(range.rfind(".chunk"), 6, ".range");
    getOperation().walk([&](LLVM::AddressOfOp address) {
      if (address.getGlobalName() != range)
        return;
      for (Operation *call : address->getUsers()) {
        ImplicitLocOpBuilder b(call->getLoc(), call);
        call->setOperand(call->getNumOperands() - 1, constant(b, workItems));
      }
    });
  }
};

} // namespace
} // namespace costate::conversion
