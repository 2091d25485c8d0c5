/// Loads, stores and atomic updates.

#include "conversion/KernelToLLVM/Outline.h"
#include "conversion/KernelToLLVM/Patterns.h"
#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Blocks.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;

namespace costate::conversion {

Type memoryType(Type element) {
  if (!element.isInteger())
    return element;
  unsigned width = element.getIntOrFloatBitWidth();
  return IntegerType::get(element.getContext(), width == 1 ? 8 : width);
}

Value constantOf(ImplicitLocOpBuilder &b, Type type, TypedAttr value) {
  if (auto lanes = dyn_cast<VectorType>(type))
    value = DenseElementsAttr::get(lanes, value);
  return LLVM::ConstantOp::create(b, type, value);
}

/// `element`, for each of the lanes of `like`.
static Type like(Type like, Type element) {
  auto lanes = dyn_cast<VectorType>(like);
  return lanes ? Type(lanes.clone(element)) : element;
}

Value widened(ImplicitLocOpBuilder &b, Type element, Value inMemory) {
  Type type = inMemory.getType();
  if (element.isInteger(1)) {
    Value zero = constantOf(b, type, b.getI8IntegerAttr(0));
    return LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, inMemory, zero);
  }
  if (!ir::isNarrow(element))
    return inMemory;
  if (element.isF16())
    return LLVM::FPExtOp::create(b, like(type, b.getF32Type()), inMemory);
  Type wide = like(type, b.getI32Type());
  if (element.isUnsignedInteger())
    return LLVM::ZExtOp::create(b, wide, inMemory);
  return LLVM::SExtOp::create(b, wide, inMemory);
}

Value narrowed(ImplicitLocOpBuilder &b, Type element, Value value) {
  Type inMemory = like(value.getType(), memoryType(element));
  if (element.isInteger(1))
    return LLVM::ZExtOp::create(b, inMemory, value);
  if (!ir::isNarrow(element))
    return value;
  if (element.isF16())
    return LLVM::FPTruncOp::create(b, inMemory, value);
  return LLVM::TruncOp::create(b, inMemory, value);
}

Value Before::floats(ImplicitLocOpBuilder &b, Value x, Value y) const {
  using F = LLVM::FCmpPredicate;
  Value isNumber = LLVM::FCmpOp::create(b, F::ord, x, x);
  Value beats = LLVM::FCmpOp::create(b, isMax ? F::ugt : F::ult, x, y);
  Value equal = LLVM::FCmpOp::create(b, F::oeq, x, y);
  unsigned width = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
  Type bits = like(x.getType(), b.getIntegerType(width));
  Value xBits = LLVM::BitcastOp::create(b, bits, x);
  Value yBits = LLVM::BitcastOp::create(b, bits, y);
  Value bySign = Before{isMax, false}.integers(b, xBits, yBits);
  Value tie = LLVM::AndOp::create(b, equal, bySign);
  Value either = LLVM::OrOp::create(b, beats, tie);
  return LLVM::AndOp::create(b, isNumber, either);
}

Value Before::integers(ImplicitLocOpBuilder &b, Value x, Value y) const {
  using I = LLVM::ICmpPredicate;
  I predicate =
      isMax ? (isUnsigned ? I::ugt : I::sgt) : (isUnsigned ? I::ult : I::slt);
  return LLVM::ICmpOp::create(b, predicate, x, y);
}

Value Before::operator()(ImplicitLocOpBuilder &b, Value x, Value y) const {
  return isa<FloatType>(getElementTypeOrSelf(x.getType())) ? floats(b, x, y)
                                                           : integers(b, x, y);
}

Value loadElement(ImplicitLocOpBuilder &builder, Type element, Value place) {
  Value inMemory = LLVM::LoadOp::create(builder, memoryType(element), place);
  return widened(builder, element, inMemory);
}

void storeElement(ImplicitLocOpBuilder &builder, Type element, Value value,
                  Value place) {
  LLVM::StoreOp::create(builder, narrowed(builder, element, value), place);
}

namespace {

/// An index, as a sum of something and a constant.
struct Shifted {
  explicit Shifted(Value index) : rest(index) {
    APInt constant;
    for (auto sum = rest.getDefiningOp<LLVM::AddOp>();
         sum && matchPattern(sum.getRhs(), m_ConstantInt(&constant));
         sum = rest.getDefiningOp<LLVM::AddOp>()) {
      rest = sum.getLhs();
      shift += constant.getSExtValue();
    }
  }

  Value rest;
  int64_t shift = 0;
};

/// `extents`: of all dimensions, of which the first one does not matter.
class Address {
public:
  Address(ImplicitLocOpBuilder &builder, ValueRange extents, Type element)
      : b(builder), extents(extents), element(element) {}

  /// That of a neighbour follows from that of the element beside it, which is
  /// computed once for all of them.
  Value of(Value base, ValueRange indices) {
    if (indices.empty())
      return base;
    SmallVector<Shifted> parts(indices.begin(), indices.end());
    auto isShifted = [](const Shifted &part) { return part.shift != 0; };
    if (indices.size() == 1 || llvm::none_of(parts, isShifted))
      return at(base, linear(indices), LLVM::GEPNoWrapFlags::inbounds);
    Values centre;
    for (const Shifted &part : parts)
      centre.push_back(part.rest);
    Value beside = at(base, linear(centre), LLVM::GEPNoWrapFlags::none);
    return at(beside, distance(parts), LLVM::GEPNoWrapFlags::none);
  }

private:
  static constexpr auto noWrap = LLVM::IntegerOverflowFlags::nsw;

  Value at(Value base, Value number, LLVM::GEPNoWrapFlags flags) {
    return LLVM::GEPOp::create(b, base.getType(), element, base,
                               ValueRange(number), flags);
  }

  Value linear(ValueRange indices) {
    Value number = indices.front();
    for (size_t dim = 1; dim < indices.size(); ++dim)
      number = LLVM::AddOp::create(b, timesExtent(number, dim), indices[dim],
                                   noWrap);
    return number;
  }

  Value distance(ArrayRef<Shifted> parts) {
    Value number;
    for (auto [dim, part] : llvm::enumerate(parts)) {
      if (number)
        number = timesExtent(number, dim);
      if (part.shift == 0)
        continue;
      Value shift = constant(b, part.shift);
      number = number ? LLVM::AddOp::create(b, number, shift, noWrap) : shift;
    }
    return number;
  }

  Value timesExtent(Value number, size_t dim) {
    return LLVM::MulOp::create(b, number, extents[dim], noWrap);
  }

  ImplicitLocOpBuilder &b;
  ValueRange extents;
  Type element;
};

/// Of an operation on an element of an array, or of a private one.
template <class Op> struct AccessPattern : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;
  using Adaptor = typename Op::Adaptor;
  static constexpr bool isLocal = requires(Op op) { op.getLocal(); };

  static Type element(Op op) {
    if constexpr (isLocal)
      return op.getLocal().getType().getElementType();
    else
      return cast<ir::ArrayType>(op.getArray().getType()).getElementType();
  }
  static Value address(ImplicitLocOpBuilder &builder, Op op, Adaptor adaptor) {
    Type type = memoryType(element(op));
    if constexpr (isLocal) {
      return Address(builder, {}, type)
          .of(adaptor.getLocal(), adaptor.getIndex());
    } else {
      ArrayView array(op.getArray());
      return Address(builder, array.extents, type)
          .of(array.base, adaptor.getIndices());
    }
  }
};

template <class Op> struct LoadPattern : AccessPattern<Op> {
  using AccessPattern<Op>::AccessPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = this->address(builder, op, adaptor);
    rewriter.replaceOp(op, loadElement(builder, this->element(op), place));
    return success();
  }
};

template <class Op> struct StorePattern : AccessPattern<Op> {
  using AccessPattern<Op>::AccessPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = this->address(builder, op, adaptor);
    storeElement(builder, this->element(op), adaptor.getValue(), place);
    rewriter.eraseOp(op);
    return success();
  }
};

Value loadRelaxed(ImplicitLocOpBuilder &b, Type bits, Value place) {
  return LLVM::LoadOp::create(b, bits, place, bits.getIntOrFloatBitWidth() / 8,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/false, /*isInvariantGroup=*/false,
                              LLVM::AtomicOrdering::monotonic);
}

struct AtomicAddPattern : AccessPattern<ir::AtomicAddOp> {
  AtomicAddPattern(const LLVMTypeConverter &converter, bool deterministic)
      : AccessPattern(converter), deterministic(deterministic) {}

  LogicalResult
  matchAndRewrite(ir::AtomicAddOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = address(builder, op, adaptor);
    Value value = adaptor.getValue();
    if (op.getExclusive())
      addAlone(builder, element(op), place, value);
    else if (deterministic && isa<FloatType>(value.getType()))
      call(builder, "costate_add_later_", element(op),
           {workerOf(op), place, value});
    else if (isCommon(op))
      addCommon(builder, op, place, value);
    else if (isOnDevice(op) && op->hasAttr(skipsZerosAttr))
      addUnlessZero(builder, rewriter, op, place, value);
    else if (isOnDevice(op))
      addAtomically(builder, place, narrowed(builder, element(op), value));
    else
      addByThreads(builder, rewriter, op, place, value);
    rewriter.eraseOp(op);
    return success();
  }

  /// if the thread is alone { as with `exclusive` } else { atomically }
  static void addByThreads(ImplicitLocOpBuilder &b,
                           ConversionPatternRewriter &rewriter,
                           ir::AtomicAddOp op, Value place, Value value) {
    Value isAlone = aloneIn(op, rewriter);
    mlir::Block *head = rewriter.getInsertionBlock();
    mlir::Block *end = rewriter.splitBlock(head, op->getIterator());
    mlir::Block *alone = rewriter.createBlock(end);
    mlir::Block *shared = rewriter.createBlock(end);
    b.setInsertionPointToEnd(head);
    LLVM::CondBrOp::create(b, isAlone, alone, shared);
    b.setInsertionPointToEnd(alone);
    addAlone(b, element(op), place, value);
    LLVM::BrOp::create(b, end);
    b.setInsertionPointToEnd(shared);
    Value inMemory = narrowed(b, element(op), value);
    if (isa<FloatType>(value.getType()))
      addIfNotZero(b, rewriter, end, place, inMemory);
    else
      addAtomically(b, place, inMemory);
    LLVM::BrOp::create(b, end);
    rewriter.setInsertionPointToStart(end);
  }

  /// Read where the function begins: it is the same all the time.
  static Value aloneIn(ir::AtomicAddOp op,
                       ConversionPatternRewriter &rewriter) {
    Value place = workerOf(op);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(place.getParentBlock());
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t slot = op->hasAttr(slabAttr) ? slabSlot : aloneSlot;
    if (auto number = op->getAttrOfType<IntegerAttr>(copyAttr)) {
      place = loadSlot(b, place.getType(), place, copySlot);
      slot = copyWords * number.getInt() + 1;
    }
    Value flag = loadSlot(b, b.getI64Type(), place, slot);
    Value zero = LLVM::ConstantOp::create(b, b.getI64Type(), 0);
    return LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, flag, zero);
  }

  /// Narrow floats are added as f32: the sum is exact but for its rounding.
  static void addAlone(ImplicitLocOpBuilder &builder, Type element, Value place,
                       Value value) {
    Value old = loadElement(builder, element, place);
    value = widened(builder, element, narrowed(builder, element, value));
    Value sum = isa<FloatType>(element)
                    ? LLVM::FAddOp::create(builder, old, value).getResult()
                    : LLVM::AddOp::create(builder, old, value).getResult();
    storeElement(builder, element, sum, place);
  }

  static void addCommon(ImplicitLocOpBuilder &b, ir::AtomicAddOp op,
                        Value place, Value value) {
    if (!op->hasAttr(inBlockAttr))
      return call(b, "costate_device_add_common_", element(op), {place, value});
    Value elements = constant(b, 1);
    for (Value extent : ArrayView(op.getArray()).extents)
      elements = LLVM::MulOp::create(b, elements, extent);
    call(b, "costate_device_add_in_block_", element(op),
         {place, value, elements});
  }

  /// Whether lanes of a warp should add up first.
  static bool isCommon(ir::AtomicAddOp op) {
    return op->hasAttr(commonAttr) && isa<FloatType>(element(op)) &&
           !ir::isNarrow(element(op)) && isOnDevice(op);
  }

  static bool isOnDevice(ir::AtomicAddOp op) {
    return op->getParentOfType<ModuleOp>()->hasAttr(deviceAttr);
  }

  static void call(ImplicitLocOpBuilder &builder, StringRef name, Type element,
                   ValueRange arguments) {
    LLVM::CallOp::create(builder, TypeRange(), (name + nameOf(element)).str(),
                         arguments);
  }

  static void addAtomically(ImplicitLocOpBuilder &builder, Value place,
                            Value value) {
    auto kind = isa<FloatType>(value.getType()) ? LLVM::AtomicBinOp::fadd
                                                : LLVM::AtomicBinOp::add;
    LLVM::AtomicRMWOp::create(builder, kind, place, value,
                              LLVM::AtomicOrdering::monotonic);
  }

  /// A GPU does not wait for an addition, but memory makes one after another.
  static void addUnlessZero(ImplicitLocOpBuilder &b,
                            ConversionPatternRewriter &rewriter,
                            ir::AtomicAddOp op, Value place, Value value) {
    mlir::Block *head = rewriter.getInsertionBlock();
    mlir::Block *end = rewriter.splitBlock(head, op->getIterator());
    mlir::Block *add = rewriter.createBlock(end);
    b.setInsertionPointToEnd(head);
    Type type = value.getType();
    Value zero = LLVM::ConstantOp::create(b, type, b.getFloatAttr(type, 0.0));
    Value isZero =
        LLVM::FCmpOp::create(b, LLVM::FCmpPredicate::oeq, value, zero);
    LLVM::CondBrOp::create(b, isZero, end, add);
    b.setInsertionPointToEnd(add);
    addAtomically(b, place, value);
    LLVM::BrOp::create(b, end);
    rewriter.setInsertionPointToStart(end);
  }

  /// Not if that changes nothing: 0, but to -0. Most adjoints of a minimum of
  /// many are 0, and on a CPU an indivisible step takes longer than a look.
  static void addIfNotZero(ImplicitLocOpBuilder &b,
                           ConversionPatternRewriter &rewriter,
                           mlir::Block *end, Value place, Value value) {
    Type type = value.getType();
    mlir::Block *look = rewriter.createBlock(end);
    mlir::Block *add = rewriter.createBlock(end);
    Value zero = LLVM::ConstantOp::create(b, type, b.getFloatAttr(type, 0.0));
    Value isZero =
        LLVM::FCmpOp::create(b, LLVM::FCmpPredicate::oeq, value, zero);
    LLVM::CondBrOp::create(b, isZero, look, add);
    b.setInsertionPointToEnd(look);
    Type bits = b.getIntegerType(type.getIntOrFloatBitWidth());
    Value negativeZero = LLVM::ConstantOp::create(
        b, bits,
        b.getIntegerAttr(
            bits, llvm::APInt::getSignMask(bits.getIntOrFloatBitWidth())));
    Value now = loadRelaxed(b, bits, place);
    Value changes =
        LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, now, negativeZero);
    LLVM::CondBrOp::create(b, changes, add, end);
    b.setInsertionPointToEnd(add);
    addAtomically(b, place, value);
  }

  bool deterministic;
};

/// old = load; while (value before old and exchange of old for value fails)
///   old = what the exchange found
/// Most values are no new extremum: they are compared with the element first.
/// Ends in front of `op`; returns what the element was.
Value takeAtomically(ImplicitLocOpBuilder &b,
                     ConversionPatternRewriter &rewriter, Operation *op,
                     Before before, Value place, Value value) {
  constexpr auto relaxed = LLVM::AtomicOrdering::monotonic;
  Type bits = b.getIntegerType(value.getType().getIntOrFloatBitWidth());
  Value next = LLVM::BitcastOp::create(b, bits, value);
  Value first = loadRelaxed(b, bits, place);
  mlir::Block *head = rewriter.getInsertionBlock();
  mlir::Block *end = rewriter.splitBlock(head, op->getIterator());
  mlir::Block *test = rewriter.createBlock(end, {bits}, {op->getLoc()});
  mlir::Block *exchange = rewriter.createBlock(end);
  b.setInsertionPointToEnd(head);
  LLVM::BrOp::create(b, first, test);
  b.setInsertionPointToEnd(test);
  Value old = test->getArgument(0);
  Value element = LLVM::BitcastOp::create(b, value.getType(), old);
  Value isBefore = before(b, value, element);
  LLVM::CondBrOp::create(b, isBefore, exchange, end);
  b.setInsertionPointToEnd(exchange);
  Value found =
      LLVM::AtomicCmpXchgOp::create(b, place, old, next, relaxed, relaxed);
  Value seen = LLVM::ExtractValueOp::create(b, found, 0);
  Value done = LLVM::ExtractValueOp::create(b, found, 1);
  LLVM::CondBrOp::create(b, done, end, ValueRange(), test, seen);
  b.setInsertionPointToStart(end);
  return element;
}

/// Tries until nobody has come between. Ends in front of `op`; returns what the
/// element, of type `type`, was.
Value multiplyAtomically(ImplicitLocOpBuilder &b,
                         ConversionPatternRewriter &rewriter, Operation *op,
                         Type type, Value place, Value factor) {
  constexpr auto relaxed = LLVM::AtomicOrdering::monotonic;
  Type memory = memoryType(type);
  Type bits = b.getIntegerType(memory.getIntOrFloatBitWidth());
  Value first = loadRelaxed(b, bits, place);
  mlir::Block *head = rewriter.getInsertionBlock();
  mlir::Block *end = rewriter.splitBlock(head, op->getIterator());
  mlir::Block *attempt = rewriter.createBlock(end, {bits}, {op->getLoc()});
  b.setInsertionPointToEnd(head);
  LLVM::BrOp::create(b, first, attempt);
  b.setInsertionPointToEnd(attempt);
  Value old = attempt->getArgument(0);
  Value element = LLVM::BitcastOp::create(b, memory, old);
  Value wide = widened(b, type, element);
  Value product = isa<FloatType>(wide.getType())
                      ? LLVM::FMulOp::create(b, wide, factor).getResult()
                      : LLVM::MulOp::create(b, wide, factor).getResult();
  Value next = LLVM::BitcastOp::create(b, bits, narrowed(b, type, product));
  Value found =
      LLVM::AtomicCmpXchgOp::create(b, place, old, next, relaxed, relaxed);
  Value seen = LLVM::ExtractValueOp::create(b, found, 0);
  Value done = LLVM::ExtractValueOp::create(b, found, 1);
  LLVM::CondBrOp::create(b, done, end, ValueRange(), attempt, seen);
  b.setInsertionPointToStart(end);
  return element;
}

template <class Op> struct AtomicExtremumPattern : AccessPattern<Op> {
  using AccessPattern<Op>::AccessPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = this->address(builder, op, adaptor);
    Type element = this->element(op);
    Before before{std::is_same_v<Op, ir::AtomicMaxOp>,
                  element.isUnsignedInteger()};
    Value value = narrowed(builder, element, adaptor.getValue());
    if (op.getExclusive())
      takeAlone(builder, before, place, value);
    else
      takeAtomically(builder, rewriter, op, before, place, value);
    rewriter.eraseOp(op);
    return success();
  }

  static void takeAlone(ImplicitLocOpBuilder &b, Before before, Value place,
                        Value value) {
    Value old = LLVM::LoadOp::create(b, value.getType(), place);
    Value isBefore = before(b, value, old);
    Value next = LLVM::SelectOp::create(b, isBefore, value, old);
    LLVM::StoreOp::create(b, next, place);
  }
};

struct AtomicTakePattern : AccessPattern<ir::AtomicTakeOp> {
  using AccessPattern::AccessPattern;

  LogicalResult
  matchAndRewrite(ir::AtomicTakeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = address(builder, op, adaptor);
    Type type = op.getType();
    Value zero = LLVM::ConstantOp::create(builder, type,
                                          builder.getFloatAttr(type, 0.0));
    Value taken;
    if (op.getExclusive()) {
      taken = LLVM::LoadOp::create(builder, type, place);
      LLVM::StoreOp::create(builder, zero, place);
    } else {
      taken = LLVM::AtomicRMWOp::create(builder, LLVM::AtomicBinOp::xchg, place,
                                        zero, LLVM::AtomicOrdering::monotonic);
    }
    rewriter.replaceOp(op, taken);
    return success();
  }
};

template <class Op> struct FetchPattern : AccessPattern<Op> {
  using AccessPattern<Op>::AccessPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = this->address(builder, op, adaptor);
    Type type = this->element(op);
    Value value = narrowed(builder, type, adaptor.getValue());
    StringRef kind = op.getKind();
    Value old;
    if (kind == "min" || kind == "max") {
      Before before{kind == "max", type.isUnsignedInteger()};
      old = takeAtomically(builder, rewriter, op, before, place, value);
    } else if (kind == "mul") {
      old = multiplyAtomically(builder, rewriter, op, type, place,
                               adaptor.getValue());
    } else {
      old = LLVM::AtomicRMWOp::create(
          builder, instruction(kind, isa<FloatType>(type)), place, value,
          LLVM::AtomicOrdering::monotonic);
    }
    rewriter.replaceOp(op, widened(builder, type, old));
    return success();
  }

  static LLVM::AtomicBinOp instruction(StringRef kind, bool isFloat) {
    return llvm::StringSwitch<LLVM::AtomicBinOp>(kind)
        .Case("add", isFloat ? LLVM::AtomicBinOp::fadd : LLVM::AtomicBinOp::add)
        .Case("and", LLVM::AtomicBinOp::_and)
        .Case("or", LLVM::AtomicBinOp::_or)
        .Case("xor", LLVM::AtomicBinOp::_xor)
        .Default(LLVM::AtomicBinOp::xchg);
  }
};

struct CompareExchangePattern : AccessPattern<ir::CompareExchangeOp> {
  using AccessPattern::AccessPattern;

  LogicalResult
  matchAndRewrite(ir::CompareExchangeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    constexpr auto relaxed = LLVM::AtomicOrdering::monotonic;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value place = address(b, op, adaptor);
    Type type = element(op);
    Value found = LLVM::AtomicCmpXchgOp::create(
        b, place, bits(b, type, adaptor.getExpected()),
        bits(b, type, adaptor.getDesired()), relaxed, relaxed);
    Value old = LLVM::ExtractValueOp::create(b, found, 0);
    if (isa<FloatType>(type))
      old = LLVM::BitcastOp::create(b, type, old);
    rewriter.replaceOp(op, widened(b, type, old));
    return success();
  }

  /// Of the element that `value` becomes.
  static Value bits(ImplicitLocOpBuilder &b, Type type, Value value) {
    value = narrowed(b, type, value);
    if (!isa<FloatType>(type))
      return value;
    return LLVM::BitcastOp::create(
        b, b.getIntegerType(type.getIntOrFloatBitWidth()), value);
  }
};

struct ExtentPattern : ConvertOpToLLVMPattern<ir::ExtentOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(ir::ExtentOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, ArrayView(op.getArray()).extents[op.getDim()]);
    return success();
  }
};

} // namespace

void populateAccessPatterns(const LLVMTypeConverter &converter,
                            RewritePatternSet &patterns, bool deterministic) {
  patterns
      .add<LoadPattern<ir::LoadOp>, StorePattern<ir::StoreOp>,
           LoadPattern<ir::LocalLoadOp>, StorePattern<ir::LocalStoreOp>,
           ExtentPattern, AtomicTakePattern, FetchPattern<ir::AtomicFetchOp>,
           FetchPattern<ir::SharedUpdateOp>, CompareExchangePattern,
           AtomicExtremumPattern<ir::AtomicMinOp>,
           AtomicExtremumPattern<ir::AtomicMaxOp>>(converter);
  patterns.add<AtomicAddPattern>(converter, deterministic);
}

} // namespace costate::conversion
