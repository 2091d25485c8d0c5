#include "autodiff/reverse/Scope.h"

#include "ir/Kernel.h"
#include "ir/Plan.h"
#include "ir/Source.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {

//===-- All of a work item ------------------------------------------------===//

Scope &Scopes::enter(Scope &scope) {
  byBlock[&scope.forward] = &scope;
  return scope;
}

void Scopes::finish() {
  SmallVector<Value> needed;
  for (auto &scope : all)
    llvm::append_range(needed, scope->needed());
  auto times = [&](Value value) { return timesOf(value); };
  auto twin = [&](Operation *op) { return hasTwin(op); };
  sizing::SaveProblem problem{needed, times, twin};
  plan = records.planner.plan(problem);
  assert(verifyPlan(problem, plan));
  for (auto &give : endings)
    give();
  tellBehind();
}

void Scopes::addCopies(const IRMapping &copies) {
  for (auto [value, copy] : copies.getValueMap())
    originals[copy] = value;
}

/// What the reverse sweep takes from an iteration that runs again stands behind
/// a checkpoint in the forward sweep, and in iterations around it that run
/// again.
void Scopes::tellBehind() const {
  llvm::MapVector<Block *, llvm::SetVector<Value>> behind;
  for (auto &scope : all)
    for (Value value : llvm::concat<const Value>(
             scope->used.getArrayRef(), ArrayRef<Value>(scope->saved),
             ArrayRef<Value>(scope->recomputed)))
      while ((value = originals.lookup(value)))
        if (!matchPattern(value, m_Constant()))
          behind[value.getParentBlock()].insert(value);
  for (auto &[block, values] : behind) {
    tape::PlanOp plan = tape::planOf(block);
    if (!plan) {
      OpBuilder atEnd(block->getTerminator());
      plan = tape::PlanOp::create(atEnd, block->getParentOp()->getLoc(), {}, {},
                                  {}, {}, {});
    }
    plan.getBehindMutable().assign(values.getArrayRef());
  }
}

/// 0 if nobody has to be given `value`.
double Scopes::timesOf(Value value) const {
  const Scope *owner = byBlock.lookup(value.getParentBlock());
  bool isThere =
      !owner || owner->isOutermost() || owner->provided.contains(value);
  return isThere ? 0 : owner->times();
}

bool Scopes::hasTwin(Operation *op) const {
  return byBlock.lookup(op->getBlock())->hasTwin(op);
}

//===-- One block ---------------------------------------------------------===//

/// An op that stands for something that is not known yet.
static Operation *placeholder(OpBuilder &builder, Location loc,
                              TypeRange types) {
  return UnrealizedConversionCastOp::create(builder, loc, types, ValueRange{});
}

Scope::Scope(Scopes &scopes, Block &forward, Scope &parent, OpBuilder &builder)
    : forward(forward), scopes(scopes), parent(&parent) {
  Location loc = forward.getParentOp()->getLoc();
  direct = parent.direct && isa<scf::IfOp>(forward.getParentOp());
  head = placeholder(builder, loc, {});
}

Value Scope::use(Value value) {
  auto *owner = const_cast<Scope *>(ownerOf(value));
  if (sees(value)) {
    if (owner && scopes.originals.contains(value))
      owner->used.insert(value);
    return value;
  }
  if (Value known = owner->provided.lookup(value))
    return known;
  return owner->placeholderFor(value);
}

void Scope::rename(Value from, Value to) {
  if (Value original = scopes.originals.lookup(from))
    scopes.originals[to] = original;
  if (used.remove(from))
    used.insert(to);
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

SmallVector<Value> Scope::needed() const {
  SmallVector<Value> values;
  for (auto &[value, stand] : placeholders)
    if (!stand->use_empty())
      values.push_back(value);
  return values;
}

double Scope::times() const {
  double times = 1;
  for (const Scope *scope = this; scope; scope = scope->parent)
    if (!scope->isOutermost())
      times *=
          static_cast<double>(sizing::timesOf(scope->forward.getParentOp()));
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

static bool isBeforeInBlock(Value a, Value b) {
  auto x = dyn_cast<BlockArgument>(a), y = dyn_cast<BlockArgument>(b);
  if (x && y)
    return x.getArgNumber() < y.getArgNumber();
  if (x || y)
    return static_cast<bool>(x);
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (first != second)
    return first->isBeforeInBlock(second);
  return cast<OpResult>(a).getResultNumber() <
         cast<OpResult>(b).getResultNumber();
}

ArrayRef<Value> Scope::plan() {
  assert(!isOutermost() && "values of the outermost block are in scope");
  llvm::DenseSet<Value> seen;
  SmallVector<Value> pending = needed();
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!owns(value) || provided.contains(value) || !seen.insert(value).second)
      continue;
    if (scopes.plan.saved.contains(value) || !tape::isRecomputable(value)) {
      saved.push_back(value);
      continue;
    }
    recomputed.push_back(value);
    llvm::append_range(pending, value.getDefiningOp()->getOperands());
  }
  llvm::sort(saved, isBeforeInBlock);
  llvm::sort(recomputed, isBeforeInBlock);
  return saved;
}

void Scope::finishWithRecord() {
  if (plan().empty())
    return finishWith({});
  Location loc = forward.getParentOp()->getLoc();
  OpBuilder atHead(head), atEnd(forward.getTerminator());
  TypeRange types = TypeRange(ValueRange(saved));
  IntegerAttr number = atHead.getI64IntegerAttr(scopes.records.count++);
  auto pop = tape::PopOp::create(atHead, loc, types, number);
  tape::PushOp::create(atEnd, loc, saved, number);
  finishWith(pop.getValues());
}

void Scope::finishWith(ValueRange known) {
  tellPlan();
  for (auto [value, source] : llvm::zip(saved, known))
    provided[value] = source;
  OpBuilder builder(head);
  for (auto &[value, stand] : placeholders) {
    if (!stand->use_empty())
      stand->getResult(0).replaceAllUsesWith(materialize(builder, value));
    stand->erase();
  }
  head->erase();
}

/// Says in the forward block what has been decided.
void Scope::tellPlan() const {
  SmallVector<Value> computed, loaded, inverted;
  for (Value value : recomputed)
    (isa<ir::LoadOp>(value.getDefiningOp()) ? loaded : computed)
        .push_back(value);
  for (BlockArgument argument : forward.getArguments())
    if (provided.contains(argument))
      inverted.push_back(argument);
  if (saved.empty() && recomputed.empty() && inverted.empty())
    return;
  OpBuilder atEnd(forward.getTerminator());
  tape::PlanOp::create(atEnd, forward.getParentOp()->getLoc(), saved, computed,
                       loaded, inverted, /*behind=*/ValueRange());
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

} // namespace costate::autodiff
