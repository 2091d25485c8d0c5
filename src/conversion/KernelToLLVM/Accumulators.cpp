#include "conversion/KernelToLLVM/Accumulators.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace costate::conversion {

std::optional<Update> updateOf(Operation *op) {
  if (auto add = dyn_cast<ir::AtomicAddOp>(op))
    return add.getExclusive() ? std::nullopt : std::optional(Update::Add);
  if (auto least = dyn_cast<ir::AtomicMinOp>(op))
    return least.getExclusive() ? std::nullopt : std::optional(Update::Min);
  if (auto most = dyn_cast<ir::AtomicMaxOp>(op))
    return most.getExclusive() ? std::nullopt : std::optional(Update::Max);
  auto fetch = dyn_cast<ir::AtomicFetchOp>(op);
  if (!fetch || !fetch->use_empty())
    return std::nullopt;
  return llvm::StringSwitch<std::optional<Update>>(fetch.getKind())
      .Case("add", Update::Add)
      .Case("min", Update::Min)
      .Case("max", Update::Max)
      .Case("and", Update::And)
      .Case("or", Update::Or)
      .Case("xor", Update::Xor)
      .Default(std::nullopt);
}

static std::optional<size_t> numberOf(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>(accumulatorAttr);
  return number ? std::optional<size_t>(number.getInt()) : std::nullopt;
}

static Type elementOf(Value array) {
  return cast<ir::ArrayType>(array.getType()).getElementType();
}

Accumulators::Accumulators(Region &range) {
  range.walk([&](Operation *op) {
    std::optional<size_t> number = numberOf(op);
    if (!number)
      return;
    auto access = cast<ir::ElementAccess>(op);
    Value array = access.getArray();
    elements.resize(std::max(elements.size(), *number + 1));
    elements[*number] = {*updateOf(op), array, access.getIndices(),
                         cast<ir::ArrayType>(array.getType()).getValueType(),
                         elementOf(array).isUnsignedInteger()};
  });
}

/// What changes nothing.
Value Accumulators::neutral(ImplicitLocOpBuilder &b,
                            const Element &element) const {
  using llvm::APInt;
  unsigned width = element.type.getIntOrFloatBitWidth();
  auto value = [&] {
    switch (element.update) {
    case Update::Min:
      return element.isUnsigned ? APInt::getMaxValue(width)
                                : APInt::getSignedMaxValue(width);
    case Update::Max:
      return element.isUnsigned ? APInt::getMinValue(width)
                                : APInt::getSignedMinValue(width);
    case Update::And:
      return APInt::getAllOnes(width);
    default:
      return APInt::getZero(width);
    }
  };
  return arith::ConstantOp::create(b, b.getIntegerAttr(element.type, value()));
}

static Value combined(ImplicitLocOpBuilder &b, Update update, bool isUnsigned,
                      Value x, Value y) {
  switch (update) {
  case Update::Add:
    return arith::AddIOp::create(b, x, y);
  case Update::Min:
    return isUnsigned ? arith::MinUIOp::create(b, x, y).getResult()
                      : arith::MinSIOp::create(b, x, y).getResult();
  case Update::Max:
    return isUnsigned ? arith::MaxUIOp::create(b, x, y).getResult()
                      : arith::MaxSIOp::create(b, x, y).getResult();
  case Update::And:
    return arith::AndIOp::create(b, x, y);
  case Update::Or:
    return arith::OrIOp::create(b, x, y);
  case Update::Xor:
    return arith::XOrIOp::create(b, x, y);
  }
}

void Accumulators::redirect(ImplicitLocOpBuilder &b, Region &range) {
  places.clear();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  for (const Element &element : elements) {
    places.push_back(
        LLVM::AllocaOp::create(b, pointer, element.type, constant(b, 1), 8));
    LLVM::StoreOp::create(b, neutral(b, element), places.back());
  }
  SmallVector<Operation *> updates;
  range.walk([&](Operation *op) {
    if (numberOf(op))
      updates.push_back(op);
  });
  for (Operation *op : updates) {
    const Element &element = elements[*numberOf(op)];
    ImplicitLocOpBuilder here(op->getLoc(), op);
    Value place = places[*numberOf(op)], value = op->getOperand(0);
    if (Type type = elementOf(element.array); ir::isNarrow(type))
      value = ir::NarrowOp::create(here, value, TypeAttr::get(type));
    Value old = LLVM::LoadOp::create(here, element.type, place);
    Value next = combined(here, element.update, element.isUnsigned, old, value);
    LLVM::StoreOp::create(here, next, place);
    op->erase();
  }
}

static StringRef nameOf(Update update) {
  switch (update) {
  case Update::And:
    return "and";
  case Update::Or:
    return "or";
  default:
    return "xor";
  }
}

static void updateMemory(ImplicitLocOpBuilder &b, Update update, Value value,
                         Value array, ValueRange indices) {
  switch (update) {
  case Update::Add:
    ir::AtomicAddOp::create(b, value, array, indices, /*exclusive=*/false);
    return;
  case Update::Min:
    ir::AtomicMinOp::create(b, value, array, indices, /*exclusive=*/false);
    return;
  case Update::Max:
    ir::AtomicMaxOp::create(b, value, array, indices, /*exclusive=*/false);
    return;
  default:
    ir::AtomicFetchOp::create(b, value.getType(), nameOf(update), value, array,
                              indices);
  }
}

void Accumulators::flush(ImplicitLocOpBuilder &b, const IRMapping &values) {
  for (auto [element, place] : llvm::zip_equal(elements, places)) {
    Value value = LLVM::LoadOp::create(b, element.type, place);
    Value isAny = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value,
                                        neutral(b, element));
    auto branch = scf::IfOp::create(b, isAny);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Values indices;
    for (Value index : element.indices)
      indices.push_back(values.lookupOrDefault(index));
    updateMemory(b, element.update, value,
                 values.lookupOrDefault(element.array), indices);
  }
}

} // namespace costate::conversion
