#include "conversion/KernelToDevice/SortWorkItems.h"

#include "base/DeviceSort.h"
#include "conversion/KernelToDevice/DeviceFunction.h"
#include "conversion/KernelToLLVM/LoopNest.h"
#include "ir/Division.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::conversion {

tape::DepthOp depthOf(Region &range) {
  auto depths = range.front().getOps<tape::DepthOp>();
  return depths.empty() ? tape::DepthOp() : *depths.begin();
}

namespace {

constexpr int64_t lookedAtOnce = 4;

class SortEmitter {
public:
  SortEmitter(Runtime &runtime, ir::RangeOp range, ValueRange extents,
              Value worker)
      : runtime(runtime), range(range), extents(extents), worker(worker) {}

  /// `first`: whether this block has any chunk of work items to look at.
  void emitChunks(ImplicitLocOpBuilder &b, Value first) {
    Value zero = constant(b, 0);
    auto more = [&](OpBuilder &nested, Location loc, ValueRange args) {
      ImplicitLocOpBuilder inner(loc, nested);
      Value isMore =
          arith::CmpIOp::create(inner, arith::CmpIPredicate::ne, args[0], zero);
      scf::ConditionOp::create(inner, isMore, ValueRange());
    };
    auto chunk = [&](OpBuilder &nested, Location loc, ValueRange) {
      ImplicitLocOpBuilder inner(loc, nested);
      emitChunk(inner);
      Value next = runtime.callSort(inner, "next", true, worker);
      scf::YieldOp::create(inner, next);
    };
    scf::WhileOp::create(b, TypeRange(), first, more, chunk);
  }

private:
  /// Several rounds at a time: what their depths follow from is loaded
  /// together.
  void emitChunk(ImplicitLocOpBuilder &b) {
    Value rounds = runtime.callSort(b, "rounds", true, worker);
    auto some = [&](OpBuilder &nested, Location loc, Value first, ValueRange) {
      ImplicitLocOpBuilder inner(loc, nested);
      Values looked;
      for (int64_t k = 0; k < lookedAtOnce; ++k) {
        Value round = arith::AddIOp::create(inner, first, constant(inner, k));
        looked.push_back(round);
        looked.append(lookAt(inner, round));
      }
      for (ArrayRef<Value> rest = looked; !rest.empty();
           rest = rest.drop_front(3))
        runtime.callSort(inner, "take", false,
                         {worker, rest[0], rest[1], rest[2]});
      scf::YieldOp::create(inner);
    };
    scf::ForOp::create(b, constant(b, 0), rounds, constant(b, lookedAtOnce),
                       ValueRange(), some);
  }

  /// A work item, all ones for none, and its depth.
  Values lookAt(ImplicitLocOpBuilder &b, Value round) {
    Location loc = b.getLoc();
    Value item = runtime.callSort(b, "work_item", true, {worker, round});
    Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, item,
                                          constant(b, -1));
    auto branch = scf::IfOp::create(b, b.getI64Type(), isThere,
                                    /*withElseRegion=*/true);
    ImplicitLocOpBuilder there(loc, branch.getThenRegion());
    Values indices = ir::indicesOf(there, item, extents);
    tape::DepthOp depth = depthOf(range.getBodyRegion());
    IRMapping here;
    here.map(range.getBody()->getArguments(), indices);
    for (Operation &op : *range.getBody()) {
      if (&op == depth)
        break;
      there.clone(op, here);
    }
    scf::YieldOp::create(there, here.lookupOrDefault(depth.getIterations()));
    ImplicitLocOpBuilder otherwise(loc, branch.getElseRegion());
    scf::YieldOp::create(otherwise, constant(otherwise, 0));
    return {item, branch.getResult(0)};
  }

  Runtime &runtime;
  ir::RangeOp range;
  Values extents;
  Value worker;
};

} // namespace

void sortWorkItems(ImplicitLocOpBuilder &b, Runtime &runtime, ir::RangeOp range,
                   ValueRange extents, const SortPlace &here) {
  Value size = constant(b, sizeof(SortWorker));
  Value worker = LLVM::AllocaOp::create(b, pointerType(b.getContext()),
                                        b.getI8Type(), size, 8);
  Value first = runtime.callSort(
      b, "begin", true,
      {worker, here.call, here.thread, here.memory, here.place});
  SortEmitter(runtime, range, extents, worker).emitChunks(b, first);
  runtime.callSort(b, "end", false, worker);
}

} // namespace costate::conversion
