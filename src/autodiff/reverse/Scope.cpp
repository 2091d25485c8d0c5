#include "autodiff/reverse/Scope.h"

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
    if (!stand->use_empty())
      needed.push_back(value);
  auto times = [&](Value value) { return timesOf(value); };
  auto twin = [&](Operation *op) { return hasTwin(op); };
  sizing::SaveProblem problem{forward, needed, times, twin};
  made = records.planner.plan(problem);
  assert(verifyPlan(problem, made));
  return made.saved;
}

/// How often `value` is computed for each run of this block, if its reverse has
/// to be given it.
double Scope::timesOf(Value value) const {
  const Scope *owner = ownerOf(value);
  if (!owner || owner->isOutermost() || owner->provided.contains(value) ||
      (owner != this && owner->placeholders.contains(value)))
    return 0;
  double times = 1;
  for (const Scope *inner = this; inner != owner; inner = inner->parent)
    if (!inner->isOutermost())
      times /= sizing::timesOf(inner->forward.getParentOp());
  return times;
}

/// Whether the reverse of this block has a cosine beside the sine `op`.
bool Scope::hasTwin(Operation *op) const {
  if (!isa<ir::SinOp, ir::CosOp>(op))
    return false;
  Value angle = op->getOperand(0);
  auto place = placeholders.find(angle);
  if (place != placeholders.end())
    angle = place->second->getResult(0);
  return llvm::any_of(angle.getUsers(), [&](Operation *user) {
    return isa<ir::SinOp, ir::CosOp>(user) &&
           user->getName() != op->getName() &&
           user->getBlock() == head->getBlock();
  });
}

/// Says in the forward block what has been decided.
void Scope::tellPlan() const {
  SmallVector<Value> recomputed, loaded, inverted;
  for (Value value : made.recomputed)
    (isa<ir::LoadOp>(value.getDefiningOp()) ? loaded : recomputed)
        .push_back(value);
  for (BlockArgument argument : forward.getArguments())
    if (provided.contains(argument) &&
        !llvm::is_contained(made.saved, argument))
      inverted.push_back(argument);
  if (made.saved.empty() && made.recomputed.empty())
    return;
  OpBuilder atEnd(forward.getTerminator());
  tape::PlanOp::create(atEnd, forward.getParentOp()->getLoc(), made.saved,
                       recomputed, loaded, inverted);
}

void Scope::finishWithRecord() {
  if (plan().empty())
    return finishWith({});
  Location loc = forward.getParentOp()->getLoc();
  OpBuilder atHead(head), atEnd(forward.getTerminator());
  TypeRange types = TypeRange(ValueRange(made.saved));
  IntegerAttr number = atHead.getI64IntegerAttr(records.count++);
  auto pop = tape::PopOp::create(atHead, loc, types, number);
  tape::PushOp::create(atEnd, loc, made.saved, number);
  finishWith(pop.getValues());
}

void Scope::finishWith(ValueRange known) {
  tellPlan();
  for (auto [value, source] : llvm::zip(made.saved, known))
    provided[value] = source;
  OpBuilder builder(head);
  for (auto &[value, stand] : placeholders) {
    if (!stand->use_empty())
      stand->getResult(0).replaceAllUsesWith(materialize(builder, value));
    stand->erase();
  }
  head->erase();
}

} // namespace costate::autodiff
