#include "autodiff/reverse/Scope.h"

#include "autodiff/save/Plan.h"
#include "ir/Kernel.h"
#include "ir/Source.h"
#include "ir/Tape.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {

/// An op that stands for something that is not known yet.
static Operation *placeholder(OpBuilder &builder, Location loc,
                              TypeRange types) {
  return UnrealizedConversionCastOp::create(builder, loc, types, ValueRange{});
}

Scope::Scope(Block &forward, Scope &parent, OpBuilder &builder)
    : forward(forward), records(parent.records), parent(&parent) {
  Location loc = forward.getParentOp()->getLoc();
  direct = parent.direct && isa<scf::IfOp>(forward.getParentOp());
  head = placeholder(builder, loc, {});
}

Value Scope::use(Value value) {
  if (sees(value))
    return value;
  auto *owner = const_cast<Scope *>(ownerOf(value));
  if (Value known = owner->provided.lookup(value))
    return known;
  return owner->placeholderFor(value);
}

void Scope::rename(Value from, Value to) {
  auto place = placeholders.find(from);
  if (place == placeholders.end())
    return;
  Operation *stand = place->second;
  placeholders.erase(place);
  placeholders[to] = stand;
}

Value Scope::placeholderFor(Value value) {
  Operation *&stand = placeholders[value];
  if (!stand) {
    OpBuilder builder(head);
    stand = placeholder(builder, value.getLoc(), value.getType());
  }
  return stand->getResult(0);
}

Value Scope::materialize(OpBuilder &builder, Value value) {
  if (!owns(value))
    return use(value);
  if (Value known = provided.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (!mapping.contains(operand))
      mapping.map(operand, materialize(builder, operand));
  Operation *copy = builder.clone(*op, mapping);
  copy->setLoc(ir::recomputed(op->getLoc()));
  for (auto [original, result] :
       llvm::zip(op->getResults(), copy->getResults()))
    provided[original] = result;
  return provided.lookup(value);
}

ArrayRef<Value> Scope::plan() {
  assert(!isOutermost() && "values of the outermost block are in scope");
  SmallVector<Value> needed;
  for (auto &[value, stand] : placeholders)
    needed.push_back(value);
  auto isAvailable = [&](Value value) {
    return !owns(value) || provided.contains(value);
  };
  SaveProblem problem{forward, needed, isAvailable};
  SavePlan plan = planSaves(problem);
  assert(verifyPlan(problem, plan));
  saved = std::move(plan.saved);
  return saved;
}

void Scope::finishWithRecord() {
  if (plan().empty())
    return finishWith({});
  Location loc = forward.getParentOp()->getLoc();
  OpBuilder atHead(head), atEnd(forward.getTerminator());
  TypeRange types = TypeRange(ValueRange(saved));
  IntegerAttr number = atHead.getI64IntegerAttr(records++);
  auto pop = tape::PopOp::create(atHead, loc, types, number);
  tape::PushOp::create(atEnd, loc, saved, number);
  finishWith(pop.getValues());
}

void Scope::finishWith(ValueRange known) {
  for (auto [value, source] : llvm::zip(saved, known))
    provided[value] = source;
  OpBuilder builder(head);
  for (auto &[value, stand] : placeholders) {
    stand->getResult(0).replaceAllUsesWith(materialize(builder, value));
    stand->erase();
  }
  head->erase();
}

} // namespace costate::autodiff
