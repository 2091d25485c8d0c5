/// Loads, stores and updates of elements by all lanes at once.

#include "conversion/Lanes/LaneBody.h"

#include "conversion/KernelToLLVM/Patterns.h"
#include "conversion/KernelToLLVM/Runtime.h"

using namespace mlir;

namespace costate::conversion {

bool isExclusive(Operation *op) {
  return isa<ir::AtomicAddOp, ir::AtomicMinOp, ir::AtomicMaxOp,
             ir::AtomicTakeOp>(op) &&
         op->hasAttr("exclusive");
}

static Type elementOf(Operation *op) {
  if (ir::isOfLocal(op))
    return cast<ir::LocalType>(ir::localOf(op).getType()).getElementType();
  return cast<ir::ArrayType>(cast<ir::ElementAccess>(op).getArray().getType())
      .getElementType();
}

static uint32_t alignmentOf(Type element) {
  return std::max(1u, memoryType(element).getIntOrFloatBitWidth() / 8);
}

/// The number of an element, row-major, of indices here; null counts as 0. What
/// all lanes share is computed once.
Value LaneBody::rowMajor(ArrayRef<Value> indices, ValueRange extents) {
  constexpr auto noWrap = LLVM::IntegerOverflowFlags::nsw;
  auto isWide = [](Value value) { return isa<VectorType>(value.getType()); };
  auto like = [&](Value value, Value form) {
    return isWide(form) && !isWide(value) ? b.splat(value) : value;
  };
  Value number;
  for (auto [index, extent] : llvm::zip_equal(indices, extents)) {
    if (number)
      number = LLVM::MulOp::create(b, number, like(extent, number), noWrap);
    if (number && index)
      number = LLVM::AddOp::create(b, like(number, index), like(index, number),
                                   noWrap);
    else if (index)
      number = index;
  }
  return number;
}

/// Of the first lane, or of all lanes.
Value LaneBody::linear(ValueRange indices, ValueRange extents,
                       bool ofAllLanes) {
  auto here = llvm::map_to_vector(indices, [&](Value index) {
    return ofAllLanes && !isUniform(index) ? vector(index) : scalar(index);
  });
  return rowMajor(here, extents);
}

LanePlaces LaneBody::neighbours(Type element, Value base, Value first) {
  Type memory = memoryType(element);
  if (!first)
    return {element, base, nullptr};
  // A first lane that is not active may have no element.
  Value place =
      LLVM::GEPOp::create(b, base.getType(), memory, base, ValueRange(first));
  return {element, place, nullptr};
}

LanePlaces LaneBody::scattered(Type element, Value base, Value numbers) {
  Type pointers = b.vectorOf(base.getType());
  return {element, nullptr,
          LLVM::GEPOp::create(b, pointers, memoryType(element), base,
                              ValueRange(numbers))};
}

LanePlaces LaneBody::places(Operation *op) {
  if (ir::isOfLocal(op))
    return localPlaces(op);
  auto access = cast<ir::ElementAccess>(op);
  ArrayView array(access.getArray());
  ValueRange indices = access.getIndices();
  Type element = elementOf(op);
  if (shapes.areNeighbours(indices))
    return neighbours(element, array.base,
                      linear(indices, array.extents, /*ofAllLanes=*/false));
  if (shapes.areShared(indices)) {
    Value number = indices.empty()
                       ? b.number(b.getI64Type(), 0)
                       : linear(indices, array.extents, /*ofAllLanes=*/false);
    return scattered(element, array.base, b.splat(number));
  }
  return scattered(element, array.base,
                   linear(indices, array.extents, /*ofAllLanes=*/true));
}

/// Element k of lane l stands at k * lanes + l.
LanePlaces LaneBody::localPlaces(Operation *op) {
  Value index = op->getOperand(op->getNumOperands() - 1);
  Value base = vectors.lookup(ir::localOf(op));
  Type element = elementOf(op), i64 = b.getI64Type();
  if (isUniform(index)) {
    Value first =
        arith::MulIOp::create(b, scalar(index), b.number(i64, b.lanes));
    return neighbours(element, base, first);
  }
  Value rows =
      arith::MulIOp::create(b, vector(index), b.splat(b.number(i64, b.lanes)));
  return scattered(element, base,
                   arith::AddIOp::create(b, rows, b.laneNumbers(i64)));
}

Value LaneBody::load(const LanePlaces &places) {
  Type type = b.vectorOf(memoryType(places.element));
  uint32_t alignment = alignmentOf(places.element);
  if (!active && places.first)
    return widened(b, places.element,
                   LLVM::LoadOp::create(b, type, places.first, alignment));
  if (places.each && takesEach())
    return widened(b, places.element, loadEach(places));
  Value all = b.orAll(active);
  Value none = b.zero(type);
  Value inMemory =
      places.each ? LLVM::masked_gather::create(b, type, places.each, all,
                                                ValueRange(none), alignment)
                        .getResult()
                  : LLVM::MaskedLoadOp::create(b, type, places.first, all, none,
                                               alignment)
                        .getResult();
  return widened(b, places.element, inMemory);
}

/// Gathers of many processors take longer than loads one by one, and are
/// shorter code.
bool LaneBody::takesEach() {
  constexpr unsigned mostLoads = 1024;
  if (isRare || loads + b.lanes > mostLoads)
    return false;
  loads += b.lanes;
  return true;
}

/// One load after the other.
Value LaneBody::loadEach(Type element,
                         function_ref<Value(unsigned lane)> placeOf) {
  Type type = memoryType(element);
  uint32_t alignment = alignmentOf(element);
  Value values = LLVM::PoisonOp::create(b, b.vectorOf(type));
  for (unsigned lane = 0; lane < b.lanes; ++lane) {
    Value value = LLVM::LoadOp::create(b, type, placeOf(lane), alignment);
    values = b.insert(values, value, b.number(b.getI64Type(), lane));
  }
  return values;
}

/// Lanes that are not active load from the stack.
Value LaneBody::loadEach(const LanePlaces &places) {
  Value each = places.each;
  if (active)
    each = b.select(active, each, b.splat(anywhere()));
  return loadEach(places.element, [&](unsigned lane) {
    return b.extract(each, b.number(b.getI64Type(), lane));
  });
}

/// Loops that are being made have no parents yet.
static bool isInside(Block *block, Block *outer) {
  Operation *parent = block->getParentOp();
  return block == outer || (parent && outer->findAncestorOpInBlock(*parent));
}

/// Lanes that are not active load what the first active one does: there is one.
ValueRange LaneBody::numbersOf(ir::LoadOp load, unsigned group) {
  Numbers &known = numbers[group];
  Block *here = b.getInsertionBlock();
  if (known.block && known.mask == active && isInside(here, known.block))
    return known.each;
  Type i64 = b.getI64Type();
  SmallVector<Value> varying;
  for (const SplitIndex &index : nearby.indicesOf(load))
    varying.push_back(index.varying ? vector(index.varying) : Value());
  Value all = rowMajor(varying, ArrayView(load.getArray()).extents);
  if (active) {
    Value first = LLVM::CountTrailingZerosOp::create(b, i64, b.bitsOf(active),
                                                     /*is_zero_poison=*/true);
    all = b.select(active, all, b.splat(b.extract(all, first)));
  }
  known = {here, active, {}};
  for (unsigned lane = 0; lane < b.lanes; ++lane)
    known.each.push_back(b.extract(all, b.number(i64, lane)));
  return known.each;
}

/// The distance is added to the address of the array.
void LaneBody::emitNearby(ir::LoadOp load, unsigned group) {
  ArrayView array(load.getArray());
  Type element = elementOf(load), memory = memoryType(element);
  ValueRange each = numbersOf(load, group);
  SmallVector<Value> shared;
  for (const SplitIndex &index : nearby.indicesOf(load)) {
    Value &sum = shared.emplace_back();
    for (Value term : index.shared) {
      Value here = scalar(term);
      sum = sum ? arith::AddIOp::create(b, sum, here).getResult() : here;
    }
  }
  Value base = array.base;
  if (Value distance = rowMajor(shared, array.extents))
    base = LLVM::GEPOp::create(b, base.getType(), memory, base,
                               ValueRange(distance));
  Value values = loadEach(element, [&](unsigned lane) {
    return LLVM::GEPOp::create(b, base.getType(), memory, base,
                               ValueRange(each[lane]));
  });
  vectors[load] = widened(b, element, values);
}

/// The place of an element that nobody reads.
Value LaneBody::anywhere() {
  if (!unread) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getFunctionBody().front());
    unread = LLVM::AllocaOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(),
        b.number(b.getI64Type(), 1), /*alignment=*/8);
    LLVM::StoreOp::create(b, b.number(b.getI64Type(), 0), unread);
  }
  return unread;
}

void LaneBody::store(const LanePlaces &places, Value value) {
  uint32_t alignment = alignmentOf(places.element);
  Value all = b.orAll(active);
  Value inMemory = narrowed(b, places.element, value);
  if (!active && places.first)
    LLVM::StoreOp::create(b, inMemory, places.first, alignment);
  else if (places.each)
    LLVM::masked_scatter::create(b, inMemory, places.each, all, alignment);
  else
    LLVM::MaskedStoreOp::create(b, inMemory, places.first, all, alignment);
}

void LaneBody::emitLoad(Operation *op) {
  const unsigned *group = nearby.groupOf(op);
  if (group && takesEach())
    return emitNearby(cast<ir::LoadOp>(op), *group);
  vectors[op->getResult(0)] = load(places(op));
}

void LaneBody::emitStore(Operation *op) {
  Value value = vector(op->getOperand(0));
  store(places(op), value);
}

/// What changes no element.
static Value negativeZeros(LaneBuilder &b, Type type) {
  Type element = cast<VectorType>(type).getElementType();
  auto zeros = DenseElementsAttr::get(cast<VectorType>(type),
                                      b.getFloatAttr(element, -0.0));
  return arith::ConstantOp::create(b, zeros);
}

static Value inMemory(LaneBuilder &b, Type element, Value value) {
  return widened(b, element, narrowed(b, element, value));
}

Value LaneBody::addend(Operation *op) {
  Type element = elementOf(op);
  Value value = inMemory(b, element, vector(op->getOperand(0)));
  return adding && isa<FloatType>(element)
             ? b.select(adding, value, negativeZeros(b, value.getType()))
             : value;
}

Value LaneBody::added(Value old, Value value) {
  return isa<FloatType>(getElementTypeOrSelf(old.getType()))
             ? arith::AddFOp::create(b, old, value).getResult()
             : arith::AddIOp::create(b, old, value).getResult();
}

/// The element is a lane's own, so nobody comes between.
void LaneBody::emitExclusive(Operation *op) {
  LanePlaces places = this->places(op);
  Value old = load(places);
  if (isa<ir::AtomicTakeOp>(op)) {
    vectors[op->getResult(0)] = old;
    return store(places, b.zero(old.getType()));
  }
  if (isa<ir::AtomicAddOp>(op))
    return store(places, added(old, addend(op)));
  Value value = inMemory(b, places.element, vector(op->getOperand(0)));
  Before before{isa<ir::AtomicMaxOp>(op), places.element.isUnsignedInteger()};
  Value isBefore = before(b, value, old);
  store(places, arith::SelectOp::create(b, isBefore, value, old));
}

bool addsLanesUp(Operation *op, const Shapes &shapes) {
  auto add = dyn_cast<ir::AtomicAddOp>(op);
  return add && !add.getExclusive() && !ir::isNarrow(elementOf(op)) &&
         shapes.areShared(add.getIndices());
}

/// An addition of all lanes to one element becomes one of their sum.
bool LaneBody::emitSharedAdd(Operation *op) {
  if (!addsLanesUp(op, shapes))
    return false;
  auto add = cast<ir::AtomicAddOp>(op);
  Value value = vector(add.getValue());
  Value none = b.zero(value.getType());
  Value sum = b.sum(b.select(active, value, none));
  Values indices;
  for (Value index : add.getIndices())
    indices.push_back(scalar(index));
  auto one = ir::AtomicAddOp::create(b, sum, add.getArray(), indices,
                                     /*exclusive=*/false);
  one->setDiscardableAttrs(add->getDiscardableAttrDictionary());
  return true;
}

void LaneBody::clear(Value memory, ir::LocalType type) {
  Value zero = LLVM::ConstantOp::create(b, b.getI8Type(), 0);
  Value bytes = b.number(b.getI64Type(), type.bytes() * b.lanes);
  LLVM::MemsetOp::create(b, memory, zero, bytes, /*isVolatile=*/false);
}

/// Lanes that are not active have none, so all may be cleared.
void LaneBody::emitLocal(ir::LocalOp op) {
  Value memory;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getFunctionBody().front());
    int64_t elements = op.getType().getSize() * b.lanes;
    memory = LLVM::AllocaOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext()),
        memoryType(op.getType().getElementType()),
        b.number(b.getI64Type(), elements), /*alignment=*/64);
  }
  clear(memory, op.getType());
  vectors[op] = memory;
}

void LaneBody::emitClear(ir::LocalClearOp op) {
  ir::LocalType type = op.getLocal().getType();
  Value memory = vectors.lookup(op.getLocal());
  if (!active)
    return clear(memory, type);
  Type i64 = b.getI64Type();
  auto loop = scf::ForOp::create(
      b, b.number(i64, 0), b.number(i64, type.getSize()), b.number(i64, 1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first =
      arith::MulIOp::create(b, loop.getInductionVar(), b.number(i64, b.lanes));
  LanePlaces places = neighbours(type.getElementType(), memory, first);
  Type memoryElement = memoryType(type.getElementType());
  LLVM::MaskedStoreOp::create(b, b.zero(b.vectorOf(memoryElement)),
                              places.first, active,
                              alignmentOf(type.getElementType()));
}

} // namespace costate::conversion
