#include "autodiff/replay/Fetches.h"

#include "autodiff/replay/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace costate::autodiff {

static SmallVector<Operation *> fetchesOf(Operation *root) {
  SmallVector<Operation *> fetches;
  root->walk([&](Operation *op) {
    if (ir::fetchesElement(op))
      fetches.push_back(op);
  });
  return fetches;
}

//===-- Expansion ---------------------------------------------------------===//

namespace {
/// Where nobody interrupts `op`: `old` has been loaded from its element.
struct Expansion {
  ImplicitLocOpBuilder &b;
  ArrayAccess access;
  Value old;

  void fetch(ir::AtomicFetchOp op) {
    Value value = op.getValue();
    StringRef kind = op.getKind();
    if (kind == "add")
      ir::AtomicAddOp::create(b, value, access.array, access.indices, false);
    else if (kind == "min")
      ir::AtomicMinOp::create(b, value, access.array, access.indices, false);
    else if (kind == "max")
      ir::AtomicMaxOp::create(b, value, access.array, access.indices, false);
    else
      store(stored(kind, value));
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
    Value expected = op.getExpected();
    Type element = cast<ir::ArrayType>(access.array.getType()).getElementType();
    if (ir::isNarrow(element))
      expected = ir::NarrowOp::create(b, expected, element);
    Value equal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bits(old),
                                        bits(expected));
    Value next = arith::SelectOp::create(b, equal, op.getDesired(), old);
    store(next);
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

static void expand(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  ArrayAccess access = *accessOf(op);
  Value old = ir::LoadOp::create(b, op->getResult(0).getType(), access.array,
                                 access.indices);
  Expansion expansion{b, access, old};
  if (auto fetch = dyn_cast<ir::AtomicFetchOp>(op))
    expansion.fetch(fetch);
  else
    expansion.exchange(cast<ir::CompareExchangeOp>(op));
  op->replaceAllUsesWith(ValueRange(old));
  op->erase();
}

/// By range: the arrays of which each iteration has elements of its own.
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

void expandFetches(ir::KernelOp kernel) {
  Exclusive exclusive;
  for (Operation *op : fetchesOf(kernel))
    if (!isInterrupted(op, exclusive))
      expand(op);
}

//===-- Gradients ---------------------------------------------------------===//

LogicalResult checkFetches(ir::KernelOp primal, ArrayRef<bool> active) {
  for (Operation *op : fetchesOf(primal)) {
    Value array = accessOf(op)->array;
    if (!active[cast<BlockArgument>(array).getArgNumber()])
      continue;
    op->emitError("this operation returns what an element with a derivative "
                  "was, or replaces it, at a time that depends on the order "
                  "of iterations; so its derivative is not defined")
            .attachNote()
        << "use `+=`, `atomic_min` or `atomic_max` and not what they return, "
           "or do it in serial code, or on elements that no other iteration "
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
    load->setAttr(forgottenAttr, b.getUnitAttr());
    op->replaceAllUsesWith(load);
    op->erase();
  }
}

LogicalResult checkForgotten(ir::KernelOp gradient, Refusal &refusal) {
  WalkResult result = gradient.walk([&](ir::LoadOp load) {
    if (!load->hasAttr(forgottenAttr))
      return WalkResult::advance();
    refusal.code = ErrorCode::CannotReplay;
    load.emitError("the gradient needs what this atomic operation has "
                   "returned, which depends on the order of iterations and "
                   "cannot be found again")
            .attachNote()
        << "do it in a kernel in front of this one that stores what it returns "
           "into an array, and read that array here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===-- Determinism -------------------------------------------------------===//

static bool isFixed(Operation *op) {
  auto fetch = dyn_cast<ir::AtomicFetchOp>(op);
  return fetch && op->use_empty() && fetch.getKind() != "exchange";
}

LogicalResult checkFixedFetches(ir::KernelOp kernel) {
  for (Operation *op : fetchesOf(kernel)) {
    if (!op->getParentOfType<ir::RangeOp>() || isFixed(op))
      continue;
    op->emitError("what this atomic operation returns or leaves depends on the "
                  "order of iterations; this kernel is deterministic")
            .attachNote()
        << "do it in serial code, or make the kernel without `deterministic`";
    return failure();
  }
  return success();
}

} // namespace costate::autodiff
