#include "conversion/LLVMToSPIRV/Translator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

Translator::Translator(SpirvModule &module, const SharedLayout &shared,
                       LLVM::LLVMFuncOp from)
    : module(module), shared(shared), from(from),
      b(from.getLoc(), from.getContext()),
      layout(from->getParentOfType<ModuleOp>()) {}

LogicalResult Translator::set(Operation *op, Value value) {
  values[op->getResult(0)] = value;
  return success();
}

LogicalResult Translator::none(Operation *op) {
  return op->emitError("has no counterpart in SPIR-V: ") << *op;
}

static bool isKernel(LLVM::LLVMFuncOp function) {
  return function.getCConv() == LLVM::cconv::CConv::PTX_Kernel;
}

Value Translator::launchWord(LaunchWord k) {
  Value launch = spv::AddressOfOp::create(b, module.launch());
  Value word = spv::AccessChainOp::create(b, launch, ValueRange{i32(k)});
  return spv::LoadOp::create(b, word);
}

//===-- Devices that cut loops --------------------------------------------===//

/// Loops at any depth, those of functions that are called among them.
static int64_t loopsIn(Operation *code) {
  int64_t loops = 0;
  code->walk([&](Operation *op) {
    loops += op != code && isa<scf::WhileOp>(op);
    auto call = dyn_cast<LLVM::CallOp>(op);
    if (!call || !call.getCallee())
      return;
    auto function = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
        op, call.getCalleeAttr());
    loops += function ? loopsIn(function) : 0;
  });
  return loops;
}

/// Counts a pass through `code`. Such a device runs all branches, whether or
/// not a thread takes them, so each loop inside is run through once without
/// threads: where it ends, or where none has come to it. One thread of the
/// subgroup counts for all.
void Translator::countPass(Operation *code) {
  if (!module.features().endsLongLoops)
    return;
  module.need(spv::Capability::GroupNonUniform);
  Value counts = spv::GroupNonUniformElectOp::create(b, b.getI1Type(),
                                                     spv::Scope::Subgroup);
  Value more = select(counts, i32(1 + loopsIn(code)), i32(0));
  Value cell = spv::AddressOfOp::create(b, module.passes());
  Value before = spv::LoadOp::create(b, cell);
  spv::StoreOp::create(b, cell, spv::IAddOp::create(b, before, more));
}

/// At the end of a kernel.
LogicalResult Translator::tellCut() {
  if (!module.features().endsLongLoops || !isKernel(from))
    return success();
  constexpr int64_t passesOfThread = 65000; // 65535, and some to spare
  module.need(spv::Capability::GroupNonUniformArithmetic);
  Value own = spv::LoadOp::create(
      b, spv::AddressOfOp::create(b, module.passes()).getResult());
  Value all = spv::GroupNonUniformIAddOp::create(
      b, b.getI32Type(), spv::Scope::Subgroup, spv::GroupOperation::Reduce, own,
      Value());
  Value isCut = spv::UGreaterThanEqualOp::create(b, all, i32(passesOfThread));
  auto side = [&](bool isThen, SmallVectorImpl<Value> &) {
    if (isThen)
      spv::AtomicOrOp::create(
          b, b.getI32Type(),
          globalPointer(launchWord(CutLoops), b.getI32Type()),
          spv::Scope::Device, spv::MemorySemantics::None, i32(1));
    return success();
  };
  SmallVector<Value> none;
  return selection(from.getLoc(), isCut, {}, side, none);
}

LogicalResult Translator::run() {
  SmallVector<Type> parameters, results;
  if (!isKernel(from))
    for (Type type : from.getArgumentTypes())
      parameters.push_back(typeOf(type));
  Type result = from.getFunctionType().getReturnType();
  if (!isa<LLVM::LLVMVoidType>(result))
    results.push_back(typeOf(result));
  if (llvm::is_contained(parameters, Type()) ||
      llvm::is_contained(results, Type()))
    return from.emitError("has parameters without a counterpart in SPIR-V");
  OpBuilder end = module.atEnd();
  auto to = spv::FuncOp::create(end, from.getLoc(), from.getName(),
                                b.getFunctionType(parameters, results));
  Block *first = to.addEntryBlock();
  b.setInsertionPointToStart(first);
  for (auto [old, made] : llvm::zip(from.getArguments(), first->getArguments()))
    values[old] = made;
  if (isKernel(from)) {
    values[from.getArgument(0)] = launchWord(WordsOfLaunch);
    module.addEntryPoint(to);
    if (module.features().endsLongLoops)
      spv::StoreOp::create(
          b, spv::AddressOfOp::create(b, module.passes()).getResult(), i32(0));
    countPass(from);
  }
  prepareVariables();
  return block(from.getBody().front());
}

LogicalResult Translator::block(Block &from) {
  for (Operation &op : from) {
    b.setLoc(op.getLoc());
    if (failed(operation(op)))
      return failure();
  }
  return success();
}

LogicalResult Translator::operation(Operation &op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<LLVM::AddOp, LLVM::SubOp, LLVM::MulOp, LLVM::UDivOp, LLVM::SDivOp,
            LLVM::URemOp, LLVM::SRemOp, LLVM::AndOp, LLVM::OrOp, LLVM::XOrOp,
            LLVM::ShlOp, LLVM::LShrOp, LLVM::AShrOp>(
          [&](auto op) { return integerOp(op); })
      .Case<LLVM::FAddOp, LLVM::FSubOp, LLVM::FMulOp, LLVM::FDivOp,
            LLVM::FNegOp>([&](auto op) { return floatOp(op); })
      .Case<LLVM::TruncOp, LLVM::ZExtOp, LLVM::SExtOp, LLVM::SIToFPOp,
            LLVM::UIToFPOp, LLVM::FPToSIOp, LLVM::FPToUIOp, LLVM::FPExtOp,
            LLVM::FPTruncOp, LLVM::BitcastOp, LLVM::PtrToIntOp,
            LLVM::IntToPtrOp, LLVM::FreezeOp, arith::TruncIOp,
            arith::IndexCastUIOp>([&](auto op) { return castOp(op); })
      .Case<LLVM::FAbsOp, LLVM::SqrtOp, LLVM::FFloorOp, LLVM::FCeilOp,
            LLVM::RoundEvenOp, LLVM::FMAOp, LLVM::CountLeadingZerosOp,
            LLVM::CountTrailingZerosOp, LLVM::CtPopOp, LLVM::BitReverseOp>(
          [&](auto op) { return mathOp(op); })
      .Case([&](LLVM::ICmpOp op) { return compareInts(op); })
      .Case([&](LLVM::FCmpOp op) { return compareFloats(op); })
      .Case<LLVM::SelectOp, arith::SelectOp>([&](auto op) {
        return set(op, select(operand(op, 0), operand(op, 1), operand(op, 2)));
      })
      .Case<LLVM::ConstantOp, arith::ConstantOp>([&](auto op) {
        Type type = typeOf(op->getResult(0).getType());
        Value value = type ? constantOf(type, op.getValue()) : Value();
        return value ? set(op, value) : none(op);
      })
      .Case<LLVM::ZeroOp, LLVM::UndefOp, LLVM::PoisonOp, ub::PoisonOp>(
          [&](auto op) {
            Type type = typeOf(op->getResult(0).getType());
            if (!type && isa<LLVM::LLVMStructType>(op->getResult(0).getType()))
              return success();
            return type ? set(op, zeroOf(type)) : none(op);
          })
      .Case<LLVM::AddressOfOp, LLVM::AllocaOp, LLVM::AddrSpaceCastOp>(
          [&](auto op) { return addressOp(op); })
      .Case([&](LLVM::GEPOp op) { return offsetOp(op); })
      .Case([&](LLVM::LoadOp op) { return load(op); })
      .Case([&](LLVM::StoreOp op) { return store(op); })
      .Case([&](LLVM::AtomicRMWOp op) { return update(op); })
      .Case([&](LLVM::AtomicCmpXchgOp op) { return exchange(op); })
      .Case([&](LLVM::FenceOp op) { return fence(op); })
      .Case([&](LLVM::InsertValueOp op) {
        if (op.getPosition().size() != 1)
          return none(op);
        auto &all = parts[op.getResult()];
        all = parts.lookup(op.getContainer());
        size_t at = op.getPosition().front();
        all.resize(std::max(all.size(), at + 1));
        all[at] = get(op.getValue());
        return success();
      })
      .Case([&](LLVM::ExtractValueOp op) {
        auto all = parts.find(op.getContainer());
        if (all == parts.end() || op.getPosition().size() != 1)
          return none(op);
        return set(op, all->second[op.getPosition().front()]);
      })
      .Case([&](LLVM::CallOp op) { return call(op); })
      .Case([&](LLVM::CallIntrinsicOp op) { return gpuIntrinsic(op); })
      .Case([&](scf::IfOp op) { return branch(op); })
      .Case([&](scf::IndexSwitchOp op) { return branch(op); })
      .Case([&](scf::WhileOp op) { return loop(op); })
      .Case<scf::YieldOp, scf::ConditionOp>([](auto) { return success(); })
      .Case([&](LLVM::ReturnOp op) {
        if (failed(tellCut()))
          return failure();
        if (op->getNumOperands() == 0)
          spv::ReturnOp::create(b);
        else
          spv::ReturnValueOp::create(b, operand(op, 0));
        return success();
      })
      .Default([&](Operation *op) { return none(op); });
}

//===-- Branches and loops ------------------------------------------------===//

LogicalResult Translator::region(Region &from,
                                 SmallVectorImpl<Value> &results) {
  if (from.empty())
    return success();
  if (failed(block(from.front())))
    return failure();
  for (Value value : from.front().getTerminator()->getOperands())
    results.push_back(get(value));
  return success();
}

LogicalResult Translator::selection(
    Location loc, Value condition, TypeRange types,
    llvm::function_ref<LogicalResult(bool, SmallVectorImpl<Value> &)> side,
    SmallVectorImpl<Value> &results) {
  SmallVector<Type> made;
  for (Type type : types)
    made.push_back(typeOf(type));
  if (llvm::is_contained(made, Type()))
    return emitError(loc, "carries a value without a counterpart in SPIR-V");
  auto op = spv::SelectionOp::create(b, made, spv::SelectionControl::None);
  SmallVector<Location> locs(made.size(), loc);
  OpBuilder::InsertionGuard guard(b);
  Block *header = b.createBlock(&op.getBody());
  Block *sides[2];
  for (Block *&one : sides)
    one = b.createBlock(&op.getBody(), op.getBody().end());
  Block *merge = b.createBlock(&op.getBody(), op.getBody().end(), made, locs);
  b.setInsertionPointToEnd(header);
  spv::BranchConditionalOp::create(b, condition, sides[0], ValueRange(),
                                   sides[1], ValueRange());
  for (unsigned k = 0; k < 2; ++k) {
    SmallVector<Value> yielded;
    b.setInsertionPointToEnd(sides[k]);
    if (failed(side(k == 0, yielded)))
      return failure();
    b.setLoc(loc);
    spv::BranchOp::create(b, merge, yielded);
  }
  b.setInsertionPointToEnd(merge);
  spv::MergeOp::create(b, merge->getArguments());
  results.append(op.getResults().begin(), op.getResults().end());
  return success();
}

LogicalResult Translator::branch(scf::IfOp op) {
  SmallVector<Value> results;
  auto side = [&](bool isThen, SmallVectorImpl<Value> &yielded) {
    return region(isThen ? op.getThenRegion() : op.getElseRegion(), yielded);
  };
  if (failed(selection(op.getLoc(), get(op.getCondition()), op.getResultTypes(),
                       side, results)))
    return failure();
  for (auto [old, made] : llvm::zip(op.getResults(), results))
    values[old] = made;
  return success();
}

/// One branch after the other.
LogicalResult Translator::choose(Operation *op, Value flag,
                                 ArrayRef<int64_t> cases,
                                 MutableArrayRef<Region> regions, Region &rest,
                                 SmallVectorImpl<Value> &results) {
  if (cases.empty())
    return region(rest, results);
  auto side = [&](bool isThen, SmallVectorImpl<Value> &yielded) {
    if (isThen)
      return region(regions.front(), yielded);
    return choose(op, flag, cases.drop_front(), regions.drop_front(), rest,
                  yielded);
  };
  Value isCase = spv::IEqualOp::create(b, flag, i32(cases.front()));
  return selection(op->getLoc(), isCase, op->getResultTypes(), side, results);
}

LogicalResult Translator::branch(scf::IndexSwitchOp op) {
  SmallVector<Value> results;
  if (failed(choose(op, get(op.getArg()), op.getCases(), op.getCaseRegions(),
                    op.getDefaultRegion(), results)))
    return failure();
  for (auto [old, made] : llvm::zip(op.getResults(), results))
    values[old] = made;
  return success();
}

namespace {
struct LoopBlocks {
  LoopBlocks(OpBuilder &b, Region &body, TypeRange carried,
             ArrayRef<Location> locs)
      : entry(b.createBlock(&body)),
        header(b.createBlock(&body, body.end(), carried, locs)),
        iteration(b.createBlock(&body, body.end())),
        next(b.createBlock(&body, body.end(), carried, locs)),
        merge(b.createBlock(&body, body.end())) {}

  Block *entry, *header, *iteration, *next, *merge;
};
} // namespace

/// What iterations leave to the next one.
static SmallVector<unsigned> carriedArguments(scf::WhileOp op, bool all) {
  SmallVector<unsigned> found;
  for (auto [k, argument] : llvm::enumerate(op.getBeforeArguments()))
    if (all || !argument.use_empty())
      found.push_back(k);
  return found;
}

/// Of the form that liftControlFlow leaves: all is in front of the condition.
/// Loops end after it, or in their header, if `endsInHeader`, with a flag.
LogicalResult Translator::loop(scf::WhileOp op) {
  bool endsInHeader = module.features().endsLongLoops;
  SmallVector<Value> inits;
  SmallVector<Type> types, carriedTypes;
  SmallVector<unsigned> kept = carriedArguments(op, endsInHeader);
  for (Type type : op.getResultTypes())
    types.push_back(typeOf(type));
  if (llvm::is_contained(types, Type()))
    return op.emitError("carries a value without a counterpart in SPIR-V");
  for (unsigned k : kept) {
    inits.push_back(get(op.getInits()[k]));
    carriedTypes.push_back(types[k]);
  }
  if (endsInHeader) {
    carriedTypes.push_back(b.getI1Type());
    inits.push_back(integer(b.getI1Type(), APInt(1, 1)));
  }
  SmallVector<Location> locs(carriedTypes.size(), op.getLoc());
  auto made = spv::LoopOp::create(b, types, spv::LoopControl::None);
  OpBuilder::InsertionGuard guard(b);
  auto [entry, header, iteration, next, merge] =
      LoopBlocks(b, made.getBody(), carriedTypes, locs);
  b.setInsertionPointToEnd(entry);
  spv::BranchOp::create(b, header, inits);
  b.setInsertionPointToEnd(header);
  for (auto [k, argument] : llvm::zip(kept, header->getArguments()))
    values[op.getBeforeArguments()[k]] = argument;
  if (endsInHeader)
    spv::BranchConditionalOp::create(b, header->getArguments().back(),
                                     iteration, ValueRange(), merge,
                                     ValueRange());
  else
    spv::BranchOp::create(b, iteration);
  b.setInsertionPointToEnd(iteration);
  countPass(op);
  if (failed(block(op.getBefore().front())))
    return failure();
  b.setLoc(op.getLoc());
  scf::ConditionOp condition = op.getConditionOp();
  SmallVector<Value> carried, left;
  for (unsigned k : kept)
    carried.push_back(get(condition.getArgs()[k]));
  Value goesOn = get(condition.getCondition());
  if (endsInHeader) {
    carried.push_back(goesOn);
    spv::BranchOp::create(b, next, carried);
    llvm::append_range(left, header->getArguments().drop_back());
  } else {
    spv::BranchConditionalOp::create(b, goesOn, next, carried, merge,
                                     ValueRange());
    for (Value value : condition.getArgs())
      left.push_back(get(value));
  }
  b.setInsertionPointToEnd(next);
  spv::BranchOp::create(b, header, next->getArguments());
  b.setInsertionPointToEnd(merge);
  spv::MergeOp::create(b, left);
  for (auto [old, result] : llvm::zip(op.getResults(), made.getResults()))
    values[old] = result;
  b.setInsertionPointAfter(made);
  return success();
}

LogicalResult Translator::call(LLVM::CallOp op) {
  std::optional<StringRef> callee = op.getCallee();
  if (!callee)
    return none(op);
  SmallVector<Value> arguments;
  for (Value value : op.getArgOperands())
    arguments.push_back(get(value));
  if (*callee == opaqueName)
    return set(op, opaque(arguments.front()));
  if (callee->consume_front(subgroupPrefix))
    return subgroupCall(op, *callee);
  auto function = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      op, op.getCalleeAttr());
  Type type = op.getNumResults() ? typeOf(op.getResult().getType()) : Type();
  if (!type || !function || function.isExternal())
    return none(op);
  auto made = spv::FunctionCallOp::create(
      b, type, FlatSymbolRefAttr::get(b.getContext(), *callee), arguments);
  // NVIDIA's driver (580.159.04) makes wrong rests of x - x / y * y.
  bool isQuotient = callee->starts_with(quotientPrefix);
  return set(op, isQuotient ? perLane(made.getResult(0)) : made.getResult(0));
}

} // namespace costate::conversion
