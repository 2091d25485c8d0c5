#include "conversion/KernelToLLVM/Runtime.h"
#include "conversion/Reductions/Passes.h"
#include "conversion/Reductions/Terms.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_SKIPZEROADJOINTS
#include "conversion/Reductions/Passes.h.inc"

namespace {

/// Which values in front of a loop must be 0 for it to do nothing.
class Seeds {
public:
  explicit Seeds(scf::ForOp loop) : loop(loop) {}

  /// False where there are none such, or too many.
  bool find() {
    bool addsAtomically = false;
    auto walked = loop.getBodyRegion().walk([&](Operation *op) {
      auto add = dyn_cast<ir::AtomicAddOp>(op);
      addsAtomically |= add && !add.getExclusive();
      bool serves =
          add ? ir::isOfAdjoint(add.getArray()) && trace(add.getValue())
              : isQuiet(op);
      return serves ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !walked.wasInterrupted() && addsAtomically &&
           llvm::all_of(loop.getResults(),
                        [&](Value result) { return trace(result); }) &&
           !values.empty() && values.size() <= mostSeeds;
  }

  llvm::SmallSetVector<Value, 4> values;

private:
  static constexpr size_t mostSeeds = 4;

  static bool isQuiet(Operation *op) {
    if (isa<scf::ForOp, scf::IfOp, scf::YieldOp>(op))
      return true;
    auto effects = getEffectsRecursively(op);
    return effects && llvm::all_of(*effects, [](const auto &effect) {
             return isa<MemoryEffects::Read>(effect.getEffect());
           });
  }

  bool isOutside(Value value) {
    return !loop->isAncestor(value.getParentBlock()->getParentOp());
  }

  /// Whether `value` is 0 if all seeds are; adds to them.
  bool trace(Value value) {
    if (!isa<FloatType>(value.getType()))
      return false;
    if (matchPattern(value, m_AnyZeroFloat()) || !seen.insert(value).second)
      return true;
    if (Operation *op = value.getDefiningOp(); op == loop)
      return traceResult(loop, cast<OpResult>(value).getResultNumber());
    if (isOutside(value))
      return !matchPattern(value, m_Constant()) && values.insert(value);
    if (auto argument = dyn_cast<BlockArgument>(value))
      return traceArgument(argument);
    return traceOperation(cast<OpResult>(value));
  }

  bool traceResult(scf::ForOp inner, unsigned number) {
    return trace(inner.getInitArgs()[number]) &&
           trace(inner.getYieldedValues()[number]);
  }

  bool traceArgument(BlockArgument argument) {
    auto inner = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return inner && argument != inner.getInductionVar() &&
           traceResult(inner, argument.getArgNumber() - 1);
  }

  bool traceOperation(OpResult result) {
    auto both = [&](Value a, Value b) { return trace(a) && trace(b); };
    return llvm::TypeSwitch<Operation *, bool>(result.getOwner())
        .Case<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(
            [&](auto op) { return trace(op->getOperand(0)); })
        .Case<arith::AddFOp, arith::SubFOp>(
            [&](auto op) { return both(op.getLhs(), op.getRhs()); })
        .Case([&](arith::SelectOp op) {
          return both(op.getTrueValue(), op.getFalseValue());
        })
        .Case([&](arith::MulFOp op) {
          return isFinite(op.getRhs()) && trace(op.getLhs());
        })
        .Case([&](ir::StrongMulOp op) { return traceProduct(op); })
        .Case([&](scf::ForOp op) {
          return traceResult(op, result.getResultNumber());
        })
        .Case([&](scf::IfOp op) {
          unsigned number = result.getResultNumber();
          return both(op.thenYield().getOperand(number),
                      op.elseYield().getOperand(number));
        })
        .Default([](Operation *) { return false; });
  }

  static bool isFinite(Value value) {
    FloatAttr constant;
    return matchPattern(value, m_Constant(&constant)) &&
           constant.getValue().isFinite();
  }

  bool traceProduct(ir::StrongMulOp op) {
    auto before = std::pair(values, seen);
    if (trace(op.getG()))
      return true;
    std::tie(values, seen) = std::move(before);
    return op.getSymmetric() && trace(op.getF());
  }

  scf::ForOp loop;
  llvm::DenseSet<Value> seen;
};

/// loop => if any seed is not 0 { loop } else { 0 }
void skip(scf::ForOp loop, ArrayRef<Value> seeds) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto zero = [&](Type type) -> Value {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  };
  Value any;
  for (Value seed : seeds) {
    Value limit = zero(seed.getType());
    Value is =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, seed, limit);
    any = any ? arith::OrIOp::create(b, loc, any, is).getResult() : is;
  }
  bool yields = loop.getNumResults() > 0;
  auto branch = scf::IfOp::create(b, loc, loop.getResultTypes(), any, yields);
  branch->setAttr(skipsZerosAttr, b.getUnitAttr());
  loop->replaceAllUsesWith(branch);
  Block *then = branch.thenBlock();
  loop->moveBefore(then,
                   yields ? then->end() : then->getTerminator()->getIterator());
  if (!yields)
    return;
  b.setInsertionPointToEnd(then);
  scf::YieldOp::create(b, loc, loop.getResults());
  b.setInsertionPointToEnd(branch.elseBlock());
  SmallVector<Value> zeros(llvm::map_range(loop.getResultTypes(), zero));
  scf::YieldOp::create(b, loc, zeros);
}

struct SkipZeroAdjoints : impl::SkipZeroAdjointsBase<SkipZeroAdjoints> {
  void runOnOperation() override { visit(getOperation(), {}); }

  /// Loops around others first; `known`: not all of them are 0.
  static void visit(Operation *op, ArrayRef<Value> known) {
    SmallVector<scf::ForOp> loops;
    op->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      if (loop == op)
        return WalkResult::advance();
      loops.push_back(loop);
      return WalkResult::skip();
    });
    for (scf::ForOp loop : loops) {
      Seeds seeds(loop);
      bool isNew = seeds.find() && !llvm::all_of(seeds.values, [&](Value v) {
                     return llvm::is_contained(known, v);
                   });
      if (isNew)
        skip(loop, seeds.values.getArrayRef());
      visit(loop, isNew ? seeds.values.getArrayRef() : known);
    }
  }
};

} // namespace
} // namespace costate::conversion
