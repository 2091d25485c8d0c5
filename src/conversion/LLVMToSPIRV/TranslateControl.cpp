/// Branches, loops and calls.

#include "conversion/LLVMToSPIRV/Calls.h"
#include "conversion/LLVMToSPIRV/Lanes.h"
#include "conversion/LLVMToSPIRV/LoopLimit.h"
#include "conversion/LLVMToSPIRV/Operations.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {
namespace {

/// Fails, with an error, if one of them has no counterpart.
FailureOr<SmallVector<Type>> typesOf(Translation &t, TypeRange from,
                                     Location loc) {
  SmallVector<Type> types;
  for (Type type : from)
    types.push_back(t.b.typeOf(type));
  if (llvm::is_contained(types, Type()))
    return emitError(loc, "carries a value without a counterpart in SPIR-V");
  return types;
}

//===-- Branches ----------------------------------------------------------===//

FailureOr<SmallVector<Value>> translateRegion(Translation &t, Region &from) {
  SmallVector<Value> results;
  if (from.empty())
    return results;
  if (failed(translateBlock(t, from.front())))
    return failure();
  for (Value value : from.front().getTerminator()->getOperands())
    results.push_back(t.get(value));
  return results;
}

/// Emits the side where the condition holds, or the other one, and returns what
/// it yields.
using Side = llvm::function_ref<FailureOr<SmallVector<Value>>(bool isThen)>;

LogicalResult fillSide(Translation &t, bool isThen, Location loc, Block *merge,
                       Side side) {
  FailureOr<SmallVector<Value>> yielded = side(isThen);
  if (failed(yielded))
    return failure();
  t.b.setLoc(loc);
  spv::BranchOp::create(t.b, merge, *yielded);
  return success();
}

FailureOr<SmallVector<Value>> selection(Translation &t, Location loc,
                                        Value condition, TypeRange from,
                                        Side side) {
  SpirvBuilder &b = t.b;
  auto types = typesOf(t, from, loc);
  if (failed(types))
    return failure();
  auto op = spv::SelectionOp::create(b, *types, spv::SelectionControl::None);
  SmallVector<Location> locs(types->size(), loc);
  OpBuilder::InsertionGuard guard(b);
  Region &body = op.getBody();
  Block *header = b.createBlock(&body);
  Block *yes = b.createBlock(&body, body.end());
  Block *no = b.createBlock(&body, body.end());
  Block *merge = b.createBlock(&body, body.end(), *types, locs);
  b.setInsertionPointToEnd(header);
  spv::BranchConditionalOp::create(b, condition, yes, ValueRange(), no,
                                   ValueRange());
  for (Block *block : {yes, no}) {
    b.setInsertionPointToEnd(block);
    if (failed(fillSide(t, block == yes, loc, merge, side)))
      return failure();
  }
  b.setInsertionPointToEnd(merge);
  spv::MergeOp::create(b, merge->getArguments());
  return llvm::to_vector_of<Value>(op.getResults());
}

LogicalResult branch(Translation &t, scf::IfOp op) {
  auto results =
      selection(t, op.getLoc(), t.get(op.getCondition()), op.getResultTypes(),
                [&](bool isThen) {
                  return translateRegion(t, isThen ? op.getThenRegion()
                                                   : op.getElseRegion());
                });
  if (failed(results))
    return failure();
  t.set(op.getResults(), *results);
  return success();
}

/// One branch after the other, from case `k` on.
FailureOr<SmallVector<Value>> choose(Translation &t, scf::IndexSwitchOp op,
                                     unsigned k) {
  if (k == op.getCases().size())
    return translateRegion(t, op.getDefaultRegion());
  Value flag = t.get(op.getArg());
  Value isCase = spv::IEqualOp::create(t.b, flag, t.b.i32(op.getCases()[k]));
  return selection(t, op->getLoc(), isCase, op->getResultTypes(),
                   [&](bool isThen) {
                     return isThen ? translateRegion(t, op.getCaseRegions()[k])
                                   : choose(t, op, k + 1);
                   });
}

LogicalResult branchByCase(Translation &t, scf::IndexSwitchOp op) {
  auto results = choose(t, op, 0);
  if (failed(results))
    return failure();
  t.set(op.getResults(), *results);
  return success();
}

//===-- Loops -------------------------------------------------------------===//

/// A loop of the form that liftControlFlow leaves: all is in front of the
/// condition.
class Loop {
public:
  Loop(Translation &t, scf::WhileOp op)
      : t(t), b(t.b), op(op), endsInHeader(t.b.features().endsLongLoops) {}

  LogicalResult translate();

private:
  void carry(ArrayRef<Type> types);
  void createBlocks(Region &body);
  void enter();
  LogicalResult iteration();
  SmallVector<Value> leave();

  Translation &t;
  SpirvBuilder &b;
  scf::WhileOp op;
  /// Else it ends after its condition. In the header it needs a flag for that.
  bool endsInHeader;
  /// Arguments that iterations leave to the next one.
  SmallVector<unsigned> kept;
  SmallVector<Value> inits; ///< of those, and the flag
  SmallVector<Type> carried;
  Block *entry, *header, *body, *next, *merge;
};

void Loop::carry(ArrayRef<Type> types) {
  for (auto [k, argument] : llvm::enumerate(op.getBeforeArguments()))
    if (endsInHeader || !argument.use_empty())
      kept.push_back(k);
  for (unsigned k : kept) {
    inits.push_back(t.get(op.getInits()[k]));
    carried.push_back(types[k]);
  }
  if (endsInHeader) {
    carried.push_back(b.getI1Type());
    inits.push_back(b.integer(b.getI1Type(), APInt(1, 1)));
  }
}

void Loop::createBlocks(Region &region) {
  SmallVector<Location> locs(carried.size(), op.getLoc());
  entry = b.createBlock(&region);
  header = b.createBlock(&region, region.end(), carried, locs);
  body = b.createBlock(&region, region.end());
  next = b.createBlock(&region, region.end(), carried, locs);
  merge = b.createBlock(&region, region.end());
}

void Loop::enter() {
  b.setInsertionPointToEnd(entry);
  spv::BranchOp::create(b, header, inits);
  b.setInsertionPointToEnd(header);
  for (auto [k, argument] : llvm::zip(kept, header->getArguments()))
    t.values[op.getBeforeArguments()[k]] = argument;
  if (endsInHeader)
    spv::BranchConditionalOp::create(b, header->getArguments().back(), body,
                                     ValueRange(), merge, ValueRange());
  else
    spv::BranchOp::create(b, body);
}

LogicalResult Loop::iteration() {
  b.setInsertionPointToEnd(body);
  countPass(t, op);
  if (failed(translateBlock(t, op.getBefore().front())))
    return failure();
  b.setLoc(op.getLoc());
  return success();
}

/// Returns what the loop results in.
SmallVector<Value> Loop::leave() {
  scf::ConditionOp condition = op.getConditionOp();
  SmallVector<Value> passed, left;
  for (unsigned k : kept)
    passed.push_back(t.get(condition.getArgs()[k]));
  Value goesOn = t.get(condition.getCondition());
  if (endsInHeader) {
    passed.push_back(goesOn);
    spv::BranchOp::create(b, next, passed);
    llvm::append_range(left, header->getArguments().drop_back());
  } else {
    spv::BranchConditionalOp::create(b, goesOn, next, passed, merge,
                                     ValueRange());
    for (Value value : condition.getArgs())
      left.push_back(t.get(value));
  }
  return left;
}

LogicalResult Loop::translate() {
  auto types = typesOf(t, op.getResultTypes(), op.getLoc());
  if (failed(types))
    return failure();
  carry(*types);
  auto made = spv::LoopOp::create(b, *types, spv::LoopControl::None);
  OpBuilder::InsertionGuard guard(b);
  createBlocks(made.getBody());
  enter();
  if (failed(iteration()))
    return failure();
  SmallVector<Value> left = leave();
  b.setInsertionPointToEnd(next);
  spv::BranchOp::create(b, header, next->getArguments());
  b.setInsertionPointToEnd(merge);
  spv::MergeOp::create(b, left);
  t.set(op.getResults(), made.getResults());
  return success();
}

LogicalResult loop(Translation &t, scf::WhileOp op) {
  return Loop(t, op).translate();
}

//===-- Calls and ends ----------------------------------------------------===//

LogicalResult call(Translation &t, LLVM::CallOp op) {
  std::optional<StringRef> callee = op.getCallee();
  if (!callee)
    return t.none(op);
  SmallVector<Value> arguments;
  for (Value value : op.getArgOperands())
    arguments.push_back(t.get(value));
  if (*callee == opaqueName)
    return t.set(op, opaque(t.b, arguments.front()));
  if (callee->consume_front(subgroupPrefix))
    return subgroupCall(t, op, *callee);
  auto function = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      op, op.getCalleeAttr());
  Type type =
      op.getNumResults() ? t.b.typeOf(op.getResult().getType()) : Type();
  if (!type || !function || function.isExternal())
    return t.none(op);
  auto made = spv::FunctionCallOp::create(
      t.b, type, FlatSymbolRefAttr::get(t.b.getContext(), *callee), arguments);
  Value result = made.getResult(0);
  // NVIDIA's driver (580.159.04) makes wrong rests of x - x / y * y.
  bool isQuotient = callee->starts_with(quotientPrefix);
  return t.set(op, isQuotient ? perLane(t.b, result) : result);
}

LogicalResult tellIfCut(Translation &t) {
  Value cut = isCut(t);
  if (!cut)
    return success();
  return selection(t, t.from.getLoc(), cut, {},
                   [&](bool isThen) -> FailureOr<SmallVector<Value>> {
                     if (isThen)
                       tellCut(t);
                     return SmallVector<Value>();
                   });
}

LogicalResult leave(Translation &t, LLVM::ReturnOp op) {
  if (failed(tellIfCut(t)))
    return failure();
  if (op->getNumOperands() == 0)
    spv::ReturnOp::create(t.b);
  else
    spv::ReturnValueOp::create(t.b, t.operand(op, 0));
  return success();
}

/// Their operands are taken where the region ends.
LogicalResult end(Translation &, Operation *) { return success(); }

} // namespace

llvm::ArrayRef<KnownOperation> controlOperations() {
  static const KnownOperation all[] = {
      row<scf::IfOp, branch>(),     row<scf::IndexSwitchOp, branchByCase>(),
      row<scf::WhileOp, loop>(),    row<scf::YieldOp, end>(),
      row<scf::ConditionOp, end>(), row<LLVM::CallOp, call>(),
      row<LLVM::ReturnOp, leave>(),
  };
  return all;
}

} // namespace costate::conversion
