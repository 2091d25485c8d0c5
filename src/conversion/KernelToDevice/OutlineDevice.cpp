#include "base/DeviceSort.h"
#include "base/DeviceWords.h"
#include "conversion/KernelToDevice/CountingSlice.h"
#include "conversion/KernelToDevice/DeviceFunction.h"
#include "conversion/KernelToDevice/HostNeed.h"
#include "conversion/KernelToDevice/Passes.h"
#include "conversion/KernelToDevice/Reductions.h"
#include "conversion/KernelToDevice/SharedArrays.h"
#include "conversion/KernelToDevice/SortWorkItems.h"
#include "conversion/KernelToLLVM/Accumulators.h"
#include "conversion/KernelToLLVM/GroupCall.h"
#include "conversion/KernelToLLVM/LoopNest.h"
#include "conversion/PlaceTapes/Passes.h"
#include "ir/Device.h"
#include "ir/Division.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_OUTLINEDEVICE
#include "conversion/KernelToDevice/Passes.h.inc"

namespace {

bool drains(Operation *op) { return isa<tape::DrainsOp>(op); }
bool isBudget(Operation *op) { return isa<tape::BudgetOp>(op); }
bool isClaim(Operation *op) { return isa<tape::ClaimOp>(op); }
bool addsToBlock(Operation *op) { return op->hasAttr(inBlockAttr); }

/// What all parts of one kernel share.
struct Launcher {
  ModuleOp module;
  Runtime &runtime;
  std::string kernel;
  int64_t lanes; ///< of a warp
  bool namesWorkItems;
  int64_t frameSlots = 1; ///< slot 0: top of the tape of the serial code
  size_t functions = 0;   ///< so far
};

bool usedByHost(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<ir::RangeOp>(user) || !(user->getParentOfType<ir::RangeOp>() ||
                                       user->getParentOfType<ir::SerialOp>());
  });
}

/// What a reversed loop, or serial code of the reverse sweep, hands to a range
/// is not there in a launch that only counts.
bool isMeasuredInPlace(Operation *part) {
  return pushesForward(part) && isAfterPivot(part) &&
         (part->hasAttr(measuredInPlaceAttr) ||
          !isa<LLVM::LLVMFuncOp>(part->getParentOp()));
}

/// What a part has to do with the sizes of tapes.
struct Counting {
  Operation *copy = nullptr; ///< of the slice; null: the part itself, or none
  bool isNeeded = false;     ///< by others, to know their tapes
  bool isDryRun = false;     ///< what decides them is overwritten
};

/// A range or a serial part of an outlined kernel.
class PartOutliner {
public:
  PartOutliner(Launcher &launcher, Operation *part, Counting counting)
      : launcher(launcher), part(part), range(dyn_cast<ir::RangeOp>(part)),
        region(part->getRegion(0)), tiled(part->hasAttr(tilesAttr)),
        known(dyn_cast_or_null<tape::ExpectOp>(part->getPrevNode())),
        depth(depthOf(region)), number(launcher.functions++),
        divisors(divisorsOf(range)), uses(region, sharedByWorkItems()),
        reductions(region), accumulators(region),
        addsInBlock(range && contains(region, addsToBlock)),
        summation(range ? Summation::of(range) : Summation()),
        pushes(pushesForward(part)), shared(region),
        hasBlocks(range && ir::hasBlocks(range)),
        hasBudget(contains(region, isBudget)), counting(counting) {}

  LogicalResult run() {
    if (failed(checkRepeated()))
      return failure();
    firstSlot = launcher.frameSlots;
    launcher.frameSlots += part->getNumResults() + reductions.size();
    computeNeed();
    describe();
    if (counting.copy) {
      emit("measure", counting.copy, /*measures=*/true);
      counting.copy->erase();
    }
    emit("device", part, /*measures=*/false);
    call();
    replaceResults();
    part->erase();
    return success();
  }

private:
  /// All extents but the first, by which the host makes it cheap to divide;
  /// none if it does not know them.
  static SmallVector<ir::Divisor> divisorsOf(ir::RangeOp range) {
    if (!range || llvm::any_of(range.getExtents(), frameSlotOf))
      return {};
    ImplicitLocOpBuilder b(range.getLoc(), range);
    SmallVector<ir::Divisor> divisors;
    for (Value extent : range.getExtents().drop_front())
      divisors.push_back(ir::Divisor::of(b, extent));
    return divisors;
  }

  Values sharedByWorkItems() {
    Values values;
    if (range)
      values.assign(range.getExtents().begin(), range.getExtents().end());
    for (const ir::Divisor &d : divisors)
      for (Value value : {d.number, d.low, d.high})
        if (value)
          values.push_back(value);
    return values;
  }

  std::string nameOf(StringRef kind) const {
    return (launcher.kernel + "." + kind + Twine(number)).str();
  }

  int64_t results() { return range ? range.getNumResults() : 0; }
  /// Its results, and after them what goes to elements.
  int64_t sums() { return results() + reductions.size(); }
  /// Those that need an order; of others, blocks add their parts to the
  /// element.
  int64_t gridSums() { return isInOrder() ? sums() : results(); }
  /// Whether the same threads add up the same work items in each launch. Other
  /// tiles go to whichever warp is free, or to the drain; sums of deterministic
  /// kernels have none.
  bool isInOrder() { return !tiled || part->hasAttr(inOrderAttr); }
  bool isOneSum() {
    return !tiled && gridSums() == 1 && summation.kind == costateFloatSums;
  }
  /// What the host knows of the tape of a part that has no tiles.
  void computeNeed() {
    ImplicitLocOpBuilder b(part->getLoc(), part);
    if (pushes && !contains(region, isClaim))
      need = emitNeed(b, part);
  }

  /// How many work items are a block; 0: the device decides, which it does
  /// where threads have tapes or add up.
  int64_t blockDim() {
    if (!range || tiled || pushes || sums() || addsInBlock)
      return 0;
    auto wanted = part->getAttrOfType<IntegerAttr>(ir::blockDimAttr);
    return wanted ? wanted.getInt() : hasBlocks ? ir::usualBlockDim : 0;
  }

  int64_t callWord() const { return firstOwnWord + uses.parts.size(); }
  int64_t sortWord() const {
    return callWord() + (tiled ? sizeof(TapeCall) / 8 : 0);
  }
  /// A tiled function finds its TapeCall after its other words, and then its
  /// SortCall. Of others, the host puts the need there, if it knows that, and
  /// what loops that are cut by a budget may save.
  int64_t budgetWord() const {
    return sortWord() + (depth ? sizeof(SortCall) / 8 : 0) + (need ? 1 : 0);
  }
  int64_t words() const { return budgetWord() + (hasBudget ? 1 : 0); }

  /// The place of the push in the innermost loop.
  int64_t tapeSite() {
    Operation *deepest = nullptr;
    int most = -1;
    region.walk([&](Operation *push) {
      if (!isa<tape::PushOp, tape::WriteOp>(push))
        return;
      int depth = 0;
      for (Operation *op = push; op; op = op->getParentOp())
        depth += isa<LoopLikeOpInterface>(op);
      if (depth > most)
        deepest = push;
      most = std::max(most, depth);
    });
    return launcher.runtime.site((deepest ? deepest : part)->getLoc());
  }

  int64_t iterationRows() {
    auto rows = part->getAttrOfType<IntegerAttr>(iterationRowsAttr);
    return rows ? rows.getInt() : 0;
  }

  /// Why it has a tape that is not in tiles; empty: it has none.
  StringRef obstacle() {
    if (!pushes)
      return "";
    if (auto known = part->getAttrOfType<StringAttr>(tapeObstacleAttr))
      return known.getValue();
    return range ? "each work item is looked at" : "it is serial code";
  }

  /// Who is measured in place runs twice, which what is overwritten in scratch
  /// arrays would not bear. Gradients have no such ranges: those in loops and
  /// branches are refused before any of these folds.
  LogicalResult checkRepeated() {
    auto overwrites = [](Operation *op) {
      return ir::writesElement(op) && op->hasAttr(ir::replayedAttr);
    };
    if (!isMeasuredInPlace(part) || !contains(region, overwrites))
      return success();
    return part->emitError("a range that is measured in place overwrites "
                           "scratch arrays");
  }

  void describe() {
    auto b = ImplicitLocOpBuilder::atBlockEnd(part->getLoc(),
                                              launcher.module.getBody());
    auto op = ir::DeviceFunctionOp::create(b, nameOf("device"));
    op.setMeasure(counting.copy ? nameOf("measure") : "");
    op.setSerial(!range);
    op.setAfterPivot(isAfterPivot(part));
    op.setEffects(contains(region, isEffect));
    op.setOrdered(range && contains(region, addsInAnyOrder));
    op.setCollective(tiled || sums() || addsInBlock || hasBlocks);
    op.setBlockDim(blockDim());
    op.setHasBlocks(hasBlocks);
    op.setSharedBytes(shared.bytes());
    op.setAddsInBlock(addsInBlock);
    op.setWords(words());
    op.setSite(launcher.runtime.site(part->getLoc()));
    describeTape(op);
    describeSums(op);
  }

  void describeTape(ir::DeviceFunctionOp op) {
    op.setPushes(pushes);
    op.setCounts(counting.isNeeded);
    op.setDryRun(counting.isDryRun);
    op.setMeasuredInPlace(isMeasuredInPlace(part));
    op.setObstacle(obstacle());
    op.setNeedWord(need ? sortWord() : -1);
    op.setBudgetWord(hasBudget ? budgetWord() : -1);
    op.setTiles(tiled);
    op.setDrains(contains(region, drains));
    op.setExpensive(part->hasAttr(expensiveAttr));
    op.setModeratelyExpensive(part->hasAttr(moderatelyExpensiveAttr));
    op.setIterationRows(iterationRows());
    op.setTapeSite(tapeSite());
    if (depth)
      op.setSortCosts(
          ArrayRef<int64_t>{int64_t(depth.getIteration()),
                            int64_t(depth.getUncoalescedWorkItem()),
                            int64_t(depth.getUncoalescedIteration())});
  }

  void describeSums(ir::DeviceFunctionOp op) {
    op.setAddsUp(sums() != 0);
    op.setAccumulates(!accumulators.empty());
    op.setSums(gridSums());
    op.setSumSlot(firstSlot);
    op.setLeast(summation.kind == costateLeastPair);
    op.setOneSum(isOneSum());
  }

  //===-- The function ---------------------------------------------------===//

  /// What the function finds in its words and in the frame.
  Values partsHere(ImplicitLocOpBuilder &b, DeviceFunction &function) {
    Value frame =
        loadSlot(b, pointerType(b.getContext()), function.words(), FrameWord);
    Values here;
    for (auto [k, value] : llvm::enumerate(uses.parts))
      if (auto slot = frameSlotOf(value))
        here.push_back(loadFromFrame(b, value, frame, *slot));
      else
        here.push_back(
            loadSlot(b, value.getType(), function.words(), firstOwnWord + k));
    return here;
  }

  void emit(StringRef kind, Operation *op, bool measures) {
    Threading threading = tiled   ? Threading::Tiled
                          : range ? Threading::Strided
                                  : Threading::Serial;
    DeviceFunction function(launcher.module, op->getLoc(), nameOf(kind),
                            words(), threading, launcher.lanes, measures);
    if (tiled)
      function.mark("costate-tiles");
    else if (sums())
      function.mark("costate-sums");
    else if (gathersFewFloats())
      function.mark("costate-gathers");
    if (shared.bytes())
      function.mark("costate-shared");
    if (int64_t threads = blockDim())
      function.mark("costate-block-dim", threads);
    auto b = ImplicitLocOpBuilder::atBlockBegin(op->getLoc(), function.block());
    Value place;
    if (tiled)
      place = launcher.runtime.callTape(b, "place", true, {});
    if (depth)
      emitSort(b, function, place);
    Captures own = uses;
    own.map(b, partsHere(b, function), op->getRegion(0));
    shared.place(b, op->getRegion(0), function.memory());
    findBudget(b, function, op);
    claimed = meetClaims(b, function, op, measures);
    if (range && !measures)
      redirect(b, op->getRegion(0));
    bool addsHere = addsInBlock && !measures;
    if (addsHere)
      launcher.runtime.callBeginInBlock(b);
    if (tiled)
      emitTiles(b, function, cast<ir::RangeOp>(op), own, place);
    else if (range)
      emitWorkItems(b, function, cast<ir::RangeOp>(op), own, measures);
    else
      emitSerial(b, function, cast<ir::SerialOp>(op), measures);
    if (addsHere)
      launcher.runtime.callEndInBlock(b);
    function.end(b);
  }

  void findBudget(ImplicitLocOpBuilder &b, DeviceFunction &function,
                  Operation *op) {
    if (!hasBudget)
      return;
    Value bytes = loadSlot(b, b.getI64Type(), function.words(), budgetWord());
    op->walk([&](tape::BudgetOp budget) {
      budget.replaceAllUsesWith(bytes);
      budget.erase();
    });
  }

  /// Where it measures: a cell for the most bytes that claims come to; else
  /// null.
  Value meetClaims(ImplicitLocOpBuilder &b, DeviceFunction &function,
                   Operation *op, bool measures) {
    Value cell;
    if (measures && contains(op->getRegion(0), isClaim)) {
      cell = LLVM::AllocaOp::create(b, pointerType(b.getContext()),
                                    b.getI64Type(), constant(b, 1), 8);
      LLVM::StoreOp::create(b, constant(b, 0), cell);
    }
    op->walk([&](tape::ClaimOp claim) {
      if (cell) {
        ImplicitLocOpBuilder here(claim.getLoc(), claim);
        Value all = arith::AddIOp::create(here, usedTape(here, function),
                                          claim.getBytes());
        LLVM::StoreOp::create(here, mostClaimed(here, cell, all), cell);
      }
      claim.erase();
    });
    return cell;
  }

  static Value mostClaimed(ImplicitLocOpBuilder &b, Value cell, Value bytes) {
    if (!cell)
      return bytes;
    Value before = LLVM::LoadOp::create(b, b.getI64Type(), cell);
    return arith::MaxUIOp::create(b, before, bytes);
  }

  /// Bytes of one thread. That of the serial code starts at address 0.
  Value usedTape(ImplicitLocOpBuilder &b, DeviceFunction &function) {
    Type pointer = pointerType(b.getContext());
    Value top = LLVM::LoadOp::create(b, pointer, function.worker());
    Value to = LLVM::PtrToIntOp::create(b, b.getI64Type(), top);
    if (!range)
      return to;
    Value base = loadSlot(b, pointer, function.worker(), tapeBaseSlot);
    Value from = LLVM::PtrToIntOp::create(b, b.getI64Type(), base);
    Value used = arith::SubIOp::create(b, to, from);
    return arith::DivUIOp::create(b, used, constant(b, launcher.lanes));
  }

  void redirect(ImplicitLocOpBuilder &b, Region &copy) {
    reductions.redirect(b, copy);
    accumulators.redirect(b, copy);
  }

  /// Measuring, the tape starts at address 0.
  void emitSerial(ImplicitLocOpBuilder &b, DeviceFunction &function,
                  ir::SerialOp serial, bool measures) {
    Block *body = serial.getBody();
    auto yield = cast<ir::YieldOp>(body->getTerminator());
    splice(b, body, body->begin(), yield->getIterator());
    Value frame =
        loadSlot(b, pointerType(b.getContext()), function.words(), FrameWord);
    for (auto [k, value] : llvm::enumerate(yield.getValues()))
      storeSlot(b, value, frame, firstSlot + k);
    if (measures)
      commitNeed(b, function, mostClaimed(b, claimed, usedTape(b, function)));
  }

  /// for (k = thread; k < workItems; k += threads) workItem(k), in a form
  /// that LLVM unrolls.
  void emitWorkItems(ImplicitLocOpBuilder &b, DeviceFunction &function,
                     ir::RangeOp op, const Captures &own, bool measures) {
    auto indicesOf = indexing(b, function, op, own);
    Values carried;
    if (measures) {
      carried.push_back(constant(b, 0));
    } else {
      carried = zeros(b, sums());
    }
    carried.push_back(function.thread());
    auto iteration = [&](OpBuilder &nested, Location loc, Value,
                         ValueRange args) {
      ImplicitLocOpBuilder inner(loc, nested);
      Value k = args.back();
      args = args.drop_back();
      if (launcher.namesWorkItems)
        storeSlot(inner, k, function.worker(), workItemSlot);
      useIndices(op, indicesOf(inner, k));
      Values next = measures ? measure(inner, function, op, args[0])
                             : iterate(inner, op, args);
      if (hasBlocks) // others may still use shared arrays
        callBlockBarrier(inner, launcher.module);
      next.push_back(arith::AddIOp::create(inner, k, function.threads()));
      scf::YieldOp::create(inner, next);
    };
    Value zero = constant(b, 0), one = constant(b, 1);
    Value iterations = tripCountOf(b, function);
    auto loop =
        scf::ForOp::create(b, zero, iterations, one, carried, iteration);
    if (measures)
      commitNeed(b, function, loop.getResult(0));
    else
      addUp(b, function, loop.getResults().drop_back(), own);
  }

  /// Whether NVIDIA's assembler may keep so few registers that loads wait for
  /// each other. With many more loads it does not.
  bool gathersFewFloats() {
    constexpr int64_t manyLoads = 40;
    if (!range || !range->hasAttr(ir::gatherAttr))
      return false;
    int64_t loads = 0;
    region.walk([&](ir::LoadOp load) {
      loads += load.getType().isF64() ? manyLoads : 1;
    });
    return loads < manyLoads;
  }

  /// From the number of a work item to its indices.
  std::function<Values(ImplicitLocOpBuilder &, Value)>
  indexing(ImplicitLocOpBuilder &b, DeviceFunction &function, ir::RangeOp op,
           const Captures &own) {
    auto here = [&](Value value) { return own.mapping.lookupOrNull(value); };
    Values extents = llvm::map_to_vector(op.getExtents(), here);
    if (divisors.empty())
      return [=](ImplicitLocOpBuilder &inner, Value number) {
        return ir::indicesOf(inner, number, extents);
      };
    auto known = llvm::map_to_vector(divisors, [&](const ir::Divisor &d) {
      return ir::Divisor{here(d.number), here(d.low), here(d.high)};
    });
    Value isNarrow = ir::isNarrow(b, workItems(b, function, extents));
    return [=](ImplicitLocOpBuilder &inner, Value number) {
      return ir::indicesOf(inner, number, extents, known, isNarrow);
    };
  }

  /// How many they are; a constant if the extents are.
  static Value workItems(ImplicitLocOpBuilder &b, DeviceFunction &function,
                         ValueRange extents) {
    int64_t count = 1;
    for (Value value : extents) {
      APInt extent;
      if (!matchPattern(value, m_ConstantInt(&extent)) ||
          llvm::MulOverflow(count, std::max<int64_t>(extent.getSExtValue(), 0),
                            count))
        return loadSlot(b, b.getI64Type(), function.words(), WorkItemsWord);
    }
    return constant(b, count);
  }

  /// Of a thread; without a division.
  Value tripCountOf(ImplicitLocOpBuilder &b, DeviceFunction &function) {
    auto word = [&](DeviceWord number) {
      return loadSlot(b, b.getI64Type(), function.words(), number);
    };
    Value isMore = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                         function.thread(), word(RestWord));
    Value more = arith::ExtUIOp::create(b, b.getI64Type(), isMore);
    return arith::AddIOp::create(b, word(PerThreadWord), more);
  }

  Values zeros(ImplicitLocOpBuilder &b, unsigned count) {
    Values values;
    for (unsigned k = 0; k < count; ++k)
      values.push_back(summation.none(b));
    return values;
  }

  void useIndices(ir::RangeOp op, ValueRange indices) {
    for (auto [argument, index] :
         llvm::zip(op.getBody()->getArguments(), indices))
      argument.replaceAllUsesWith(index);
  }

  /// for (tile = first; tile != none; tile = next) one work item per lane
  void emitTiles(ImplicitLocOpBuilder &b, DeviceFunction &function,
                 ir::RangeOp op, const Captures &own, Value place) {
    auto indicesOf = indexing(b, function, op, own);
    Value worker = function.worker(), none = constant(b, -1);
    Runtime &runtime = launcher.runtime;
    Value call = slot(b, function.words(), callWord());
    runtime.callTape(b, "begin", false,
                     {worker, call, function.thread(), function.threads(),
                      function.memory(), place});
    Values carried{runtime.callTape(b, "tile", true, worker)};
    carried.append(zeros(b, sums()));
    auto before = [&](OpBuilder &nested, Location loc, ValueRange args) {
      ImplicitLocOpBuilder inner(loc, nested);
      Value more =
          arith::CmpIOp::create(inner, arith::CmpIPredicate::ne, args[0], none);
      scf::ConditionOp::create(inner, more, args);
    };
    auto after = [&](OpBuilder &nested, Location loc, ValueRange args) {
      ImplicitLocOpBuilder inner(loc, nested);
      Value k = runtime.callTape(inner, "work_item", true, {worker, args[0]});
      useIndices(op, indicesOf(inner, k));
      Values next{Value()};
      next.append(iterate(inner, op, args.drop_front()));
      next[0] = runtime.callTape(inner, "next", true, worker);
      scf::YieldOp::create(inner, next);
    };
    SmallVector<Type> types = llvm::to_vector(TypeRange(ValueRange(carried)));
    auto loop = scf::WhileOp::create(b, types, carried, before, after);
    runtime.callTape(b, "end", false, worker);
    addUp(b, function, loop.getResults().drop_front(), own);
  }

  /// Sorts the work items by depth, if the words say so.
  void emitSort(ImplicitLocOpBuilder &b, DeviceFunction &function,
                Value place) {
    // Standing in the kernel it can be mapped like the part itself.
    auto copy = cast<ir::RangeOp>(part->clone());
    part->getBlock()->getOperations().insert(part->getIterator(), copy);
    Captures own = uses;
    own.map(b, partsHere(b, function), copy->getRegion(0));
    Values extents;
    for (Value extent : copy.getExtents())
      extents.push_back(own.mapping.lookup(extent));
    Value call = slot(b, function.words(), sortWord());
    sortWorkItems(b, launcher.runtime, copy, extents,
                  {call, function.thread(), function.memory(), place});
    copy->erase();
  }

  Values iterate(ImplicitLocOpBuilder &b, ir::RangeOp op, ValueRange sums) {
    Block *body = op.getBody();
    for (tape::PivotOp pivot :
         llvm::make_early_inc_range(body->getOps<tape::PivotOp>()))
      pivot.erase();
    auto yield = cast<ir::YieldOp>(body->getTerminator());
    reductions.clear(b);
    splice(b, body, body->begin(), yield->getIterator());
    Values terms, values = yield.getValues();
    values.append(reductions.sums(b));
    for (Value value : values)
      terms.push_back(summation.term(b, value));
    return summation.add(b, sums, terms, /*inAnyOrder=*/false);
  }

  /// The forward sweep; returns the largest tape so far.
  Values measure(ImplicitLocOpBuilder &b, DeviceFunction &function,
                 ir::RangeOp op, Value most) {
    Block *body = op.getBody();
    auto pivots = body->getOps<tape::PivotOp>();
    Block::iterator end = pivots.empty() ? body->getTerminator()->getIterator()
                                         : (*pivots.begin())->getIterator();
    splice(b, body, body->begin(), end);
    Value used = mostClaimed(b, claimed, usedTape(b, function));
    Value base = loadSlot(b, pointerType(b.getContext()), function.worker(),
                          tapeBaseSlot);
    LLVM::StoreOp::create(b, base, function.worker());
    return {arith::MaxUIOp::create(b, most, used)};
  }

  void commitNeed(ImplicitLocOpBuilder &b, DeviceFunction &function,
                  Value need) {
    Value cell =
        loadSlot(b, pointerType(b.getContext()), function.words(), NeedWord);
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, cell, need,
                              LLVM::AtomicOrdering::monotonic);
  }

  /// See device/DeviceSums.c. `own`: what arrays are here.
  void addUp(ImplicitLocOpBuilder &b, DeviceFunction &function, ValueRange sums,
             const Captures &own) {
    accumulators.flush(b, own.mapping);
    addUpGrid(b, function, sums.take_front(gridSums()), own);
    Values ofBlock;
    for (auto [k, sum] : llvm::enumerate(sums.drop_front(gridSums()))) {
      Value number = constant(b, k);
      ofBlock.push_back(launcher.runtime.callBlockSum(
          b, {function.thread(), function.memory(), number, sum}));
    }
    if (!ofBlock.empty())
      reductions.add(b, own.mapping, ofBlock);
  }

  void addUpGrid(ImplicitLocOpBuilder &b, DeviceFunction &function,
                 ValueRange sums, const Captures &own) {
    if (sums.empty())
      return;
    Type pointer = pointerType(b.getContext()), i64 = b.getI64Type();
    Value partials = loadSlot(b, pointer, function.words(), PartialsWord);
    Value count = loadSlot(b, i64, function.words(), PartialCountWord);
    Value first = loadSlot(b, i64, function.words(), FirstPartialWord);
    Value ticket = loadSlot(b, pointer, function.words(), TicketWord);
    Value kind = constant(b, summation.kind);
    Values words;
    for (Value sum : sums)
      words.push_back(isa<FloatType>(sum.getType())
                          ? sum
                          : arith::BitcastOp::create(b, b.getF64Type(), sum));
    if (summation.kind == costateLeastPair)
      launcher.runtime.callAddUpPair(b,
                                     {partials, count, first, function.thread(),
                                      function.memory(), words[0], words[1]});
    else
      for (auto [k, word] : llvm::enumerate(words))
        launcher.runtime.callAddUp(b, {partials, count, first,
                                       function.thread(), function.memory(),
                                       constant(b, k), kind, word});
    Value frame = loadSlot(b, pointer, function.words(), FrameWord);
    Value to = slot(b, frame, firstSlot), number = constant(b, sums.size());
    Value isLast = launcher.runtime.callFinishSums(
        b, {partials, count, ticket, function.thread(), function.threads(),
            function.memory(), number, kind, to});
    if (static_cast<int64_t>(sums.size()) == results())
      return;
    auto branch = scf::IfOp::create(b, isLast);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Values ofGrid;
    for (size_t k = results(); k < sums.size(); ++k)
      ofGrid.push_back(loadSlot(b, b.getF64Type(), frame, firstSlot + k));
    reductions.add(b, own.mapping, ofGrid);
  }

  //===-- The host -------------------------------------------------------===//

  /// `value` with as many zeros after it as make 8 bytes.
  static Value widened(ImplicitLocOpBuilder &b, Value value) {
    if (value.getType().isF32())
      value = arith::BitcastOp::create(b, b.getI32Type(), value);
    auto integer = dyn_cast<IntegerType>(value.getType());
    if (integer && integer.getWidth() < 64)
      value = arith::ExtUIOp::create(b, b.getI64Type(), value);
    return value;
  }

  void call() {
    ImplicitLocOpBuilder b(part->getLoc(), part);
    auto entry = part->getParentOfType<LLVM::LLVMFuncOp>();
    auto top = ImplicitLocOpBuilder::atBlockBegin(
        part->getLoc(), &entry.getFunctionBody().front());
    Type pointer = pointerType(b.getContext());
    Value size = constant(top, words());
    Value words =
        LLVM::AllocaOp::create(top, pointer, top.getI64Type(), size, 8);
    for (auto [k, value] : llvm::enumerate(uses.parts)) {
      // What is in the frame has a word that nobody reads.
      Value word = frameSlotOf(value) ? constant(b, 0) : widened(b, value);
      storeSlot(b, word, words, firstOwnWord + k);
    }
    if (tiled)
      tellNeed(b, words);
    if (need)
      storeSlot(b, need, words, sortWord());
    Value which = constant(b, number);
    Value workItems =
        range ? workItemsOf(b, range.getExtents()) : constant(b, 1);
    if (launcher.namesWorkItems && range)
      tellExtents(b, entry.getArgument(0), top);
    launcher.runtime.callDeviceRun(
        b, {entry.getArgument(0), which, words, workItems});
  }

  /// The first words of a TapeCall.
  void tellNeed(ImplicitLocOpBuilder &b, Value words) {
    Value none = constant(b, 0);
    storeSlot(b, known ? known.getNeed() : none, words, callWord());
    storeSlot(b, known ? known.getMinRows() : none, words, callWord() + 1);
    if (known)
      known.erase();
  }

  void tellExtents(ImplicitLocOpBuilder &b, Value launch,
                   ImplicitLocOpBuilder &top) {
    Value size = constant(top, range.getExtents().size());
    Value extents = LLVM::AllocaOp::create(top, pointerType(b.getContext()),
                                           top.getI64Type(), size, 8);
    for (auto [k, extent] : llvm::enumerate(range.getExtents()))
      storeSlot(b, extent, extents, k);
    launcher.runtime.callBeginRange(b, launch, extents,
                                    range.getExtents().size());
  }

  /// Uses of a result by the host make it wait for the value.
  void replaceResults() {
    ImplicitLocOpBuilder b(part->getLoc(), part);
    b.setInsertionPointAfter(part);
    for (auto [k, result] : llvm::enumerate(part->getResults())) {
      if (result.use_empty())
        continue;
      Value stand = usedByHost(result) ? readBack(b, result, firstSlot + k)
                                       : frameValue(b, result.getType(),
                                                    firstSlot + k, bool(range));
      result.replaceAllUsesWith(stand);
    }
  }

  Value readBack(ImplicitLocOpBuilder &b, Value result, int64_t slot) {
    launcher.module->setAttr(readsBackAttr, b.getUnitAttr());
    auto entry = part->getParentOfType<LLVM::LLVMFuncOp>();
    Value number = constant(b, slot);
    Value bits =
        launcher.runtime.callDeviceRead(b, {entry.getArgument(0), number});
    return fromFrameBits(b, result.getType(), bits, bool(range));
  }

  Launcher &launcher;
  Operation *part;
  ir::RangeOp range; ///< null for serial code
  Region &region;
  bool tiled;
  tape::ExpectOp known; ///< what the host knows of the tapes; may be null
  tape::DepthOp depth;  ///< what it may be sorted by; may be null
  size_t number;
  SmallVector<ir::Divisor> divisors;
  Captures uses;
  Reductions reductions;
  Accumulators accumulators;
  bool addsInBlock; ///< to elements that lanes of a warp likely share
  Summation summation;
  bool pushes; ///< in its forward sweep
  SharedArrays shared;
  bool hasBlocks; ///< whose work items depend on each other
  bool hasBudget; ///< for loops that are cut
  Counting counting;
  Value claimed; ///< in the function that is emitted: see meetClaims
  Value need;    ///< of one thread of it, in bytes; null: not known to the host
  int64_t firstSlot = 0;
};

/// The host code of a kernel.
class KernelOutliner {
public:
  KernelOutliner(Launcher &launcher, ir::KernelOp kernel)
      : launcher(launcher), kernel(kernel) {}

  LogicalResult run() {
    kernel.walk([](ir::SerialOp serial) { runAlone(serial); });
    entry = createEntry(launcher.module, kernel,
                        /*keepDimensions=*/launcher.namesWorkItems);
    SmallVector<Operation *> parts;
    entry.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto local = dyn_cast<ir::LocalOp>(op))
        launcher.frameSlots += keepInFrame(local, launcher.frameSlots);
      if (!isa<ir::RangeOp, ir::SerialOp>(op))
        return WalkResult::advance();
      parts.push_back(op);
      return WalkResult::skip();
    });
    FailureOr<SmallVector<Counting>> countings = cutSlices(parts);
    if (failed(countings))
      return failure();
    for (auto [part, counting] : llvm::zip_equal(parts, *countings))
      if (failed(PartOutliner(launcher, part, counting).run()))
        return failure();
    entry.walk([](Operation *op) {
      if (isa<UnrealizedConversionCastOp, ir::LocalOp>(op) &&
          frameSlotOf(op->getResult(0)))
        op->erase();
    });
    callCopies(launcher.runtime, entry);
    return success();
  }

private:
  /// Of the parts that a launch runs first to know the sizes of tapes.
  FailureOr<SmallVector<Counting>> cutSlices(ArrayRef<Operation *> parts) {
    SmallVector<Operation *> counted;
    llvm::copy_if(parts, std::back_inserter(counted),
                  [](Operation *part) { return !isMeasuredInPlace(part); });
    CountingSlice slice(counted);
    bool pushes = llvm::any_of(counted, pushesForward);
    for (Operation *part : counted)
      if (pushes)
        addRoots(slice, part);
    if (Operation *part = slice.obstacle())
      return part->emitError("what is computed here beside writes to memory "
                             "may decide the size of a tape");
    tell(slice);
    return llvm::map_to_vector(parts, [&](Operation *part) {
      return countingOf(slice, counted, part);
    });
  }

  /// The host asks for results of the forward sweep only.
  static void addRoots(CountingSlice &slice, Operation *part) {
    if (pushesForward(part))
      slice.addPushes(part);
    if (isAfterPivot(part))
      return;
    for (Value result : part->getResults())
      if (usedByHost(result))
        slice.addResult(result);
  }

  static Counting countingOf(const CountingSlice &slice,
                             ArrayRef<Operation *> counted, Operation *part) {
    bool pushes = pushesForward(part);
    if (isMeasuredInPlace(part)) {
      CountingSlice own(part);
      own.addPushes(part);
      return {own.cut(part)};
    }
    Counting counting{.isNeeded = slice.isNeeded(part)};
    if (pushes || (counting.isNeeded && isa<ir::SerialOp>(part)))
      counting.copy = slice.cut(part);
    if (pushes) {
      CountingSlice own(counted);
      own.addPushes(part);
      counting.isDryRun = own.readsWritten();
    }
    return counting;
  }

  void tell(const CountingSlice &slice) {
    Builder b(launcher.module.getContext());
    launcher.module->setAttr("costate.counted_from",
                             b.getDenseI64ArrayAttr(slice.reads()));
    launcher.module->setAttr("costate.counted_slots",
                             b.getDenseI64ArrayAttr(slice.arguments()));
    launcher.module->setAttr("costate.counts_from_all",
                             b.getBoolAttr(slice.usesAllArguments()));
    launcher.module->setAttr("costate.counts_written",
                             b.getBoolAttr(slice.readsWritten()));
  }

  /// No other work item interferes with serial code.
  static void runAlone(ir::SerialOp serial) {
    serial.walk([](Operation *op) {
      if (isa<ir::AtomicAddOp, ir::AtomicMinOp, ir::AtomicMaxOp,
              ir::AtomicTakeOp>(op))
        op->setAttr("exclusive", UnitAttr::get(op->getContext()));
    });
  }

  Launcher &launcher;
  ir::KernelOp kernel;
  LLVM::LLVMFuncOp entry;
};

struct OutlineDevice : impl::OutlineDeviceBase<OutlineDevice> {
  using OutlineDeviceBase::OutlineDeviceBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    module->setAttr(deviceAttr, UnitAttr::get(module.getContext()));
    Runtime runtime(module);
    for (ir::KernelOp kernel :
         llvm::make_early_inc_range(module.getOps<ir::KernelOp>())) {
      Launcher launcher{
          .module = module,
          .runtime = runtime,
          .kernel = kernel.getName().str(),
          .lanes = lanes,
          .namesWorkItems = debug || contains(kernel.getRegion(), isPrint),
      };
      if (failed(KernelOutliner(launcher, kernel).run()))
        return signalPassFailure();
      Builder b(module.getContext());
      module->setAttr("costate.frame_slots",
                      b.getI64IntegerAttr(launcher.frameSlots));
    }
  }
};

} // namespace
} // namespace costate::conversion
