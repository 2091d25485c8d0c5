#include "conversion/KernelToLLVM/Accumulators.h"
#include "conversion/KernelToLLVM/AdditionsText.h"
#include "conversion/KernelToLLVM/Copies.h"
#include "conversion/KernelToLLVM/LoopNest.h"
#include "conversion/KernelToLLVM/Outline.h"
#include "conversion/KernelToLLVM/Slabs.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_OUTLINERANGES
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// One range of an outlined kernel.
class RangeOutliner {
public:
  RangeOutliner(ModuleOp module, Runtime &runtime, ir::RangeOp range,
                StringRef kernel, unsigned number, bool measures,
                bool namesWorkItems)
      : module(module), runtime(runtime), range(range), kernel(kernel),
        number(number), measures(measures), namesWorkItems(namesWorkItems),
        summation(Summation::of(range)), hasSlabs(markSlabs(range)),
        uses(range.getRegion(), range.getExtents().drop_front()),
        accumulators(range.getRegion()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        i64(IntegerType::get(module.getContext(), 64)) {}

  void run() {
    if (!namesWorkItems)
      copied = markCopied(range);
    std::string additions = additionsText(range);
    LLVM::LLVMFuncOp chunk = createChunk();
    if (!additions.empty())
      chunk->setAttr(additionsAttr,
                     StringAttr::get(module.getContext(), additions));
    fillChunk(chunk);
    LLVM::LLVMFuncOp body = createBody(chunk);
    replaceByCall(body);
  }

private:
  LLVM::LLVMFuncOp createChunk() {
    SmallVector<Type> params = {pointer, pointer, i64, i64};
    llvm::append_range(params, ValueRange(uses.parts).getTypes());
    auto chunk = createFunction(module, range.getLoc(),
                                kernel + ".chunk" + Twine(number), params,
                                LLVM::Linkage::Internal);
    chunk.setNoInline(true);
    chunk->setAttr(rangeSiteAttr,
                   Builder(module.getContext())
                       .getI64IntegerAttr(runtime.site(range.getLoc())));
    setAlias(chunk, 0, "llvm.noalias");
    setAlias(chunk, 1, "llvm.noalias");
    for (Value value : uses.captured) {
      if (!isa<ir::ArrayType>(value.getType()))
        continue;
      unsigned base = firstCapture + uses.position(ArrayView(value).base);
      setAlias(chunk, base, "llvm.noalias");
      if (!isWritten(value, range.getRegion()))
        setAlias(chunk, base, "llvm.readonly");
    }
    return chunk;
  }

  void setAlias(LLVM::LLVMFuncOp function, unsigned argument, StringRef name) {
    function.setArgAttr(argument, name, UnitAttr::get(module.getContext()));
  }

  void fillChunk(LLVM::LLVMFuncOp chunk) {
    auto builder = ImplicitLocOpBuilder::atBlockBegin(
        range.getLoc(), &chunk.getFunctionBody().front());
    uses.map(builder, chunk.getArguments().drop_front(firstCapture),
             range.getRegion());
    bool pushes = contains(range.getRegion(), isPush);
    bool writes =
        contains(range.getRegion(), isEffect) || range->hasAttr(addsAttr);
    accumulators.redirect(builder, range.getRegion());
    worker = chunk.getArgument(1);
    if (measures && (pushes || writes))
      dry = runtime.callDryRun(builder, worker);
    if (!dry || pushes) {
      emitChunk(builder, chunk);
    } else {
      auto branch = scf::IfOp::create(builder, dry, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch.elseBlock());
      emitChunk(builder, chunk);
    }
    builder.setInsertionPointToEnd(&chunk.getFunctionBody().front());
    LLVM::ReturnOp::create(builder, ValueRange());
  }

  void emitChunk(ImplicitLocOpBuilder &builder, LLVM::LLVMFuncOp chunk) {
    Values extents;
    for (Value extent : range.getExtents())
      extents.push_back(uses.mapping.lookupOrDefault(extent));
    Values sums =
        emitLoops(builder, chunk.getArgument(2), chunk.getArgument(3), extents,
                  range.getNumResults(), summation,
                  [&](ImplicitLocOpBuilder &inner, ValueRange indices) {
                    if (namesWorkItems)
                      storeSlot(inner, rowMajor(inner, indices, extents),
                                worker, workItemSlot);
                    return emitWorkItem(inner, indices);
                  });
    for (auto [k, sum] : llvm::enumerate(sums))
      storeSlot(builder, sum, chunk.getArgument(0), k);
    accumulators.flush(builder, uses.mapping);
  }

  Values emitWorkItem(ImplicitLocOpBuilder &builder, ValueRange indices) {
    Block *body = range.getBody();
    for (auto [argument, index] : llvm::zip(body->getArguments(), indices))
      argument.replaceAllUsesWith(index);
    auto pivots = body->getOps<tape::PivotOp>();
    if (pivots.empty() || !dry) {
      for (tape::PivotOp pivot : llvm::make_early_inc_range(pivots))
        pivot.erase();
      return emitSweep(builder, body->begin());
    }
    tape::PivotOp pivot = *pivots.begin();
    splice(builder, body, body->begin(), pivot->getIterator());
    Values none = zeros(builder);
    SmallVector<Type> types = llvm::to_vector(ValueRange(none).getTypes());
    auto branch = scf::IfOp::create(builder, types, dry, true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    emptyTape(builder);
    yield(builder, branch.thenBlock(), none);
    builder.setInsertionPointToStart(branch.elseBlock());
    Block::iterator reverse = std::next(pivot->getIterator());
    yield(builder, branch.elseBlock(), emitSweep(builder, reverse));
    pivot.erase();
    return Values(branch.getResults());
  }

  /// The tape may have moved, but a work item starts at its base.
  void emptyTape(ImplicitLocOpBuilder &builder) {
    Value base = loadSlot(builder, pointer, worker, tapeBaseSlot);
    LLVM::StoreOp::create(builder, base, worker);
  }

  Values zeros(ImplicitLocOpBuilder &builder) {
    Values values;
    for (unsigned k = 0; k < range.getNumResults(); ++k)
      values.push_back(summation.none(builder));
    return values;
  }

  void yield(ImplicitLocOpBuilder &builder, Block *block, ValueRange values) {
    if (values.empty())
      return; // such a block has its terminator
    builder.setInsertionPointToEnd(block);
    scf::YieldOp::create(builder, values);
  }

  /// The body from `first` on, without pivots.
  Values emitSweep(ImplicitLocOpBuilder &builder, Block::iterator first) {
    Block *body = range.getBody();
    auto end = cast<ir::YieldOp>(body->getTerminator());
    splice(builder, body, first, end->getIterator());
    Values contributions;
    for (Value value : end.getValues())
      contributions.push_back(summation.term(builder, value));
    return contributions;
  }

  /// The function that costate_range calls: unpacks the frame.
  LLVM::LLVMFuncOp createBody(LLVM::LLVMFuncOp chunk) {
    Type params[] = {pointer, pointer, i64, i64, pointer};
    auto body = createFunction(module, range.getLoc(),
                               kernel + ".range" + Twine(number), params,
                               LLVM::Linkage::Internal);
    auto builder = ImplicitLocOpBuilder::atBlockBegin(
        range.getLoc(), &body.getFunctionBody().front());
    Values args = {body.getArgument(4), body.getArgument(1),
                   body.getArgument(2), body.getArgument(3)};
    for (auto [k, value] : llvm::enumerate(uses.parts))
      args.push_back(
          loadSlot(builder, value.getType(), body.getArgument(0), k));
    if (!copied.empty())
      takeCopies(builder, body.getArgument(1),
                 MutableArrayRef(args).drop_front(firstCapture));
    LLVM::CallOp::create(builder, chunk, args);
    LLVM::ReturnOp::create(builder, ValueRange());
    return body;
  }

  /// Instead of the bases of arrays that the thread has copies of.
  void takeCopies(ImplicitLocOpBuilder &builder, Value worker,
                  MutableArrayRef<Value> parts) {
    Value places = loadSlot(builder, pointer, worker, copySlot);
    for (auto [k, one] : llvm::enumerate(copied))
      parts[uses.position(ArrayView(one.array).base)] =
          loadSlot(builder, pointer, places, copyWords * k);
  }

  /// Tells the runtime which arrays threads may have copies of.
  void describeCopied(ImplicitLocOpBuilder &builder, Value launch) {
    constexpr int64_t words = 6; // of a runtime::CopiedArray
    Value slots = allocate(words * static_cast<int64_t>(copied.size()));
    for (auto [k, one] : llvm::enumerate(copied)) {
      ArrayView array(one.array);
      Type element = cast<ir::ArrayType>(one.array.getType()).getElementType();
      Value all[] = {array.base,
                     array.extents.empty()
                         ? constant(builder, 1)
                         : workItemsOf(builder, array.extents),
                     constant(builder, element.getIntOrFloatBitWidth() / 8),
                     constant(builder, isa<FloatType>(element)),
                     constant(builder, one.additions),
                     constant(builder, one.isInLoop)};
      for (auto [word, value] : llvm::enumerate(all))
        storeSlot(builder, value, slots, words * k + word);
    }
    runtime.callCopied(builder, launch, slots, copied.size());
  }

  Value allocate(int64_t slots) {
    auto function = range->getParentOfType<LLVM::LLVMFuncOp>();
    auto builder = ImplicitLocOpBuilder::atBlockBegin(
        range.getLoc(), &function.getFunctionBody().front());
    Value count = constant(builder, slots);
    return LLVM::AllocaOp::create(builder, pointer, i64, count, 8);
  }

  void replaceByCall(LLVM::LLVMFuncOp body) {
    ImplicitLocOpBuilder builder(range.getLoc(), range);
    Value frame = allocate(std::max<int64_t>(uses.parts.size(), 1));
    Value sums = allocate(std::max<int64_t>(range.getNumResults(), 1));
    for (auto [k, value] : llvm::enumerate(uses.parts))
      storeSlot(builder, value, frame, k);
    Value launch = range->getParentOfType<LLVM::LLVMFuncOp>().getArgument(0);
    Value address = LLVM::AddressOfOp::create(builder, body);
    Value sumCount = constant(builder, range.getNumResults());
    Value site = constant(builder, runtime.site(range.getLoc()));
    Value count = workItemsOf(builder, range.getExtents());
    if (namesWorkItems)
      describe(builder, launch);
    if (!copied.empty())
      describeCopied(builder, launch);
    Value kind = constant(builder, summation.kind);
    Value slab = hasSlabs
                     ? workItemsOf(builder, range.getExtents().drop_front())
                     : constant(builder, 0);
    runtime.callRange(builder, {launch, address, frame, count, sums, sumCount,
                                kind, site, slab, constant(builder, 1)});
    for (auto [k, result] : llvm::enumerate(range.getResults())) {
      Type type = result.getType();
      bool isF32 = type.isF32();
      Value sum =
          loadSlot(builder, isF32 ? builder.getF64Type() : type, sums, k);
      if (isF32)
        sum = arith::TruncFOp::create(builder, type, sum);
      result.replaceAllUsesWith(sum);
    }
    range.erase();
  }

  void describe(ImplicitLocOpBuilder &builder, Value launch) {
    ValueRange all = range.getExtents();
    Value extents = allocate(all.size());
    for (auto [k, extent] : llvm::enumerate(all))
      storeSlot(builder, extent, extents, k);
    runtime.callBeginRange(builder, launch, extents, all.size());
  }

  static constexpr unsigned firstCapture = 4;
  ModuleOp module;
  Runtime &runtime;
  ir::RangeOp range;
  StringRef kernel;
  unsigned number;
  bool measures, namesWorkItems;
  Summation summation;
  bool hasSlabs;
  SmallVector<CopiedArray> copied;
  Captures uses;
  Accumulators accumulators;
  Type pointer, i64;
  Value worker, dry;
};

/// The serial code of a kernel.
class KernelOutliner {
public:
  KernelOutliner(ModuleOp module, Runtime &runtime, ir::KernelOp kernel,
                 bool debug)
      : module(module), runtime(runtime), kernel(kernel),
        name(kernel.getName().str()), debug(debug) {}

  void run() {
    bool measures = contains(kernel.getRegion(), isPush);
    if (!measures)
      erasePivots();
    entry = createEntry(module, kernel, /*keepDimensions=*/debug);
    callCopies(runtime, entry);
    expandTakes();
    if (measures)
      guardSerialWrites();
    SmallVector<ir::RangeOp> ranges;
    entry.walk([&](ir::RangeOp range) { ranges.push_back(range); });
    entry.walk([&](Operation *op) {
      if (isa<ir::AtomicAddOp, ir::AtomicMinOp, ir::AtomicMaxOp>(op) &&
          !op->getParentOfType<ir::RangeOp>())
        op->setAttr("exclusive", UnitAttr::get(op->getContext()));
    });
    for (auto [number, range] : llvm::enumerate(ranges)) {
      bool namesWorkItems = debug || contains(range.getRegion(), isPrint);
      if (!namesWorkItems)
        sliceCopied(range);
      RangeOutliner(module, runtime, range, name, number, measures,
                    namesWorkItems)
          .run();
    }
    if (measures)
      erasePivots(entry);
  }

private:
  void erasePivots() { erasePivots(kernel); }
  void erasePivots(Operation *root) {
    root->walk([](tape::PivotOp pivot) { pivot.erase(); });
  }

  /// In serial code no other work item interferes.
  void expandTakes() {
    entry.walk([](ir::AtomicTakeOp take) {
      if (take->getParentOfType<ir::RangeOp>())
        return;
      ImplicitLocOpBuilder builder(take.getLoc(), take);
      Value old = ir::LoadOp::create(builder, take.getType(), take.getArray(),
                                     take.getIndices());
      Value zero = arith::ConstantOp::create(
          builder, builder.getFloatAttr(take.getType(), 0.0));
      ir::StoreOp::create(builder, zero, take.getArray(), take.getIndices());
      take.replaceAllUsesWith(old);
      take.erase();
    });
  }

  /// A launch that only measures performs no store of the serial code, but for
  /// those to scratch arrays.
  void guardSerialWrites() {
    SmallVector<Operation *> writes;
    entry.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<ir::RangeOp>(op))
        return WalkResult::skip();
      if (isEffect(op))
        writes.push_back(op);
      return WalkResult::advance();
    });
    if (writes.empty())
      return;
    auto builder = ImplicitLocOpBuilder::atBlockBegin(
        entry.getLoc(), &entry.getFunctionBody().front());
    Value dry = runtime.callDryRun(builder, entry.getArgument(1));
    for (Operation *write : writes) {
      builder.setInsertionPoint(write);
      auto branch = scf::IfOp::create(builder, dry, /*withElseRegion=*/true);
      write->moveBefore(branch.elseBlock()->getTerminator());
    }
  }

  ModuleOp module;
  Runtime &runtime;
  ir::KernelOp kernel;
  std::string name;
  bool debug;
  LLVM::LLVMFuncOp entry;
};

struct OutlineRanges : impl::OutlineRangesBase<OutlineRanges> {
  using OutlineRangesBase::OutlineRangesBase;

  void runOnOperation() override {
    Runtime runtime(getOperation());
    for (ir::KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<ir::KernelOp>()))
      KernelOutliner(getOperation(), runtime, kernel, debug).run();
  }
};

} // namespace
} // namespace costate::conversion
