#include "conversion/KernelToLLVM/Outline.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace costate::conversion {

LLVM::LLVMFuncOp createFunction(ModuleOp module, Location loc,
                                const Twine &name, TypeRange params,
                                LLVM::Linkage linkage) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  auto none = LLVM::LLVMVoidType::get(module.getContext());
  auto type = LLVM::LLVMFunctionType::get(none, llvm::to_vector(params));
  auto function =
      LLVM::LLVMFuncOp::create(builder, loc, name.str(), type, linkage);
  function.setNoUnwind(true);
  function.addEntryBlock(builder);
  return function;
}

Value slot(ImplicitLocOpBuilder &builder, Value frame, int64_t number) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  return LLVM::GEPOp::create(builder, pointer, builder.getI64Type(), frame,
                             LLVM::GEPArg(number),
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value loadSlot(ImplicitLocOpBuilder &builder, Type type, Value frame,
               int64_t number) {
  Value address = slot(builder, frame, number);
  if (!type.isInteger(1))
    return LLVM::LoadOp::create(builder, type, address);
  Value byte = LLVM::LoadOp::create(builder, builder.getI8Type(), address);
  return arith::TruncIOp::create(builder, type, byte);
}

void storeSlot(ImplicitLocOpBuilder &builder, Value value, Value frame,
               int64_t number) {
  Value address = slot(builder, frame, number);
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(builder, builder.getI8Type(), value);
  LLVM::StoreOp::create(builder, value, address);
}

void splice(OpBuilder &builder, Block *block, Block::iterator first,
            Block::iterator last) {
  builder.getInsertionBlock()->getOperations().splice(
      builder.getInsertionPoint(), block->getOperations(), first, last);
}

bool isWritten(Value array, Region &region) {
  return llvm::any_of(array.getUsers(), [&](Operation *user) {
    return ir::writesElement(user) &&
           region.isAncestor(user->getParentRegion());
  });
}

bool isPush(Operation *op) { return isa<tape::PushOp>(op); }

bool isEffect(Operation *op) {
  return ir::writesElement(op) && !op->hasAttr(ir::replayedAttr);
}

bool isPrint(Operation *op) { return isa<ir::PrintOp>(op); }

bool addsInAnyOrder(Operation *op) {
  auto update = dyn_cast<ir::AtomicAddOp>(op);
  return update && isa<FloatType>(update.getValue().getType()) &&
         !update.getExclusive() && !update->hasAttr(reductionAttr);
}

static Value cappedProduct(ImplicitLocOpBuilder &builder, Value a, Value b) {
  auto product = arith::MulUIExtendedOp::create(builder, a, b);
  Value zero = constant(builder, 0), capped = constant(builder, -1);
  Value fits = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                     product.getHigh(), zero);
  return arith::SelectOp::create(builder, fits, product.getLow(), capped);
}

Value workItemsOf(ImplicitLocOpBuilder &builder, ValueRange extents) {
  Value zero = constant(builder, 0), product;
  for (Value extent : extents) {
    Value clamped = arith::MaxSIOp::create(builder, extent, zero);
    product = product ? cappedProduct(builder, product, clamped) : clamped;
  }
  return product;
}

namespace {

/// Makes the arguments of a kernel of the slots that an entry gets.
class Arguments {
public:
  /// `keeps`: dimensions are named in errors.
  Arguments(ImplicitLocOpBuilder &builder, ir::KernelOp kernel, Value slots,
            bool keeps)
      : builder(builder), kernel(kernel), slots(slots), keeps(keeps),
        extents(kernel.getNumArguments()) {}

  void unpack() {
    for (BlockArgument argument : kernel.getRegion().getArguments())
      here.push_back(unpack(argument));
    for (auto [argument, value] :
         llvm::zip(kernel.getRegion().getArguments(), here))
      argument.replaceAllUsesWith(value);
  }

private:
  Value unpack(BlockArgument argument) {
    auto array = dyn_cast<ir::ArrayType>(argument.getType());
    if (!array)
      return loadSlot(builder, argument.getType(), slots, next++);
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    Values parts = {loadSlot(builder, pointer, slots, next++)};
    Values &all = extents[argument.getArgNumber()];
    if (std::optional<unsigned> primal = primalOf(argument))
      all = extents[*primal];
    else
      loadExtents(argument, all);
    next += array.getRank();
    takeExtents(argument, all);
    Values kept = keeps ? all : dropUnits(argument, all);
    parts.append(kept);
    auto type = ir::ArrayType::get(builder.getContext(), array.getElementType(),
                                   kept.size());
    return castToArray(builder, parts, type, argument.getArgNumber());
  }

  void loadExtents(BlockArgument array, Values &all) {
    std::vector<int64_t> known = ir::knownExtents(array);
    known.resize(rankOf(array), -1);
    for (auto [dim, extent] : llvm::enumerate(known))
      all.push_back(extent >= 0 ? constant(builder, extent)
                                : loadSlot(builder, builder.getI64Type(), slots,
                                           next + dim));
  }

  /// Extents of arrays that have the same are one value.
  void takeExtents(BlockArgument array, ValueRange all) {
    for (Operation *user : llvm::make_early_inc_range(array.getUsers()))
      if (auto extent = dyn_cast<ir::ExtentOp>(user)) {
        extent.replaceAllUsesWith(all[extent.getDim()]);
        extent.erase();
      }
  }

  /// Without dimensions of one element, where each index is a constant.
  Values dropUnits(BlockArgument array, ArrayRef<Value> all) {
    Values kept(all);
    for (unsigned dim = kept.size(); dim-- > 0;) {
      auto isZero = [&](Operation *user) {
        auto access = dyn_cast<ir::ElementAccess>(user);
        return access && matchPattern(access.getIndices()[dim], m_Zero());
      };
      if (!matchPattern(kept[dim], m_One()) ||
          !llvm::all_of(array.getUsers(), isZero))
        continue;
      for (Operation *user : array.getUsers())
        user->eraseOperand(
            cast<ir::ElementAccess>(user).getIndices().getBeginOperandIndex() +
            dim);
      kept.erase(kept.begin() + dim);
    }
    return kept;
  }

  /// The array whose extents an argument shares, so that addresses of elements
  /// are computed once. Tangents in several directions have one more.
  std::optional<unsigned> primalOf(BlockArgument argument) {
    for (StringRef name : {ir::adjointOfAttr, ir::tangentOfAttr})
      if (auto number = kernel.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), name))
        if (extents[number.getInt()].size() == rankOf(argument))
          return number.getInt();
    return std::nullopt;
  }

  static unsigned rankOf(Value array) {
    return cast<ir::ArrayType>(array.getType()).getRank();
  }

  ImplicitLocOpBuilder &builder;
  ir::KernelOp kernel;
  Value slots;
  bool keeps;
  SmallVector<Values> extents; ///< of each argument
  int64_t next = 0;
  Values here;
};

} // namespace

LLVM::LLVMFuncOp createEntry(ModuleOp module, ir::KernelOp kernel,
                             bool keepDimensions) {
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  auto entry =
      createFunction(module, kernel.getLoc(), kernel.getName() + ".entry",
                     {pointer, pointer, pointer}, LLVM::Linkage::External);
  Block *block = &entry.getFunctionBody().front();
  auto builder = ImplicitLocOpBuilder::atBlockBegin(kernel.getLoc(), block);
  Arguments(builder, kernel, entry.getArgument(2), keepDimensions).unpack();
  Block *body = &kernel.getRegion().front();
  splice(builder, body, body->begin(), std::prev(body->end()));
  LLVM::ReturnOp::create(builder, ValueRange());
  kernel.erase();
  return entry;
}

void callCopies(Runtime &runtime, LLVM::LLVMFuncOp entry) {
  entry.walk([&](ir::CopyOp copy) {
    ImplicitLocOpBuilder builder(copy.getLoc(), copy);
    ArrayView from(copy.getFrom()), to(copy.getTo());
    Value bytes = constant(builder, copy.getFrom().getType().elementBytes());
    for (Value extent : from.extents)
      bytes = arith::MulIOp::create(builder, bytes, extent);
    runtime.callCopy(builder,
                     {entry.getArgument(0), to.base, from.base, bytes});
    copy.erase();
  });
}

Captures::Captures(Region &region, ValueRange more) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(region, used);
  used.insert(more.begin(), more.end());
  llvm::SetVector<Value> all;
  for (Value value : used) {
    if (matchPattern(value, m_Constant())) {
      constants.push_back(value);
      continue;
    }
    captured.push_back(value);
    for (Value part : partsOf(value))
      if (!matchPattern(part, m_Constant()))
        all.insert(part);
  }
  parts = Values(all.begin(), all.end());
}

Values Captures::partsOf(Value value) {
  if (!isa<ir::ArrayType>(value.getType()))
    return {value};
  ArrayView view(value);
  Values parts = {view.base};
  llvm::append_range(parts, view.extents);
  return parts;
}

unsigned Captures::position(Value part) const {
  return llvm::find(parts, part) - parts.begin();
}

void Captures::map(ImplicitLocOpBuilder &builder, ValueRange here,
                   Region &region) {
  auto own = [&](Value part) {
    return matchPattern(part, m_Constant())
               ? builder.clone(*part.getDefiningOp())->getResult(0)
               : here[position(part)];
  };
  for (Value value : captured) {
    Values parts = llvm::map_to_vector(partsOf(value), own);
    mapping.map(value, isa<ir::ArrayType>(value.getType())
                           ? castToArray(builder, parts, value.getType(),
                                         ArrayView(value).parameter)
                           : parts.front());
  }
  for (Value value : constants)
    builder.clone(*value.getDefiningOp(), mapping);
  for (Value value : llvm::concat<Value>(captured, constants))
    replaceAllUsesInRegionWith(value, mapping.lookup(value), region);
}

} // namespace costate::conversion
