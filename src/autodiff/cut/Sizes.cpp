#include "autodiff/cut/Sizes.h"

#include "autodiff/rules/Rules.h"
#include "ir/LoopPairs.h"
#include "sizing/Record.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

constexpr StringLiteral loopAttr = "costate.loop";
/// On a value that stands for bytes of that loop.
constexpr StringLiteral stateAttr = "costate.state_of";
constexpr StringLiteral recordAttr = "costate.record_of";

std::optional<int64_t> numberOf(Operation *op, StringRef attribute) {
  auto number = op->getAttrOfType<IntegerAttr>(attribute);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

Number bytesOf(StringRef what, int64_t number, Builder &b) {
  auto cast =
      UnrealizedConversionCastOp::create(b, b.getI64Type(), ValueRange());
  cast->setAttr(what, b.getI64IntegerAttr(number));
  return Number::ofInteger(b, cast.getResult(0));
}

/// The bytes that loops of one number push, with those of loops in them that
/// have no number.
class Pushed {
public:
  Pushed(ir::KernelOp gradient, bool measured) : measured(measured) {
    gradient.walk([&](tape::PushOp push) { add(push); });
    for (auto [loop, bytes] : byLoop) {
      int64_t number = *LoopNumbers::of(loop);
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

bool isLoop(Operation *op) { return isa<scf::ForOp, scf::WhileOp>(op); }

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

Value iterationsOf(Operation *loop, Builder &b) {
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return arith::MaxSIOp::create(b, counted.getUpperBound(),
                                  indexConstant(b, 0));
  return loop->getResults().back(); // see countIterations
}

void LoopNumbers::give(Block &block) {
  block.walk([&](Operation *op) {
    if (isLoop(op) && !of(op))
      set(op, next());
  });
}

std::optional<int64_t> LoopNumbers::of(Operation *loop) {
  return numberOf(loop, loopAttr);
}

void LoopNumbers::set(Operation *loop, int64_t number) {
  loop->setAttr(loopAttr,
                mlir::Builder(loop->getContext()).getI64IntegerAttr(number));
}

Number stateOf(int64_t number, Builder &b) {
  return bytesOf(stateAttr, number, b);
}

Number recordOf(int64_t number, Builder &b) {
  return bytesOf(recordAttr, number, b);
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
