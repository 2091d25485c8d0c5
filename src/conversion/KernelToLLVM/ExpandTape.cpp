#include "conversion/KernelToLLVM/Record.h"
#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Tape.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_EXPANDTAPE
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// Emits the tape operations of one place.
class TapeBuilder {
public:
  TapeBuilder(Operation *op, TypeRange types)
      : builder(op->getLoc(), op), lanes(lanesOf(op)),
        record(types, /*words=*/lanes > 1), worker(workerOf(op)),
        pointer(LLVM::LLVMPointerType::get(op->getContext())) {
    auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
    onDevice = function->hasAttr(lanesAttr);
    measures = function->hasAttr(measuresAttr);
    if (lanes > 1)
      lane = LLVM::LoadOp::create(builder, builder.getI64Type(),
                                  advance(worker, 8 * laneSlot));
  }

  void push(Runtime &runtime, ValueRange values) {
    Value top = onDevice ? LLVM::LoadOp::create(builder, pointer, worker)
                         : makeRoom(runtime);
    if (!measures)
      store(top, values);
    LLVM::StoreOp::create(builder, advance(top, bytes()), worker);
  }

  SmallVector<Value> pop(TypeRange types) {
    Value end = LLVM::LoadOp::create(builder, pointer, worker);
    Value top = advance(end, -bytes());
    SmallVector<Value> bits, values;
    for (int64_t byte = 0; byte < record.bitBytes; ++byte)
      bits.push_back(LLVM::LoadOp::create(
          builder, builder.getI8Type(),
          address(top, record.firstBit + byte * record.bitStep), 1));
    for (auto [type, field] : llvm::zip_equal(types, record.fields)) {
      if (field.isBit)
        values.push_back(bit(bits[field.offset / 8], field.offset % 8));
      else
        values.push_back(LLVM::LoadOp::create(
            builder, type, address(top, field.offset), alignment(field.size)));
    }
    LLVM::StoreOp::create(builder, top, worker);
    return values;
  }

private:
  static int64_t lanesOf(Operation *op) {
    auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
    auto count = function->getAttrOfType<IntegerAttr>(lanesAttr);
    return count ? count.getInt() : 1;
  }

  int64_t bytes() const { return record.size() * lanes; }

  Value advance(Value base, int64_t distance) {
    return LLVM::GEPOp::create(builder, pointer, builder.getI8Type(), base,
                               LLVM::GEPArg(distance));
  }

  void store(Value top, ValueRange values) {
    for (auto [value, field] : llvm::zip_equal(values, record.fields))
      if (!field.isBit)
        LLVM::StoreOp::create(builder, value, address(top, field.offset),
                              alignment(field.size));
    for (int64_t byte = 0; byte < record.bitBytes; ++byte)
      LLVM::StoreOp::create(
          builder, packed(values, byte),
          address(top, record.firstBit + byte * record.bitStep), 1);
  }

  /// Where a field stands. A worker of a CPU is always in lane 0.
  Value address(Value top, int64_t offset) {
    Value row = offset == 0 ? top : advance(top, offset * lanes);
    if (!lane)
      return row;
    Value distance = arith::MulIOp::create(builder, lane, constant(builder, 8));
    return LLVM::GEPOp::create(builder, pointer, builder.getI8Type(), row,
                               ArrayRef<LLVM::GEPArg>(distance));
  }

  /// Records without gaps are aligned only where lanes are interleaved.
  unsigned alignment(int64_t size) const {
    return lanes > 1 ? static_cast<unsigned>(size) : 1;
  }

  /// The top of the tape, with room for the record.
  Value makeRoom(Runtime &runtime) {
    Value top = LLVM::LoadOp::create(builder, pointer, worker);
    Value end = LLVM::LoadOp::create(builder, pointer,
                                     advance(worker, 8 * tapeEndSlot));
    Value from = LLVM::PtrToIntOp::create(builder, builder.getI64Type(), top);
    Value to = LLVM::PtrToIntOp::create(builder, builder.getI64Type(), end);
    Value left = arith::SubIOp::create(builder, to, from);
    Value full = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, left,
                                       constant(builder, bytes()));
    auto branch = scf::IfOp::create(builder, pointer, full, true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    runtime.callTapeGrow(builder, worker, bytes());
    Value moved = LLVM::LoadOp::create(builder, pointer, worker);
    scf::YieldOp::create(builder, moved);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, top);
    return branch.getResult(0);
  }

  Value i8(int64_t value) {
    return arith::ConstantOp::create(
        builder, builder.getIntegerAttr(builder.getI8Type(), value));
  }

  Value packed(ValueRange values, int64_t byte) {
    Value all;
    for (auto [value, field] : llvm::zip_equal(values, record.fields)) {
      if (!field.isBit || field.offset / 8 != byte)
        continue;
      Value bits = arith::ExtUIOp::create(builder, builder.getI8Type(), value);
      if (field.offset % 8)
        bits = arith::ShLIOp::create(builder, bits, i8(field.offset % 8));
      all = all ? arith::OrIOp::create(builder, all, bits) : bits;
    }
    return all;
  }

  Value bit(Value byte, int64_t number) {
    Value mask = i8(int64_t(1) << number);
    Value masked = arith::AndIOp::create(builder, byte, mask);
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, masked,
                                 i8(0));
  }

  ImplicitLocOpBuilder builder;
  int64_t lanes;
  RecordLayout record;
  bool onDevice = false, measures = false;
  Value worker, lane;
  Type pointer;
};

struct ExpandTape : impl::ExpandTapeBase<ExpandTape> {
  using ExpandTapeBase::ExpandTapeBase;

  void runOnOperation() override {
    Runtime runtime(getOperation());
    getOperation()->walk([&](tape::PushOp push) {
      ValueRange values = push.getValues();
      if (!values.empty())
        TapeBuilder(push, values.getTypes()).push(runtime, values);
      push.erase();
    });
    getOperation()->walk([&](tape::PopOp pop) {
      if (pop.getNumResults())
        pop.replaceAllUsesWith(
            TapeBuilder(pop, pop.getResultTypes()).pop(pop.getResultTypes()));
      pop.erase();
    });
  }
};

} // namespace
} // namespace costate::conversion
