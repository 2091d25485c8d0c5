#include "conversion/KernelToDevice/DeviceFunction.h"

#include "base/DeviceWords.h"

using namespace mlir;

namespace costate::conversion {

/// On what stands for a value in the frame, and where that is a sum.
static constexpr StringLiteral frameSlotAttr = "costate.frame_slot",
                               sumAttr = "sum";

static void setAttribute(LLVM::LLVMFuncOp function, StringRef name,
                         const Twine &value) {
  Builder b(function.getContext());
  SmallVector<Attribute> attributes;
  if (ArrayAttr before = function.getPassthroughAttr())
    llvm::append_range(attributes, before);
  attributes.push_back(b.getStrArrayAttr({name, value.str()}));
  function.setPassthroughAttr(b.getArrayAttr(attributes));
}

DeviceFunction::DeviceFunction(ModuleOp module, Location loc, const Twine &name,
                               int64_t words, Threading threading,
                               int64_t lanes, bool measures)
    : threading(threading), lanes(lanes) {
  MLIRContext *context = module.getContext();
  Type pointer = pointerType(context), i64 = IntegerType::get(context, 64);
  outer = createFunction(module, loc, name, {pointer, i64, i64, pointer},
                         LLVM::Linkage::External);
  setAttribute(outer, "costate-words", std::to_string(words));
  body = createFunction(module, loc, name + ".body",
                        {pointer, pointer, i64, i64, pointer},
                        LLVM::Linkage::Internal);
  body.setPassthroughAttr(
      ArrayAttr::get(context, StringAttr::get(context, "alwaysinline")));
  body->setAttr(lanesAttr, IntegerAttr::get(i64, isSerial() ? 1 : lanes));
  if (measures)
    body->setAttr(measuresAttr, UnitAttr::get(context));
  fillOuter();
}

void DeviceFunction::mark(StringRef attribute) {
  setAttribute(outer, attribute, "");
}

void DeviceFunction::mark(StringRef attribute, int64_t number) {
  setAttribute(outer, attribute, Twine(number));
}

void DeviceFunction::end(ImplicitLocOpBuilder &b) {
  b.setInsertionPointToEnd(block());
  LLVM::ReturnOp::create(b, ValueRange());
}

/// Makes a worker: an empty tape.
void DeviceFunction::fillOuter() {
  auto b = ImplicitLocOpBuilder::atBlockBegin(outer.getLoc(),
                                              &outer.getFunctionBody().front());
  Type pointer = pointerType(b.getContext());
  Value args = outer.getArgument(0), thread = outer.getArgument(1);
  bool tiled = threading == Threading::Tiled;
  Value count = constant(b, tiled ? tileWorkerSlots : workerSlots);
  Value worker = LLVM::AllocaOp::create(b, pointer, b.getI64Type(), count, 8);
  Value errors = loadSlot(b, pointer, args, ErrorsWord);
  storeSlot(b, errors, worker, errorSlot);
  Value workItem = constant(b, -1);
  storeSlot(b, workItem, worker, workItemSlot);
  if (!tiled)
    storeTape(b, args, worker, thread);
  LLVM::CallOp::create(b, body,
                       ValueRange{args, worker, thread, outer.getArgument(2),
                                  outer.getArgument(3)});
  if (isSerial()) {
    Value frame = loadSlot(b, pointer, args, FrameWord);
    Value top = LLVM::LoadOp::create(b, pointer, worker);
    storeSlot(b, top, frame, 0);
  }
  LLVM::ReturnOp::create(b, ValueRange());
}

/// Where the tapes of a warp start.
static Value tapeOf(ImplicitLocOpBuilder &b, Value args, Value thread,
                    Value lane) {
  Type pointer = pointerType(b.getContext());
  Value start = loadSlot(b, pointer, args, TapeBaseWord);
  Value bytes = loadSlot(b, b.getI64Type(), args, TapeBytesWord);
  Value before = arith::SubIOp::create(b, thread, lane);
  Value offset = arith::MulIOp::create(b, before, bytes);
  return LLVM::GEPOp::create(b, pointer, b.getI8Type(), start,
                             ArrayRef<LLVM::GEPArg>(offset));
}

void DeviceFunction::storeTape(ImplicitLocOpBuilder &b, Value args,
                               Value worker, Value thread) {
  Value lane = constant(b, 0), base;
  if (isSerial()) {
    Value frame = loadSlot(b, pointerType(b.getContext()), args, FrameWord);
    base = loadSlot(b, pointerType(b.getContext()), frame, 0);
  } else {
    Value size = constant(b, lanes);
    lane = arith::RemUIOp::create(b, thread, size);
    base = tapeOf(b, args, thread, lane);
  }
  storeSlot(b, lane, worker, laneSlot);
  storeSlot(b, base, worker, tapeBaseSlot);
  LLVM::StoreOp::create(b, base, worker);
}

Value frameValue(ImplicitLocOpBuilder &b, Type type, int64_t slot, bool isSum) {
  auto cast = UnrealizedConversionCastOp::create(b, type, constant(b, slot));
  cast->setAttr(frameSlotAttr, b.getI64IntegerAttr(slot));
  if (isSum)
    cast->setAttr(sumAttr, b.getUnitAttr());
  return cast.getResult(0);
}

int64_t keepInFrame(ir::LocalOp local, int64_t slot) {
  local->setAttr(frameSlotAttr, Builder(local).getI64IntegerAttr(slot));
  return (local.getType().bytes() + 7) / 8;
}

std::optional<int64_t> frameSlotOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasAttr(frameSlotAttr))
    return std::nullopt;
  return op->getAttrOfType<IntegerAttr>(frameSlotAttr).getInt();
}

Value loadFromFrame(ImplicitLocOpBuilder &b, Value value, Value frame,
                    int64_t slot) {
  if (isa<ir::LocalType>(value.getType()))
    return UnrealizedConversionCastOp::create(b, value.getType(),
                                              conversion::slot(b, frame, slot))
        .getResult(0);
  bool narrow =
      value.getType().isF32() && value.getDefiningOp()->hasAttr(sumAttr);
  if (!narrow)
    return loadSlot(b, value.getType(), frame, slot);
  Value wide = loadSlot(b, b.getF64Type(), frame, slot);
  return arith::TruncFOp::create(b, value.getType(), wide);
}

Value fromFrameBits(ImplicitLocOpBuilder &b, Type type, Value bits,
                    bool isSum) {
  if (type.isInteger(64))
    return bits;
  if (type.isF64() || (isSum && type.isF32())) {
    Value wide = arith::BitcastOp::create(b, b.getF64Type(), bits);
    return type.isF64() ? wide : Value(arith::TruncFOp::create(b, type, wide));
  }
  if (type.isInteger(1)) {
    Value byte = arith::TruncIOp::create(b, b.getI8Type(), bits);
    return arith::TruncIOp::create(b, type, byte);
  }
  Value narrow = arith::TruncIOp::create(b, b.getI32Type(), bits);
  return type.isF32() ? Value(arith::BitcastOp::create(b, type, narrow))
                      : narrow;
}

} // namespace costate::conversion
