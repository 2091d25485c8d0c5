#include "lowering/Lowering.h"

#include "ir/Blocks.h"
#include "lowering/Operations.h"
#include "syntax/Print.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace costate::lowering {

using syntax::Kind;

Lowering::Run Lowering::prepare(const Block &block) {
  return {block, Guards(block, analysis.uses(), position)};
}

void Lowering::lower(const Block &block) {
  lower(prepare(block), 0, block.size());
}

/// What follows a jump is dead; what follows a statement that may jump runs
/// only if it did not.
void Lowering::lower(const Run &run, size_t begin, size_t end) {
  for (size_t at = begin; at < end; ++at) {
    const Statement &statement = run.block[at];
    if (is(statement.kind, syntax::Role::Jump))
      return jump(statement);
    if (run.guards.isGuarded(at))
      continue;
    if (!run.guards.guardedBy(at).empty())
      lowerGuarded(run, at);
    else
      lower(statement);
    if (at + 1 < end && analysis.jumpsOf(statement).any())
      return lowerRest(run, at, end);
  }
}

void Lowering::lowerRest(const Run &run, size_t at, size_t end) {
  const Facts &facts = analysis.of(run.block[at]);
  Location loc = this->at(run.block[at + 1]);
  Value going = goesOn(loc, facts.jumps);
  branch(loc, going, facts.rest, [&] { lower(run, at + 1, end); }, nullptr);
}

/// `a & b` becomes `a ? b : false`, `a | b` becomes `a ? true : b`.
void Lowering::lowerGuarded(const Run &run, size_t at) {
  const Statement &statement = run.block[at];
  Location loc = this->at(statement);
  bool evaluatesThen = statement.op == syntax::Op::And;
  auto branchTo = [&](bool evaluates) {
    return [&, evaluates](OpBuilder &, Location) {
      if (evaluates)
        emitGuarded(run, at);
      else
        scf::YieldOp::create(b, loc, boolean(loc, !evaluatesThen));
    };
  };
  auto op =
      scf::IfOp::create(b, loc, values[statement.operands[0]],
                        branchTo(evaluatesThen), branchTo(!evaluatesThen));
  values[statement.value] = op.getResult(0);
}

void Lowering::emitGuarded(const Run &run, size_t at) {
  const Statement &statement = run.block[at];
  for (uint32_t one : run.guards.guardedBy(at)) {
    if (run.guards.guardedBy(one).empty())
      lower(run.block[one]);
    else
      lowerGuarded(run, one);
  }
  scf::YieldOp::create(b, this->at(statement), values[statement.operands[1]]);
}

void Lowering::lower(const Statement &statement) {
  switch (statement.kind) {
  case Kind::Const:
    return define(statement, emitConstant(b, at(statement), statement.type,
                                          statement.bits));
  case Kind::Scalar:
    return define(statement, arguments[statement.argument]);
  case Kind::Extent:
    return define(statement, extent(statement));
  case Kind::Load:
    return define(statement, load(statement));
  case Kind::LoadLocal:
    return define(statement, loadLocal(statement));
  case Kind::Pure:
    return define(statement, pure(statement));
  case Kind::Custom:
    return define(statement, custom(statement));
  case Kind::Call:
    return define(statement, call(statement));
  case Kind::Result:
    return define(statement, result(statement));
  case Kind::ReadVar:
    return define(statement, current[statement.variable]);
  case Kind::DeclareVar:
  case Kind::AssignVar:
    return assign(statement);
  case Kind::DeclareLocal:
    return declareLocal(statement);
  case Kind::StoreLocal:
    return storeLocal(statement);
  case Kind::UpdateShared:
    return define(statement, updateShared(statement));
  case Kind::Group:
    return group(statement);
  case Kind::Store:
    return store(statement);
  case Kind::Update:
  case Kind::Exchange:
  case Kind::CompareExchange:
    return update(statement);
  case Kind::Print:
  case Kind::Assert:
    return message(statement);
  case Kind::If:
    return lowerIf(statement);
  case Kind::For:
    return lowerFor(statement);
  case Kind::While:
    return lowerWhile(statement);
  case Kind::Range:
    return lowerRange(statement);
  case Kind::Break:
  case Kind::Continue:
  case Kind::Return:
    return jump(statement);
  case Kind::Enter:
  case Kind::Leave:
    llvm_unreachable("not in a finished tree");
  }
}

void Lowering::jump(const Statement &statement) {
  VarId flag = statement.kind == Kind::Break      ? flags.breakFlag
               : statement.kind == Kind::Continue ? flags.continueFlag
                                                  : flags.returnFlag;
  current[flag] = boolean(at(statement), true);
}

void Lowering::define(const Statement &statement, Value value) {
  values[statement.value] = value;
}

void Lowering::assign(const Statement &statement) {
  current[statement.variable] = values[statement.operands[0]];
}

Value Lowering::extent(const Statement &statement) {
  return ir::ExtentOp::create(b, at(statement), arguments[statement.argument],
                              statement.dim);
}

Value Lowering::result(const Statement &statement) {
  Operation *call = values[statement.operands[0]].getDefiningOp();
  return call->getResult(statement.dim);
}

void Lowering::store(const Statement &statement) {
  ir::StoreOp::create(b, at(statement), values[statement.operands[0]],
                      arguments[statement.argument],
                      valuesOf(statement.operands, 1));
}

void Lowering::message(const Statement &statement) {
  const std::string &text = kernel.texts[statement.bits];
  if (statement.kind == Kind::Print)
    ir::PrintOp::create(b, at(statement), text, valuesOf(statement.operands));
  else
    ir::AssertOp::create(b, at(statement), values[statement.operands[0]], text,
                         valuesOf(statement.operands, 1));
}

void Lowering::update(const Statement &statement) {
  bool isUsed =
      statement.value != syntax::none && analysis.uses()[statement.value] > 0;
  bool hasForm = statement.op == syntax::Op::Add ||
                 statement.op == syntax::Op::Min ||
                 statement.op == syntax::Op::Max;
  if (!isUsed && hasForm && statement.kind == Kind::Update)
    return updateOnly(statement);
  Value old = fetch(statement);
  if (statement.value != syntax::none)
    values[statement.value] = old;
}

Value Lowering::fetch(const Statement &statement) {
  Value array = arguments[statement.argument];
  Type type = typeOf(b.getContext(), kernel.values[statement.operands[0]]);
  if (statement.kind == Kind::CompareExchange)
    return ir::CompareExchangeOp::create(
        b, at(statement), type, values[statement.operands[0]],
        values[statement.operands[1]], array, valuesOf(statement.operands, 2));
  const char *kind =
      statement.kind == Kind::Exchange ? "exchange" : nameOf(statement.op);
  return ir::AtomicFetchOp::create(b, at(statement), type, kind,
                                   values[statement.operands[0]], array,
                                   valuesOf(statement.operands, 1));
}

void Lowering::updateOnly(const Statement &statement) {
  auto emit = [&](auto kind) {
    using Op = decltype(kind);
    Op::create(b, at(statement), values[statement.operands[0]],
               arguments[statement.argument], valuesOf(statement.operands, 1));
  };
  if (statement.op == syntax::Op::Add)
    emit(ir::AtomicAddOp());
  else if (statement.op == syntax::Op::Min)
    emit(ir::AtomicMinOp());
  else
    emit(ir::AtomicMaxOp());
}

Value Lowering::load(const Statement &statement) {
  return ir::LoadOp::create(b, at(statement), arguments[statement.argument],
                            valuesOf(statement.operands));
}

/// One of serial code may be there already (see lowerAfterReturn).
void Lowering::declareLocal(const Statement &statement) {
  const syntax::Local &local = kernel.locals[statement.argument];
  Value &value = locals[statement.argument];
  if (statement.bits)
    value = ir::SharedOp::create(
        b, at(statement),
        ir::LocalType::get(b.getContext(),
                           elementTypeOf(b.getContext(), local.type),
                           local.size));
  else if (!value)
    value = ir::LocalOp::create(
        b, at(statement),
        ir::LocalType::get(b.getContext(),
                           localTypeOf(b.getContext(), local.type),
                           local.size));
}

Value Lowering::loadLocal(const Statement &statement) {
  return ir::LocalLoadOp::create(
      b, at(statement), typeOf(b.getContext(), statement.type),
      locals[statement.argument], values[statement.operands[0]]);
}

void Lowering::storeLocal(const Statement &statement) {
  ir::LocalStoreOp::create(b, at(statement), values[statement.operands[0]],
                           locals[statement.argument],
                           values[statement.operands[1]]);
}

Value Lowering::updateShared(const Statement &statement) {
  return ir::SharedUpdateOp::create(
      b, at(statement), typeOf(b.getContext(), statement.type),
      nameOf(statement.op), values[statement.operands[0]],
      locals[statement.argument], values[statement.operands[1]]);
}

void Lowering::group(const Statement &statement) {
  auto op = static_cast<syntax::GroupOp>(statement.bits);
  SmallVector<Type> types;
  if (hasResult(op))
    types.push_back(typeOf(b.getContext(), statement.type));
  auto group = ir::GroupOp::create(b, at(statement), types, nameOf(op),
                                   valuesOf(statement.operands));
  if (hasResult(op))
    define(statement, group->getResult(0));
}

Value Lowering::call(const Statement &statement) {
  SmallVector<Value> operands;
  for (uint32_t array : statement.indices)
    operands.push_back(arguments[array]);
  llvm::append_range(operands, valuesOf(statement.operands));
  auto op = func::CallOp::create(b, at(statement),
                                 functions[statement.argument], operands);
  return op.getResult(0);
}

/// Jumps do not leave the regions of a function with partial derivatives.
Value Lowering::custom(const Statement &statement) {
  auto op = ir::CustomOp::create(b, at(statement),
                                 typeOf(b.getContext(), statement.type),
                                 valuesOf(statement.operands));
  size_t arity = statement.operands.size();
  llvm::ArrayRef<ValueId> arguments = statement.indices,
                          results = statement.results;
  llvm::SaveAndRestore scope(flags, Flags());
  llvm::SaveAndRestore silent(debug, false);
  fill(op.getPrimal(), statement.blocks[0], arguments.take_front(arity),
       results.take_front(1), at(statement));
  fill(op.getPartials(), statement.blocks[1], arguments.drop_front(arity),
       results.drop_front(1), at(statement));
  return op.getResult();
}

/// Lowers `block` into the empty `region`.
void Lowering::fill(Region &region, const Block &block,
                    llvm::ArrayRef<ValueId> arguments,
                    llvm::ArrayRef<ValueId> results, Location loc) {
  OpBuilder::InsertionGuard guard(b);
  mlir::Block *inner = b.createBlock(&region);
  for (ValueId id : arguments)
    values[id] =
        inner->addArgument(typeOf(b.getContext(), kernel.values[id]), loc);
  lower(block);
  ir::YieldOp::create(b, loc, valuesOf(results));
}

Value Lowering::pure(const Statement &statement) {
  DType from = kernel.values[statement.operands.back()];
  SmallVector<Value> operands = valuesOf(statement.operands);
  Value result =
      emitPure(b, at(statement), statement.op, from, statement.type, operands);
  if (debug)
    reportOverflow(b, at(statement), statement.op, from, operands, result,
                   [&] { return lines.place(statement.loc, kernel.name); });
  return result;
}

} // namespace costate::lowering
