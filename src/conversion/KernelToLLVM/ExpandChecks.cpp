#include "base/Message.h"
#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Source.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_EXPANDCHECKS
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// Opens a branch for `condition`; the builder then stands in it.
void enterIf(ImplicitLocOpBuilder &builder, Value condition) {
  auto branch = scf::IfOp::create(builder, condition, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
}

void checkStep(Runtime &runtime, ir::TripCountOp op) {
  if (op.cannotFail())
    return;
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  Value zero = constant(builder, 0);
  Value bad = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                    op.getStep(), zero);
  enterIf(builder, bad);
  runtime.callStepZero(builder, workerOf(op));
}

void checkIndices(Runtime &runtime, Operation *op, Value array,
                  ValueRange indices) {
  ArrayView view(array);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    ImplicitLocOpBuilder builder(op->getLoc(), op);
    Value extent = view.extents[dim];
    Value bad = arith::CmpIOp::create(builder, arith::CmpIPredicate::uge, index,
                                      extent);
    enterIf(builder, bad);
    runtime.callIndexError(builder, workerOf(op), view.parameter, dim, index,
                           extent);
  }
}

/// A private array has no number.
void checkLocal(Runtime &runtime, Operation *op, Value local, Value index) {
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  Value size =
      constant(builder, cast<ir::LocalType>(local.getType()).getSize());
  Value bad =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::uge, index, size);
  enterIf(builder, bad);
  runtime.callIndexError(builder, workerOf(op), /*parameter=*/-1, /*dim=*/0,
                         index, size);
}

std::optional<ElementUse> watchedUse(Operation *op) {
  using Use = std::optional<ElementUse>;
  auto name = op->getAttrOfType<StringAttr>(ir::watchedAttr);
  if (!name)
    return std::nullopt;
  return llvm::StringSwitch<Use>(name.getValue())
      .Case("load", ElementUse::Load)
      .Case("store", ElementUse::Store)
      .Case("update", ElementUse::Update)
      .Case("shared_store", ElementUse::SharedStore)
      .Case("minimum", ElementUse::Minimum)
      .Case("maximum", ElementUse::Maximum)
      .Case("bits", ElementUse::CombineBits)
      .Case("exchange", ElementUse::Exchange)
      .Default(std::nullopt);
}

void reportUse(Runtime &runtime, Operation *op, Value array,
               ValueRange indices) {
  std::optional<ElementUse> use = watchedUse(op);
  if (!use)
    return;
  ArrayView view(array);
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  Value element = rowMajor(builder, indices, view.extents);
  auto stored = op->getAttrOfType<IntegerAttr>(ir::storedValueAttr);
  runtime.callUse(builder, workerOf(op), view.parameter, element, *use,
                  stored ? stored.getInt() : 0);
}

/// llvm.is.fpclass: NaN, -inf, +inf.
constexpr uint32_t notFinite = 0x1 | 0x2 | 0x4 | 0x200;
constexpr uint32_t finite = 0x3ff & ~notFinite;

Value isOfClass(ImplicitLocOpBuilder &builder, Value value, uint32_t classes) {
  return LLVM::IsFPClass::create(builder, builder.getI1Type(), value, classes);
}

Value widened(ImplicitLocOpBuilder &builder, Value value) {
  if (value.getType().isF64())
    return value;
  return arith::ExtFOp::create(builder, builder.getF64Type(), value);
}

void expandFinite(Runtime &runtime, ir::CheckFiniteOp check) {
  ImplicitLocOpBuilder builder(check.getLoc(), check);
  enterIf(builder, isOfClass(builder, check.getValue(), notFinite));
  if (check.getCondition())
    enterIf(builder, check.getCondition());
  SmallVector<Value> numbers;
  for (Value operand : check.getOperandValues()) {
    enterIf(builder, isOfClass(builder, operand, finite));
    numbers.push_back(widened(builder, operand));
  }
  numbers.push_back(widened(builder, check.getValue()));
  runtime.callNotFinite(builder, workerOf(check), check.getText(), numbers);
  check.erase();
}

/// On a device the element is looked at in place.
void expandSum(Runtime &runtime, ir::CheckElementOp check,
               ImplicitLocOpBuilder &builder, int64_t parameter, Value element,
               Value added) {
  Value sum = ir::LoadOp::create(builder, check.getValue().getType(),
                                 check.getArray(), check.getIndices());
  enterIf(builder, isOfClass(builder, sum, notFinite));
  runtime.callSumNotFinite(builder, workerOf(check), check.getText(), parameter,
                           element, {added, widened(builder, sum)});
}

void expandElement(Runtime &runtime, ir::CheckElementOp check) {
  ImplicitLocOpBuilder builder(check.getLoc(), check);
  ArrayView view(check.getArray());
  ir::ArrayType array = check.getArray().getType();
  Value worker = workerOf(check), value = check.getValue();
  enterIf(builder,
          isOfClass(builder, value, check.getAdded() ? finite : notFinite));
  if (check.getCondition())
    enterIf(builder, check.getCondition());
  Value element = rowMajor(builder, check.getIndices(), view.extents);
  Value number = widened(builder, value);
  if (check.getAdded() &&
      check->getParentOfType<ModuleOp>()->hasAttr(deviceAttr))
    expandSum(runtime, check, builder, view.parameter, element, number);
  else if (check.getAdded())
    runtime.callCheckSum(builder, worker, check.getText(), view.parameter,
                         element, number, nameOf(array.getElementType()));
  else
    runtime.callElementNotFinite(builder, worker, check.getText(),
                                 view.parameter, element, number);
  check.erase();
}

/// As 64 bits: floats as f64.
Value wordOf(ImplicitLocOpBuilder &builder, Value value, char kind) {
  Type i64 = builder.getI64Type();
  if (isa<FloatType>(value.getType()))
    return arith::BitcastOp::create(builder, i64, widened(builder, value));
  if (value.getType() == i64)
    return value;
  if (kind == 'i')
    return arith::ExtSIOp::create(builder, i64, value);
  return arith::ExtUIOp::create(builder, i64, value);
}

SmallVector<Value> wordsOf(ImplicitLocOpBuilder &builder, StringRef text,
                           ValueRange values) {
  SmallVector<Value> words;
  filled(text, [&](char kind, std::string_view) {
    for (int k = kind == elementKind ? 2 : 1; k > 0; --k)
      words.push_back(wordOf(builder, values[words.size()], kind));
    return "";
  });
  return words;
}

/// The sites of the places that the text of `op` names.
SmallVector<Value> sitesOf(Runtime &runtime, ImplicitLocOpBuilder &builder,
                           ir::AssertOp op) {
  SmallVector<Value> sites;
  if (auto places = op->getAttrOfType<ArrayAttr>(ir::placesAttr))
    for (auto place : places.getAsRange<FileLineColLoc>())
      if (sites.size() < mostAsserted)
        sites.push_back(arith::ConstantOp::create(
            builder, builder.getI64IntegerAttr(runtime.site(place))));
  return sites;
}

void expandAssert(Runtime &runtime, ir::AssertOp op, bool isChecked) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  if (isChecked || op.getRefuses()) {
    Value yes = arith::ConstantOp::create(builder, builder.getBoolAttr(true));
    enterIf(builder, arith::XOrIOp::create(builder, op.getCondition(), yes));
    SmallVector<Value> words =
        op.getValues().empty() ? sitesOf(runtime, builder, op)
                               : wordsOf(builder, op.getText(), op.getValues());
    runtime.callAssertFailed(builder, workerOf(op), op.getText(), words,
                             op.getRefuses());
  }
  op.erase();
}

void expandPrint(Runtime &runtime, ir::PrintOp op) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  runtime.callPrint(builder, workerOf(op), op.getText(),
                    wordsOf(builder, op.getText(), op.getValues()));
  op.erase();
}

struct ExpandChecks : impl::ExpandChecksBase<ExpandChecks> {
  using ExpandChecksBase::ExpandChecksBase;

  void runOnOperation() override {
    Runtime runtime(getOperation());
    getOperation()->walk([&](ir::TripCountOp op) { checkStep(runtime, op); });
    getOperation()->walk(
        [&](ir::CheckFiniteOp op) { expandFinite(runtime, op); });
    getOperation()->walk(
        [&](ir::CheckElementOp op) { expandElement(runtime, op); });
    getOperation()->walk(
        [&](ir::AssertOp op) { expandAssert(runtime, op, indexChecks); });
    getOperation()->walk([&](ir::PrintOp op) { expandPrint(runtime, op); });
    getOperation()->walk([&](ir::ElementAccess op) {
      checkAccess(runtime, op, op.getArray(), op.getIndices());
    });
    if (indexChecks)
      checkLocals(runtime);
  }

  void checkLocals(Runtime &runtime) {
    getOperation()->walk([&](ir::LocalLoadOp op) {
      checkLocal(runtime, op, op.getLocal(), op.getIndex());
    });
    getOperation()->walk([&](ir::LocalStoreOp op) {
      checkLocal(runtime, op, op.getLocal(), op.getIndex());
    });
  }

  void checkAccess(Runtime &runtime, Operation *op, Value array,
                   ValueRange indices) {
    if (indexChecks)
      checkIndices(runtime, op, array, indices);
    reportUse(runtime, op, array, indices);
  }
};

} // namespace
} // namespace costate::conversion
