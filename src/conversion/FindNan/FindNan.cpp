#include "conversion/FindNan/Passes.h"
#include "conversion/FindNan/Relevance.h"
#include "conversion/FindNan/Wording.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_FINDNAN
#include "conversion/FindNan/Passes.h.inc"

namespace {

/// Says in which sweep of a gradient an operation stands.
class Sweeps {
public:
  explicit Sweeps(ir::KernelOp kernel) {
    kernel.walk(
        [&](tape::PivotOp pivot) { pivots[pivot->getBlock()] = pivot; });
  }

  std::string textOf(Operation *op) const {
    for (; op; op = op->getParentOp())
      if (Operation *pivot = pivots.lookup(op->getBlock()))
        return std::string("in the ") +
               (op->isBeforeInBlock(pivot) ? "forward" : "reverse") +
               " sweep of the gradient, ";
    return "";
  }

private:
  llvm::DenseMap<Block *, Operation *> pivots;
};

/// A value to be checked: the result of an operation, of a load or an atomic
/// that tells what an element was, of a pop or of a range.
struct Candidate {
  Value value;
  CheckPlace place;
};

bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

class Finder {
public:
  explicit Finder(ir::KernelOp kernel)
      : kernel(kernel), sweeps(kernel), relevance(kernel) {}

  void run() {
    collect();
    for (ir::ElementAccess update : updates)
      checkUpdate(update);
    // In front of the checks of what is added to what an element held.
    for (const Candidate &candidate : candidates)
      check(candidate);
    kernel.walk([](Operation *op) { op->removeAttr(ownAttr); });
  }

private:
  void collect() {
    kernel.walk([&](Operation *op) {
      if (addsFloat(op))
        updates.push_back(cast<ir::ElementAccess>(op));
      if (isa<ir::LoadOp, tape::PopOp, ir::RangeOp>(op) ||
          ir::fetchesElement(op) || wordingOf(op)) {
        for (Value value : op->getResults())
          consider(value);
      }
    });
  }

  static bool addsFloat(Operation *op) {
    auto fetch = dyn_cast<ir::AtomicFetchOp>(op);
    bool adds = isa<ir::AtomicAddOp>(op) || (fetch && fetch.getKind() == "add");
    return adds && isFloat(op->getOperand(0));
  }

  void consider(Value value) {
    if (!isFloat(value))
      return;
    CheckPlace place = relevance.placeOf(value);
    // What is not checked after the pop has been checked before the push.
    if (place.ever &&
        (place.conditional || !value.getDefiningOp<tape::PopOp>()))
      candidates.push_back({value, place});
  }

  void check(const Candidate &candidate) {
    const CheckPlace &place = candidate.place;
    Operation *op = candidate.value.getDefiningOp();
    ImplicitLocOpBuilder b(op->getLoc(), op->getContext());
    if (place.after)
      b.setInsertionPointAfter(place.after);
    else
      b.setInsertionPointToStart(place.block);
    Value condition;
    if (place.conditional)
      condition = relevance.emitCondition(b, candidate.value, place);
    emit(b, op, candidate.value, condition);
  }

  void emit(ImplicitLocOpBuilder &b, Operation *op, Value value,
            Value condition) {
    std::string context = sweeps.textOf(op);
    if (auto access = dyn_cast<ir::ElementAccess>(op))
      ir::CheckElementOp::create(
          b,
          context + (isa<ir::LoadOp>(op) ? "@ holds" : "@ held") +
              " %#; look at what wrote it",
          value, access.getArray(), access.getIndices(), condition,
          /*added=*/false);
    else
      ir::CheckFiniteOp::create(b, context + resultText(op), value, condition,
                                operandsOf(op));
  }

  void checkUpdate(ir::ElementAccess update) {
    ImplicitLocOpBuilder b(update.getLoc(), update->getContext());
    b.setInsertionPointAfter(update);
    ir::CheckElementOp::create(
        b,
        sweeps.textOf(update) + "adding % to @ gives %#; add smaller numbers, "
                                "or look at what the element held before",
        update->getOperand(0), update.getArray(), update.getIndices(), Value(),
        /*added=*/true);
  }

  static SmallVector<Value> operandsOf(Operation *op) {
    SmallVector<Value> operands;
    if (wordingOf(op))
      llvm::copy_if(op->getOperands(), std::back_inserter(operands), isFloat);
    return operands;
  }

  static std::string resultText(Operation *op) {
    if (isa<tape::PopOp>(op))
      return "a value that the forward sweep saved is %#; a launch of the "
             "kernel itself shows where it arises";
    if (isa<ir::RangeOp>(op))
      return "the sum over all work items of this range is %; one of its terms "
             "is too large";
    Wording wording = *wordingOf(op);
    StringRef name = userNameOf(op->getLoc());
    if (name.empty() || op->hasAttr(ownAttr))
      return wording.formula + " gives %#; branch around it, or look at what "
                               "its operands come from";
    return "the derivative of `" + name.str() + "` computes " +
           wording.formula +
           ", which gives %#; it is not finite there, so "
           "branch around such points";
  }

  ir::KernelOp kernel;
  Sweeps sweeps;
  Relevance relevance;
  SmallVector<Candidate> candidates;
  SmallVector<ir::ElementAccess> updates;
};

struct FindNan : impl::FindNanBase<FindNan> {
  void runOnOperation() override { Finder(getOperation()).run(); }
};

} // namespace
} // namespace costate::conversion
