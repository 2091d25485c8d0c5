#include "autodiff/replay/Fetches.h"

#include "autodiff/replay/Replay.h"
#include "ir/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace costate::autodiff {

static SmallVector<Operation *> fetchesOf(Operation *root) {
  return ir::all<Operation *>(root, ir::fetchesElement);
}

//===-- Expansion ---------------------------------------------------------===//

namespace {
/// Where nobody interrupts `op`: `old` has been loaded from its element.
struct Expansion {
  Builder &b;
  ArrayAccess access;
  Value old;

  void fetch(ir::AtomicFetchOp op) {
    Value value = op.getValue();
    StringRef kind = op.getKind();
    if (kind == "add")
      ir::AtomicAddOp::create(b, value, access.array, access.indices, false);
    else if (kind == "min" || kind == "max")
      extremum(kind == "max", value);
    else if (kind == "mul")
      store(product(value));
    else
      store(stored(kind, value));
  }

  Value product(Value value) {
    if (isa<FloatType>(value.getType()))
      return arith::MulFOp::create(b, old, value);
    return arith::MulIOp::create(b, old, value);
  }

  /// Of a float the derivative goes where the value comes from.
  void extremum(bool isMax, Value value) {
    if (isa<FloatType>(value.getType())) {
      value = narrowed(value);
      Value wins = isBefore(isMax, value);
      store(arith::SelectOp::create(b, wins, value, old));
    } else if (isMax) {
      ir::AtomicMaxOp::create(b, value, access.array, access.indices, false);
    } else {
      ir::AtomicMinOp::create(b, value, access.array, access.indices, false);
    }
  }

  /// NaN is never before a number, and -0 before 0.
  Value isBefore(bool isMax, Value value) {
    using F = arith::CmpFPredicate;
    using I = arith::CmpIPredicate;
    Value isNumber = arith::CmpFOp::create(b, F::OEQ, value, value);
    Value beats = arith::CmpFOp::create(b, isMax ? F::UGT : F::ULT, value, old);
    Value equal = arith::CmpFOp::create(b, F::OEQ, value, old);
    Value own = bits(value), its = bits(old);
    Value bySign = arith::CmpIOp::create(b, isMax ? I::sgt : I::slt, own, its);
    Value tie = arith::AndIOp::create(b, equal, bySign);
    Value either = arith::OrIOp::create(b, beats, tie);
    return arith::AndIOp::create(b, isNumber, either);
  }

  Value stored(StringRef kind, Value value) {
    if (kind == "and")
      return arith::AndIOp::create(b, old, value);
    if (kind == "or")
      return arith::OrIOp::create(b, old, value);
    if (kind == "xor")
      return arith::XOrIOp::create(b, old, value);
    return value;
  }

  void exchange(ir::CompareExchangeOp op) {
    Value expected = narrowed(op.getExpected());
    Value equal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bits(old),
                                        bits(expected));
    Value next = arith::SelectOp::create(b, equal, op.getDesired(), old);
    store(next);
  }

  /// What an element that `value` is stored to becomes.
  Value narrowed(Value value) {
    Type element = cast<ir::ArrayType>(access.array.getType()).getElementType();
    if (!ir::isNarrow(element))
      return value;
    return ir::NarrowOp::create(b, value, element);
  }

  Value bits(Value value) {
    if (!isa<FloatType>(value.getType()))
      return value;
    Type type = b.getIntegerType(value.getType().getIntOrFloatBitWidth());
    Value constant = ir::StopGradientOp::create(b, value);
    return arith::BitcastOp::create(b, type, constant);
  }

  void store(Value value) {
    ir::StoreOp::create(b, value, access.array, access.indices);
  }
};
} // namespace

/// Returns the load of what the element was.
static ir::LoadOp expand(Operation *op) {
  Builder b(op->getLoc(), op);
  ArrayAccess access = *accessOf(op);
  Type type = op->getNumResults() ? op->getResult(0).getType()
                                  : op->getOperand(0).getType();
  auto old = ir::LoadOp::create(b, type, access.array, access.indices);
  Expansion expansion{b, access, old};
  if (isExtremum(op))
    expansion.extremum(isa<ir::AtomicMaxOp>(op), op->getOperand(0));
  else if (auto fetch = dyn_cast<ir::AtomicFetchOp>(op))
    expansion.fetch(fetch);
  else
    expansion.exchange(cast<ir::CompareExchangeOp>(op));
  if (op->getNumResults())
    op->replaceAllUsesWith(ValueRange(old.getValue()));
  op->erase();
  return old;
}

/// By range: the arrays of which each work item has elements of its own.
using Exclusive = llvm::DenseMap<Operation *, llvm::DenseSet<Value>>;

static bool isInterrupted(Operation *op, Exclusive &known) {
  auto range = op->getParentOfType<ir::RangeOp>();
  if (!range)
    return false;
  auto [place, isNew] = known.try_emplace(range);
  if (isNew)
    place->second = exclusiveArrays(range);
  return !place->second.contains(accessOf(op)->array);
}

/// Minima and maxima of floats that have an element in common with something
/// else in the same part.
static SmallVector<Operation *> extremaInUse(ir::KernelOp kernel,
                                             Becomes becomes) {
  SmallVector<Operation *> extrema;
  SmallVector<ArrayAccess> accesses = accessesIn(kernel);
  auto counts = [&](Operation *op) {
    return becomes == Becomes::Used || !op->hasAttr(becomesAttr);
  };
  for (const ArrayAccess &access : accesses)
    if (isExtremum(access.op) &&
        isa<FloatType>(access.op->getOperand(0).getType()) &&
        llvm::any_of(accesses, [&](const ArrayAccess &other) {
          return counts(other.op) && disturbsExtremum(access, other);
        }))
      extrema.push_back(access.op);
  return extrema;
}

void expandFetches(ir::KernelOp kernel, Becomes becomes) {
  Exclusive exclusive;
  auto expandAll = [&](ArrayRef<Operation *> accesses) {
    for (Operation *op : accesses)
      if (!isInterrupted(op, exclusive))
        expand(op);
  };
  expandAll(fetchesOf(kernel));
  expandAll(extremaInUse(kernel, becomes));
}

//===-- Gradients ---------------------------------------------------------===//

static bool isProduct(Operation *op) {
  auto fetch = dyn_cast<ir::AtomicFetchOp>(op);
  return fetch && fetch.getKind() == "mul";
}

/// Whether work items may have elements of their own, which checkOwners finds
/// out.
static bool mayBeOwn(Operation *op) {
  auto range = op->getParentOfType<ir::RangeOp>();
  return llvm::any_of(accessOf(op)->indices,
                      [&](Value index) { return !isUniform(index, range); });
}

static LogicalResult refuseProduct(Operation *op) {
  op->emitError("`atomic_mul` of an element that several work items of the "
                "range may multiply has no derivative here")
          .attachNote()
      << "let each work item have an element of its own and multiply them in "
         "serial code, or add logarithms";
  return failure();
}

void expandProducts(ir::KernelOp gradient, ArrayRef<bool> active) {
  for (Operation *op : fetchesOf(gradient))
    if (isProduct(op) && active[argumentOf(accessOf(op)->array)]) {
      ir::LoadOp old = expand(op);
      old->setAttr(productAttr, UnitAttr::get(gradient.getContext()));
    }
}

LogicalResult checkFetches(ir::KernelOp primal, ArrayRef<bool> active,
                           Products products) {
  for (Operation *op : fetchesOf(primal)) {
    if (!active[argumentOf(accessOf(op)->array)])
      continue;
    if (isProduct(op) && products == Products::OfOwn && mayBeOwn(op))
      continue;
    if (isProduct(op))
      return refuseProduct(op);
    op->emitError("this operation returns what an element with a derivative "
                  "was, or replaces it, at a time that depends on the order "
                  "of work items; so its derivative is not defined")
            .attachNote()
        << "use `+=`, `atomic_min` or `atomic_max` and not what they return, "
           "or do it in serial code, or on elements that no other work item "
           "uses";
    return failure();
  }
  return success();
}

static constexpr llvm::StringLiteral forgottenAttr = "costate.forgotten";

void forgetFetches(ir::KernelOp gradient) {
  for (Operation *op : fetchesOf(gradient)) {
    if (op->hasAttr(ir::replayedAttr))
      continue;
    OpBuilder b(op);
    ArrayAccess access = *accessOf(op);
    auto load = ir::LoadOp::create(b, op->getLoc(), op->getResult(0).getType(),
                                   access.array, access.indices);
    if (!ir::isDirectory(access.array))
      load->setAttr(forgottenAttr, b.getUnitAttr());
    op->replaceAllUsesWith(load);
    op->erase();
  }
}

LogicalResult checkForgotten(ir::KernelOp gradient, Refusal &refusal) {
  return ir::forAll<ir::LoadOp>(gradient, [&](ir::LoadOp load) {
    if (!load->hasAttr(forgottenAttr))
      return success();
    refusal.code = ErrorCode::CannotReplay;
    load.emitError("the gradient needs what this atomic operation has "
                   "returned, which depends on the order of work items and "
                   "cannot be found again")
            .attachNote()
        << "do it in a kernel in front of this one that stores what it returns "
           "into an array, and read that array here";
    return failure();
  });
}

//===-- Determinism -------------------------------------------------------===//

static bool isFixed(Operation *op) {
  auto fetch = dyn_cast<ir::AtomicFetchOp>(op);
  if (!fetch || !op->use_empty())
    return false;
  StringRef kind = fetch.getKind();
  bool isFloat = isa<FloatType>(fetch.getValue().getType());
  return kind != "exchange" && !(kind == "mul" && isFloat);
}

LogicalResult checkFixedFetches(ir::KernelOp kernel) {
  for (Operation *op : fetchesOf(kernel)) {
    if (!op->getParentOfType<ir::RangeOp>() || isFixed(op) ||
        ir::isDirectory(accessOf(op)->array))
      continue;
    op->emitError("what this atomic operation returns or leaves depends on the "
                  "order of work items; this kernel is deterministic")
            .attachNote()
        << "do it in serial code, or make the kernel without `deterministic`";
    return failure();
  }
  return success();
}

} // namespace costate::autodiff
