#include "conversion/KernelToDevice/Reductions.h"

using namespace mlir;

namespace costate::conversion {

static std::optional<size_t> numberOf(ir::AtomicAddOp add) {
  auto number = add->getAttrOfType<IntegerAttr>(reductionAttr);
  return number ? std::optional<size_t>(number.getInt()) : std::nullopt;
}

Reductions::Reductions(Region &range) {
  range.walk([&](ir::AtomicAddOp add) {
    std::optional<size_t> number = numberOf(add);
    if (!number)
      return;
    elements.resize(std::max(elements.size(), *number + 1));
    elements[*number] = {add.getArray(), add.getIndices(),
                         add.getValue().getType()};
  });
}

void Reductions::redirect(ImplicitLocOpBuilder &b, Region &range) {
  places.clear();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  for (const Element &element : elements)
    places.push_back(
        LLVM::AllocaOp::create(b, pointer, element.type, constant(b, 1), 8));
  SmallVector<ir::AtomicAddOp> adds;
  range.walk([&](ir::AtomicAddOp add) { adds.push_back(add); });
  for (ir::AtomicAddOp add : adds) {
    std::optional<size_t> number = numberOf(add);
    if (!number)
      continue;
    ImplicitLocOpBuilder here(add.getLoc(), add);
    Value place = places[*number], value = add.getValue();
    Value old = LLVM::LoadOp::create(here, value.getType(), place);
    Value sum = arith::AddFOp::create(here, old, value);
    LLVM::StoreOp::create(here, sum, place);
    add.erase();
  }
}

void Reductions::clear(ImplicitLocOpBuilder &b) {
  for (auto [element, place] : llvm::zip(elements, places)) {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element.type));
    LLVM::StoreOp::create(b, zero, place);
  }
}

Values Reductions::sums(ImplicitLocOpBuilder &b) {
  Values all;
  for (auto [element, place] : llvm::zip(elements, places))
    all.push_back(LLVM::LoadOp::create(b, element.type, place));
  return all;
}

void Reductions::add(ImplicitLocOpBuilder &b, const IRMapping &values,
                     ValueRange sums) {
  Value zero = arith::ConstantOp::create(b, b.getF64FloatAttr(0.0));
  for (auto [element, sum] : llvm::zip_equal(elements, sums)) {
    Value isAny =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum, zero);
    auto branch = scf::IfOp::create(b, isAny);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value value = element.type.isF64()
                      ? sum
                      : arith::TruncFOp::create(b, element.type, sum);
    Values indices;
    for (Value index : element.indices)
      indices.push_back(values.lookupOrDefault(index));
    ir::AtomicAddOp::create(b, value, values.lookupOrDefault(element.array),
                            indices, /*exclusive=*/false);
  }
}

} // namespace costate::conversion
