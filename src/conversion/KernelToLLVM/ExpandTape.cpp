#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Tape.h"
#include "sizing/Record.h"
#include "sizing/Rows.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_EXPANDTAPE
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// Whose tapes are interleaved.
int64_t lanesOf(Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  auto count = function->getAttrOfType<IntegerAttr>(lanesAttr);
  return count ? count.getInt() : 1;
}

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
        values.push_back(load(type, address(top, field.offset), field.size));
    }
    LLVM::StoreOp::create(builder, top, worker);
    return values;
  }

private:
  int64_t bytes() const {
    int64_t size = record.size();
    return lanes * (onDevice ? llvm::alignTo(size, 8) : size);
  }

  Value advance(Value base, int64_t distance) {
    return LLVM::GEPOp::create(builder, pointer, builder.getI8Type(), base,
                               LLVM::GEPArg(distance));
  }

  /// The integer that has the bools of all lanes as bits; null of other types.
  static IntegerType bitsOf(Type type) {
    auto lanes = dyn_cast<VectorType>(type);
    if (!lanes || !lanes.getElementType().isInteger(1))
      return nullptr;
    return IntegerType::get(type.getContext(),
                            static_cast<unsigned>(lanes.getNumElements()));
  }

  Value load(Type type, Value place, int64_t size) {
    IntegerType bits = bitsOf(type);
    if (!bits)
      return LLVM::LoadOp::create(builder, type, place, alignment(size));
    Type bytes = builder.getIntegerType(static_cast<unsigned>(8 * size));
    Value value = LLVM::LoadOp::create(builder, bytes, place, 1);
    if (bits != bytes)
      value = arith::TruncIOp::create(builder, bits, value);
    return LLVM::BitcastOp::create(builder, type, value);
  }

  Value inMemory(Value value, int64_t size) {
    IntegerType bits = bitsOf(value.getType());
    if (!bits)
      return value;
    value = LLVM::BitcastOp::create(builder, bits, value);
    Type bytes = builder.getIntegerType(static_cast<unsigned>(8 * size));
    return bits == bytes ? value
                         : arith::ExtUIOp::create(builder, bytes, value);
  }

  void store(Value top, ValueRange values) {
    for (auto [value, field] : llvm::zip_equal(values, record.fields))
      if (!field.isBit)
        LLVM::StoreOp::create(builder, inMemory(value, field.size),
                              address(top, field.offset),
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

  /// GPUs want values at multiples of their size.
  unsigned alignment(int64_t size) const {
    return onDevice ? static_cast<unsigned>(size) : 1;
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
  sizing::RecordLayout record;
  bool onDevice = false, measures = false;
  Value worker, lane;
  Type pointer;
};

/// Emits the operations on rows of a warp's tape.
class RowBuilder {
public:
  RowBuilder(Operation *op, Runtime &runtime)
      : b(op->getLoc(), op), runtime(runtime), worker(workerOf(op)),
        pointer(LLVM::LLVMPointerType::get(op->getContext())),
        rowBytes(4 * lanesOf(op)) {}

  void write(tape::WriteOp op) {
    sizing::RowLayout layout(op.getValues().getTypes());
    for (auto [value, field] : llvm::zip_equal(op.getValues(), layout.fields))
      if (field.bit < 0)
        LLVM::StoreOp::create(
            b, value,
            address(op.getRow(), field.row, bytesOf(value.getType())));
    for (int64_t row = layout.firstBits; row < layout.rows; ++row)
      LLVM::StoreOp::create(b, packed(op.getValues(), layout, row),
                            address(op.getRow(), row, 4));
  }

  void read(tape::ReadOp op) {
    sizing::RowLayout layout(op.getResultTypes());
    SmallVector<Value> words;
    for (int64_t row = layout.firstBits; row < layout.rows; ++row)
      words.push_back(LLVM::LoadOp::create(b, b.getI32Type(),
                                           address(op.getRow(), row, 4)));
    for (auto [value, field] : llvm::zip_equal(op.getValues(), layout.fields)) {
      Type type = value.getType();
      Value here =
          field.bit < 0
              ? LLVM::LoadOp::create(
                    b, type, address(op.getRow(), field.row, bytesOf(type)))
                    .getResult()
              : part(words[field.row - layout.firstBits], field.bit, type);
      value.replaceAllUsesWith(here);
    }
  }

  Value slotValue(int64_t number) {
    return LLVM::LoadOp::create(b, b.getI64Type(), advance(worker, 8 * number));
  }

  Value flagValue(int64_t number) { return isSet(slotValue(number)); }

  Value drains() { return isSet(runtime.callTape(b, "drains", true, worker)); }

  void report(tape::ReportOp op) {
    runtime.callTape(b, "report", false,
                     {worker, wide(op.getFits()), wide(op.getNeed()),
                      wide(op.getMinRows())});
  }

  void fence() { runtime.callTape(b, "fence", false, {}); }
  void ahead() { runtime.callTape(b, "ahead", false, {}); }

  Value call(StringRef name, ValueRange args) {
    return runtime.callTape(b, name, b.getI32Type(), args);
  }

  Value warpMax(Value value) {
    return narrow(runtime.callWarpMax(b, wide(value)));
  }

  Value narrow(Value value) {
    return arith::TruncIOp::create(b, b.getI32Type(), value);
  }

private:
  Value wide(Value value) {
    return arith::ExtUIOp::create(b, b.getI64Type(), value);
  }

  static int64_t bytesOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }

  Value advance(Value base, int64_t distance) {
    return LLVM::GEPOp::create(b, pointer, b.getI8Type(), base,
                               LLVM::GEPArg(distance));
  }

  Value isSet(Value flag) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, flag,
                                 constant(b, 0));
  }

  /// The row that `row` is some rows away from.
  static std::pair<Value, int64_t> origin(Value row) {
    int64_t distance = 0;
    APInt rows;
    while (Operation *op = row.getDefiningOp()) {
      bool back = isa<arith::SubIOp>(op);
      if (!(back || isa<arith::AddIOp>(op)) ||
          !matchPattern(op->getOperand(1), m_ConstantInt(&rows)))
        break;
      distance += back ? -rows.getSExtValue() : rows.getSExtValue();
      row = op->getOperand(0);
    }
    return {row, distance};
  }

  /// What does not change in a loop comes first.
  Value address(Value row, int64_t offset, int64_t size) {
    auto [from, distance] = origin(row);
    Value base =
        LLVM::LoadOp::create(b, pointer, advance(worker, 8 * tapeBaseSlot));
    Value lane = slotValue(laneSlot);
    Value across = arith::MulIOp::create(b, lane, constant(b, size));
    Value column = LLVM::GEPOp::create(b, pointer, b.getI8Type(), base,
                                       ArrayRef<LLVM::GEPArg>(across));
    Type rowType = LLVM::LLVMArrayType::get(b.getI8Type(), rowBytes);
    Value down = wide(from);
    Value place = LLVM::GEPOp::create(b, pointer, rowType, column,
                                      ArrayRef<LLVM::GEPArg>(down));
    offset += distance;
    return offset ? advance(place, offset * rowBytes) : place;
  }

  Value i32(int64_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }

  Value packed(ValueRange values, const sizing::RowLayout &layout,
               int64_t row) {
    Value all;
    for (auto [value, field] : llvm::zip_equal(values, layout.fields)) {
      if (field.bit < 0 || field.row != row)
        continue;
      Value bits = arith::ExtUIOp::create(b, b.getI32Type(), value);
      if (field.bit)
        bits = arith::ShLIOp::create(b, bits, i32(field.bit));
      all = all ? arith::OrIOp::create(b, all, bits).getResult() : bits;
    }
    return all;
  }

  Value part(Value word, int64_t bit, Type type) {
    Value shifted = arith::ShRUIOp::create(b, word, i32(bit));
    return arith::TruncIOp::create(b, type, shifted);
  }

  ImplicitLocOpBuilder b;
  Runtime &runtime;
  Value worker;
  Type pointer;
  const int64_t rowBytes; ///< a word of 4 bytes for each lane
};

void expandRows(Operation *op, Runtime &runtime) {
  if (!isa<tape::TapeDialect>(op->getDialect()) ||
      isa<tape::PushOp, tape::PopOp, tape::PivotOp, tape::BudgetOp>(op))
    return;
  if (isa<tape::ClaimOp>(op))
    return op->erase();
  RowBuilder b(op, runtime);
  auto replace = [&](Value value) {
    op->getResult(0).replaceAllUsesWith(value);
  };
  if (auto write = dyn_cast<tape::WriteOp>(op))
    b.write(write);
  else if (auto read = dyn_cast<tape::ReadOp>(op))
    b.read(read);
  else if (auto report = dyn_cast<tape::ReportOp>(op))
    b.report(report);
  else if (isa<tape::ActiveOp>(op))
    replace(b.flagValue(activeSlot));
  else if (isa<tape::LowMemoryOp>(op))
    replace(b.flagValue(lowMemorySlot));
  else if (isa<tape::SufficientOp>(op))
    replace(b.flagValue(sufficientSlot));
  else if (isa<tape::DrainsOp>(op))
    replace(b.drains());
  else if (isa<tape::FenceOp>(op))
    b.fence();
  else if (isa<tape::AheadOp>(op))
    b.ahead();
  else if (isa<tape::RowsOp>(op))
    replace(b.narrow(b.slotValue(rowsSlot)));
  else if (auto max = dyn_cast<tape::WarpMaxOp>(op))
    replace(b.warpMax(max.getValue()));
  else if (isa<tape::KeptOp, tape::SegmentOp, tape::MinRowsOp>(op))
    replace(b.call(op->getName().stripDialect(), op->getOperands()));
  op->erase();
}

/// All lanes share the tape of a worker: where one has many segments and
/// another one a long rest, there are rows for both.
void expandBudget(tape::BudgetOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type pointer = LLVM::LLVMPointerType::get(op->getContext());
  Value slot = LLVM::GEPOp::create(b, pointer, b.getI8Type(), workerOf(op),
                                   LLVM::GEPArg(8 * budgetSlot));
  Value bytes = LLVM::LoadOp::create(b, b.getI64Type(), slot);
  int64_t lanes = static_cast<int64_t>(op.getLanes().value_or(1));
  int64_t parts = lanes > 1 ? 2 * lanes : 1;
  bytes = arith::DivSIOp::create(b, bytes, constant(b, parts));
  op.replaceAllUsesWith(bytes);
  op.erase();
}

struct ExpandTape : impl::ExpandTapeBase<ExpandTape> {
  using ExpandTapeBase::ExpandTapeBase;

  void runOnOperation() override {
    Runtime runtime(getOperation());
    getOperation()->walk([&](Operation *op) { expandRows(op, runtime); });
    getOperation()->walk([&](tape::PushOp push) {
      ValueRange values = push.getValues();
      if (!values.empty())
        TapeBuilder(push, values.getTypes()).push(runtime, values);
      push.erase();
    });
    getOperation()->walk(expandBudget);
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
