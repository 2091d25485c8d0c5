#include "conversion/Lanes/Shapes.h"

#include "ir/Functions.h"
#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {

Balance::Balance(Operation *op) {
  llvm::DenseMap<int64_t, int> records;
  op->walk([&](Operation *inner) {
    auto push = dyn_cast<tape::PushOp>(inner);
    auto pop = dyn_cast<tape::PopOp>(inner);
    if (!push && !pop)
      return;
    auto record = push ? push.getRecord() : pop.getRecord();
    if (!record)
      popsOthers = leavesRecords = true;
    else
      records[*record] |= push ? 1 : 2;
  });
  for (auto [record, sides] : records) {
    leavesRecords |= sides == 1;
    popsOthers |= sides == 2;
  }
}

static Shape join(Shape a, Shape b) { return a == b ? a : Shape::varying(); }

Shapes::Shapes(scf::ForOp loop, Shape number) : row(loop) {
  shapes[loop.getInductionVar()] = number;
  loop.walk([&](tape::PushOp push) {
    if (std::optional<int64_t> record = push.getRecord())
      pushes[*record] = push;
  });
  do {
    isChanged = false;
    visit(*loop.getBody());
  } while (isChanged);
}

Shape Shapes::of(Value value) const {
  auto found = shapes.find(value);
  return found == shapes.end() ? Shape() : found->second;
}

bool Shapes::areShared(ValueRange values) const {
  return llvm::all_of(values, [&](Value value) { return isUniform(value); });
}

bool Shapes::areNeighbours(ValueRange indices) const {
  return !indices.empty() && of(indices.back()) == Shape::strided(1) &&
         areShared(indices.drop_back());
}

bool Shapes::parts(scf::ForOp loop) const {
  return !areShared(
      {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
}

bool Shapes::parts(scf::WhileOp loop) const {
  return !isUniform(loop.getConditionOp().getCondition());
}

bool Shapes::startsLate(scf::ForOp loop) const {
  return parts(loop) && Balance(loop).popsOthers;
}

void Shapes::meet(Value value, Shape shape) {
  auto [place, isNew] = shapes.try_emplace(value, shape);
  Shape both = isNew ? shape : join(place->second, shape);
  isChanged |= isNew || !(both == place->second);
  place->second = both;
}

Shape Shapes::carried(Value value) const {
  return isUniform(value) ? Shape() : Shape::varying();
}

void Shapes::visit(Block &block) {
  for (Operation &op : block)
    visit(&op);
}

void Shapes::visit(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visitIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return visitWhile(loop);
  if (isa<tape::PopOp>(op))
    return visitPop(op);
  for (Value result : op->getResults())
    meet(result, ofResult(op));
}

void Shapes::visitIf(scf::IfOp op) {
  for (Region *region : op.getRegions())
    if (!region->empty())
      visit(region->front());
  for (OpResult result : op.getResults()) {
    unsigned number = result.getResultNumber();
    Shape shape = join(carried(op.thenYield().getOperand(number)),
                       carried(op.elseYield().getOperand(number)));
    meet(result, isUniform(op.getCondition()) ? shape : Shape::varying());
  }
}

void Shapes::visitFor(scf::ForOp op) {
  bool late = startsLate(op);
  meet(op.getInductionVar(), late ? Shape::varying() : Shape());
  for (auto [argument, init] :
       llvm::zip_equal(op.getRegionIterArgs(), op.getInitArgs()))
    meet(argument, late ? Shape::varying() : carried(init));
  visit(*op.getBody());
  for (auto [argument, next, result] : llvm::zip_equal(
           op.getRegionIterArgs(), op.getYieldedValues(), op.getResults())) {
    meet(argument, carried(next));
    meet(result, parts(op) ? Shape::varying() : of(argument));
  }
}

void Shapes::visitWhile(scf::WhileOp op) {
  for (auto [argument, init] :
       llvm::zip_equal(op.getBeforeArguments(), op.getInits()))
    meet(argument, carried(init));
  visit(*op.getBeforeBody());
  scf::ConditionOp condition = op.getConditionOp();
  for (auto [argument, value, result] : llvm::zip_equal(
           op.getAfterArguments(), condition.getArgs(), op.getResults())) {
    meet(argument, carried(value));
    meet(result, parts(op) ? Shape::varying() : carried(value));
  }
  visit(*op.getAfterBody());
  for (auto [argument, next] :
       llvm::zip_equal(op.getBeforeArguments(), op.getYieldOp().getResults()))
    meet(argument, carried(next));
}

void Shapes::visitPop(Operation *op) {
  std::optional<int64_t> record = cast<tape::PopOp>(op).getRecord();
  Operation *push = record ? pushes.lookup(*record) : nullptr;
  for (OpResult result : op->getResults())
    meet(result, push ? carried(push->getOperand(result.getResultNumber()))
                      : Shape::varying());
}

/// Of sums and differences, products by constants, and changes of width: of the
/// first lane a scalar tells enough.
std::optional<Shape> Shapes::ofSum(Operation *op) const {
  if (isa<arith::TruncIOp, arith::ExtSIOp>(op))
    return of(op->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  Shape a = of(op->getOperand(0)), b = of(op->getOperand(1));
  if (a.kind == Shape::Varying || b.kind == Shape::Varying)
    return std::nullopt;
  APInt factor;
  if (!isa<arith::MulIOp>(op)) {
    int64_t stride = a.stride + (isa<arith::AddIOp>(op) ? b.stride : -b.stride);
    return stride == 0 ? Shape() : Shape::strided(stride);
  }
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&factor)) ||
      !factor.isSignedIntN(16) || std::abs(a.stride) > (1 << 16))
    return std::nullopt;
  return Shape::strided(a.stride * factor.getSExtValue());
}

static bool isIndexLike(Type type) {
  return type.isInteger(32) || type.isInteger(64);
}

bool isOfOneLane(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return !ir::onlyComputes(ir::calleeOf(call));
  return ir::isOfLocal(op) || ir::writesElement(op);
}

Shape Shapes::ofResult(Operation *op) const {
  if (isOfOneLane(op))
    return Shape::varying();
  if (areShared(op->getOperands()))
    return Shape();
  if (op->getNumResults() == 1 && isIndexLike(op->getResult(0).getType()))
    if (std::optional<Shape> sum = ofSum(op))
      return *sum;
  return Shape::varying();
}

} // namespace costate::conversion
