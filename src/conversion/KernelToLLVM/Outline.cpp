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
  Arguments(ImplicitLocOpBuilder &builder, ir::KernelOp kernel, Value slots)
      : builder(builder), kernel(kernel), slots(slots) {}

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
    Values parts = {loadSlot(builder, pointer, slots, next)};
    int64_t first = next + 1;
    next = first + array.getRank();
    if (Value primal = primalOf(argument))
      llvm::append_range(parts, ArrayView(primal).extents);
    else
      for (int64_t slot = first; slot < next; ++slot)
        parts.push_back(loadSlot(builder, builder.getI64Type(), slots, slot));
    return castToArray(builder, parts, array, argument.getArgNumber());
  }

  /// The array whose extents an argument shares, so that addresses of elements
  /// are computed once. Tangents in several directions have one more.
  Value primalOf(BlockArgument argument) {
    for (StringRef name : {ir::adjointOfAttr, ir::tangentOfAttr})
      if (auto number = kernel.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), name))
        if (Value primal = here[number.getInt()];
            rankOf(primal) == rankOf(argument))
          return primal;
    return {};
  }

  static unsigned rankOf(Value array) {
    return cast<ir::ArrayType>(array.getType()).getRank();
  }

  ImplicitLocOpBuilder &builder;
  ir::KernelOp kernel;
  Value slots;
  int64_t next = 0;
  Values here;
};

/// Extents of arrays that have the same are one value.
void takeExtents(LLVM::LLVMFuncOp entry) {
  entry.walk([](ir::ExtentOp op) {
    op.replaceAllUsesWith(ArrayView(op.getArray()).extents[op.getDim()]);
    op.erase();
  });
}

} // namespace

LLVM::LLVMFuncOp createEntry(ModuleOp module, ir::KernelOp kernel) {
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  auto entry =
      createFunction(module, kernel.getLoc(), kernel.getName() + ".entry",
                     {pointer, pointer, pointer}, LLVM::Linkage::External);
  Block *block = &entry.getFunctionBody().front();
  auto builder = ImplicitLocOpBuilder::atBlockBegin(kernel.getLoc(), block);
  Arguments(builder, kernel, entry.getArgument(2)).unpack();
  Block *body = &kernel.getRegion().front();
  splice(builder, body, body->begin(), std::prev(body->end()));
  LLVM::ReturnOp::create(builder, ValueRange());
  kernel.erase();
  takeExtents(entry);
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
  for (Value value : captured) {
    Values own;
    for (Value part : partsOf(value))
      own.push_back(here[position(part)]);
    mapping.map(value, isa<ir::ArrayType>(value.getType())
                           ? castToArray(builder, own, value.getType(),
                                         ArrayView(value).parameter)
                           : own.front());
  }
  for (Value value : constants)
    builder.clone(*value.getDefiningOp(), mapping);
  for (Value value : llvm::concat<Value>(captured, constants))
    replaceAllUsesInRegionWith(value, mapping.lookup(value), region);
}

} // namespace costate::conversion
