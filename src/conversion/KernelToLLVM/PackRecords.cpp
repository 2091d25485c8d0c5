#include "conversion/KernelToLLVM/Passes.h"
#include "ir/Tape.h"
#include "sizing/Narrow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_PACKRECORDS
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// On a tape numbers are bits.
Type bitsOf(Type stored) {
  return IntegerType::get(stored.getContext(), stored.getIntOrFloatBitWidth());
}

Value packed(ImplicitLocOpBuilder &b, Value value, Type stored) {
  if (stored == value.getType())
    return value;
  if (!stored.isF16())
    return arith::TruncIOp::create(b, bitsOf(stored), value);
  Value half = arith::TruncFOp::create(b, TypeRange(stored), ValueRange(value));
  return arith::BitcastOp::create(b, bitsOf(stored), half);
}

Value unpacked(ImplicitLocOpBuilder &b, Value bits, Type stored, Type type) {
  if (stored == type)
    return bits;
  if (stored.isF16()) {
    Value half = arith::BitcastOp::create(b, stored, bits);
    return arith::ExtFOp::create(b, TypeRange(type), ValueRange(half));
  }
  if (stored.isSignedInteger())
    return arith::ExtSIOp::create(b, type, bits);
  return arith::ExtUIOp::create(b, type, bits);
}

void pack(const tape::Record &record) {
  tape::PushOp push = record.push;
  tape::PopOp pop = record.pop;
  SmallVector<Type> stored = sizing::storedTypes(push.getValues());
  if (TypeRange(stored) == push.getValues().getTypes())
    return;
  ImplicitLocOpBuilder b(push.getLoc(), push);
  for (auto [operand, type] : llvm::zip(push->getOpOperands(), stored))
    operand.set(packed(b, operand.get(), type));
  ImplicitLocOpBuilder after(pop.getLoc(), pop);
  auto read = tape::PopOp::create(after, push.getValues().getTypes(),
                                  pop.getRecordAttr());
  for (auto [old, bits, type] :
       llvm::zip(pop.getValues(), read.getValues(), stored))
    old.replaceAllUsesWith(unpacked(after, bits, type, old.getType()));
  pop.erase();
}

struct PackRecords : impl::PackRecordsBase<PackRecords> {
  void runOnOperation() override {
    for (auto &[number, record] : tape::recordsOf(getOperation()))
      pack(record);
  }
};

} // namespace
} // namespace costate::conversion
