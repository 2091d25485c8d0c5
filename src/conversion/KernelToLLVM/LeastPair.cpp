/// The least pair of a range: keys and places of some work items are kept in
/// memory, so that computing them and looking for the least key are loops that
/// vectorise. Only where a key beats what there is, its place is looked for.

#include "conversion/KernelToLLVM/LoopNest.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace costate::conversion {

namespace {

using Values = SmallVector<Value>;

constexpr int64_t atOnce = 256;

class LeastPair {
public:
  LeastPair(ImplicitLocOpBuilder &b, Value memory)
      : keys(memory), places(element(b, memory, constant(b, atOnce))) {}

  /// For k < count: the pair of work item (outer..., first + k).
  void keep(ImplicitLocOpBuilder &b, Value first, Value count, ValueRange outer,
            WorkItem workItem) const {
    auto body = [&](OpBuilder &nested, Location loc, Value k, ValueRange) {
      ImplicitLocOpBuilder inner(loc, nested);
      Values indices(outer);
      indices.push_back(arith::AddIOp::create(inner, first, k));
      Values pair = workItem(inner, indices);
      LLVM::StoreOp::create(inner, pair[0], element(inner, keys, k));
      LLVM::StoreOp::create(inner, pair[1], element(inner, places, k));
      scf::YieldOp::create(inner);
    };
    scf::ForOp::create(b, constant(b, 0), count, constant(b, 1), ValueRange(),
                       body);
  }

  /// Of the pair `best` and those that have been kept.
  Values take(ImplicitLocOpBuilder &b, Value count, ValueRange best) const {
    Value key = least(b, count, [&](ImplicitLocOpBuilder &inner, Value k) {
      return load(inner, keys, k);
    });
    Value counts = compare(b, arith::CmpIPredicate::sle, key, best[0]);
    auto branch = scf::IfOp::create(b, best.getTypes(), counts,
                                    /*withElseRegion=*/true);
    ImplicitLocOpBuilder then(b.getLoc(), branch.getThenRegion());
    scf::YieldOp::create(then, placed(then, count, key, best));
    ImplicitLocOpBuilder otherwise(b.getLoc(), branch.getElseRegion());
    scf::YieldOp::create(otherwise, best);
    return Values(branch.getResults());
  }

private:
  static Value element(ImplicitLocOpBuilder &b, Value base, Value k) {
    return LLVM::GEPOp::create(b, base.getType(), b.getI64Type(), base,
                               ValueRange(k), LLVM::GEPNoWrapFlags::inbounds);
  }
  static Value load(ImplicitLocOpBuilder &b, Value base, Value k) {
    return LLVM::LoadOp::create(b, b.getI64Type(), element(b, base, k));
  }
  static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate,
                       Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }

  using Term = llvm::function_ref<Value(ImplicitLocOpBuilder &, Value k)>;
  static Value least(ImplicitLocOpBuilder &b, Value count, Term term) {
    auto body = [&](OpBuilder &nested, Location loc, Value k, ValueRange args) {
      ImplicitLocOpBuilder inner(loc, nested);
      Value next = arith::MinSIOp::create(inner, args[0], term(inner, k));
      scf::YieldOp::create(inner, next);
    };
    auto loop = scf::ForOp::create(b, constant(b, 0), count, constant(b, 1),
                                   ValueRange(constant(b, INT64_MAX)), body);
    return loop.getResult(0);
  }

  /// `key` is as good as that of `best`, or better.
  Values placed(ImplicitLocOpBuilder &b, Value count, Value key,
                ValueRange best) const {
    using P = arith::CmpIPredicate;
    Value none = constant(b, INT64_MAX);
    Value place = least(b, count, [&](ImplicitLocOpBuilder &inner, Value k) {
      Value has = compare(inner, P::eq, load(inner, keys, k), key);
      Value own = load(inner, places, k);
      return arith::SelectOp::create(inner, has, own, none).getResult();
    });
    Value isLess = compare(b, P::slt, key, best[0]);
    Value ofBoth = arith::MinSIOp::create(b, place, best[1]);
    return {key, arith::SelectOp::create(b, isLess, place, ofBoth)};
  }

  Value keys, places;
};

} // namespace

Value allocatePairs(ImplicitLocOpBuilder &b) {
  OpBuilder::InsertionGuard guard(b);
  Operation *around = b.getInsertionBlock()->getParentOp();
  auto function = dyn_cast<LLVM::LLVMFuncOp>(around);
  if (!function)
    function = around->getParentOfType<LLVM::LLVMFuncOp>();
  b.setInsertionPointToStart(&function.getFunctionBody().front());
  return LLVM::AllocaOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                                b.getI64Type(), constant(b, 2 * atOnce),
                                /*alignment=*/64);
}

Values emitLeastPair(ImplicitLocOpBuilder &builder, Value memory, Value lo,
                     Value hi, ValueRange outer, ValueRange best,
                     WorkItem workItem) {
  LeastPair pair(builder, memory);
  Value step = constant(builder, atOnce);
  auto body = [&](OpBuilder &nested, Location loc, Value first,
                  ValueRange args) {
    ImplicitLocOpBuilder b(loc, nested);
    Value left = arith::SubIOp::create(b, hi, first);
    Value count = arith::MinSIOp::create(b, left, step);
    pair.keep(b, first, count, outer, workItem);
    scf::YieldOp::create(b, pair.take(b, count, args));
  };
  auto loop = scf::ForOp::create(builder, lo, hi, step, best, body);
  return Values(loop.getResults());
}

} // namespace costate::conversion
