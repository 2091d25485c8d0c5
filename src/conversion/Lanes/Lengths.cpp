#include "conversion/Lanes/Lengths.h"

#include "base/LengthOrder.h"
#include "conversion/Ahead.h"
#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace costate::conversion {

Lengths::Lengths(scf::ForOp row, const Shapes &shapes) : row(row) {
  if (!mayMove() || readsSideBySide(shapes))
    return;
  constexpr int64_t mostOps = 24;
  for (auto loop : row.getBody()->getOps<scf::ForOp>()) {
    int64_t left = mostOps;
    Value bound = loop.getUpperBound();
    if (!shapes.parts(loop) || !isKnownAhead(bound, row.getRegion(), left))
      continue;
    known.push_back(loop);
    if (!llvm::is_contained(bounds, bound))
      bounds.push_back(bound);
  }
}

/// Sums of a row come in an order, records of other rows are where they were
/// left, private arrays fill the stack; what comes after an assertion may not
/// be there.
bool Lengths::mayMove() {
  Balance balance(row);
  return row.getNumResults() == 0 && !balance.popsOthers &&
         !balance.leavesRecords &&
         !ir::contains<ir::AssertOp, ir::LocalOp, tape::BudgetOp, tape::ClaimOp,
                       func::CallOp>(row.getOperation());
}

bool Lengths::readsSideBySide(const Shapes &shapes) {
  return ir::contains(row.getOperation(), [&](Operation *op) {
    auto access = dyn_cast<ir::ElementAccess>(op);
    auto loop = op->getParentOfType<LoopLikeOpInterface>();
    return access && loop != row && !access.getIndices().empty() &&
           shapes.of(access.getIndices().back()).kind == Shape::Strided;
  });
}

Value Lengths::memory(LaneBuilder &b, Type type) {
  OpBuilder::InsertionGuard guard(b);
  auto function = row->getParentOfType<LLVM::LLVMFuncOp>();
  b.setInsertionPointToStart(&function.getFunctionBody().front());
  return LLVM::AllocaOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                                type, b.number(b.getI64Type(), orderedBlock),
                                /*alignment=*/64);
}

static Value placeIn(LaneBuilder &b, Value memory, Type type, Value index) {
  return LLVM::GEPOp::create(b, memory.getType(), type, memory,
                             ArrayRef<LLVM::GEPArg>{index},
                             LLVM::GEPNoWrapFlags::inbounds);
}

void Lengths::write(LaneBuilder &b, Value first, Value count, Value lengths) {
  Type i64 = b.getI64Type(), i32 = b.getI32Type();
  auto loop = scf::ForOp::create(b, b.number(i64, 0), count, b.number(i64, 1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  IRMapping done;
  Value number = loop.getInductionVar();
  done.map(row.getInductionVar(), arith::AddIOp::create(b, first, number));
  Value sum;
  for (Value bound : bounds) {
    Value length = computeAhead(bound, row.getRegion(), b, done);
    length = arith::MaxSIOp::create(b, length, b.number(i64, 0));
    sum = sum ? arith::AddIOp::create(b, sum, length).getResult() : length;
    sum = arith::MinUIOp::create(b, sum, b.number(i64, 1 << 24));
  }
  sum = arith::TruncIOp::create(b, i32, sum);
  LLVM::StoreOp::create(b, sum, placeIn(b, lengths, i32, number));
}

Value Lengths::differ(LaneBuilder &b, unsigned idle) {
  Type i64 = b.getI64Type(), i32 = b.getI32Type();
  Value lanes = b.number(i64, b.lanes), begin = row.getLowerBound();
  Value count = arith::SubIOp::create(b, row.getUpperBound(), begin);
  Value isEnough =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, count,
                            b.number(i64, 2 * static_cast<int64_t>(b.lanes)));
  auto branch =
      scf::IfOp::create(b, b.getI1Type(), isEnough, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, b.number(b.getI1Type(), 0));
  b.setInsertionPointToStart(branch.thenBlock());
  Value lengths = memory(b, i32);
  Value middle = arith::ShRSIOp::create(b, count, b.number(i64, 1));
  write(b, begin, lanes, lengths);
  write(b, arith::AddIOp::create(b, begin, middle), lanes,
        placeIn(b, lengths, i32, lanes));
  Value sample = b.number(i64, 2 * static_cast<int64_t>(b.lanes));
  Value differ =
      Runtime(row->getParentOfType<ModuleOp>())
          .callLengthsDiffer(b, {lengths, sample, lanes, b.number(i64, idle)});
  scf::YieldOp::create(b, differ);
  return branch.getResult(0);
}

Value Lengths::order(LaneBuilder &b, Value begin, Value count) {
  Value lengths = memory(b, b.getI32Type()), places = memory(b, b.getI16Type());
  write(b, begin, count, lengths);
  Runtime(row->getParentOfType<ModuleOp>())
      .callOrderByLength(b, {lengths, count, places});
  return places;
}

Value Lengths::placesOf(LaneBuilder &b, Value places, Value first) {
  Type i16 = b.getI16Type();
  auto narrow = VectorType::get({b.lanes}, i16);
  Value place = placeIn(b, places, i16, first);
  Value loaded = LLVM::LoadOp::create(b, narrow, place, /*alignment=*/2);
  return arith::ExtUIOp::create(b, b.vectorOf(b.getI64Type()), loaded);
}

} // namespace costate::conversion
