#include "ir/Kernel.h"

#include "base/Message.h"
#include "ir/Blocks.h"
#include "ir/Device.h"
#include "ir/LoopPairs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "ir/KernelDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/KernelTypes.cpp.inc"

#include "ir/KernelInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "ir/KernelOps.cpp.inc"

using namespace mlir;

namespace costate::ir {

void CostateDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/KernelTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/KernelOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/BlockOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/DeviceOps.cpp.inc"
      >();
}

//===-- Attributes --------------------------------------------------------===//

/// The argument that argument `number`, an adjoint or the like, belongs to, by
/// `attribute`.
static LogicalResult verifyOrigin(Operation *op, unsigned number,
                                  NamedAttribute attribute) {
  auto types = cast<FunctionOpInterface>(op).getArgumentTypes();
  auto origin = dyn_cast<IntegerAttr>(attribute.getValue());
  bool isOlder =
      origin && origin.getType().isInteger(64) && origin.getValue().ult(number);
  if (isOlder && isa<ArrayType>(types[number]) &&
      isa<ArrayType>(types[origin.getInt()]))
    return success();
  return op->emitOpError("argument ")
         << number << " has `" << attribute.getName().getValue()
         << "`, which names an array in front of it by its number, an i64";
}

static LogicalResult verifyNumber(Operation *op, NamedAttribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (number && number.getType().isInteger(64) && number.getValue().isIntN(32))
    return success();
  return op->emitOpError("has `") << attribute.getName().getValue()
                                  << "`, which is an i64 from 0 to 2^32 - 1";
}

static LogicalResult verifyExtents(Operation *op, unsigned number,
                                   Attribute value) {
  auto extents = dyn_cast<DenseI64ArrayAttr>(value);
  auto array = dyn_cast<ArrayType>(
      cast<FunctionOpInterface>(op).getArgumentTypes()[number]);
  if (extents && array && extents.size() == array.getRank() &&
      llvm::all_of(extents.asArrayRef(), [](int64_t one) { return one >= -1; }))
    return success();
  return op->emitOpError("argument ")
         << number << " has `" << extentsAttr
         << "`, which has an i64, -1 or more, for each dimension of an array";
}

LogicalResult CostateDialect::verifyRegionArgAttribute(
    Operation *op, unsigned, unsigned argument, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (!isa<FunctionOpInterface>(op))
    return success();
  if (name == versionOfAttr &&
      !cast<FunctionOpInterface>(op).getArgAttr(argument, partAttr))
    return op->emitOpError("argument ")
           << argument << " has `" << name << "` without `" << partAttr << "`";
  if (name == partAttr)
    return verifyNumber(op, attribute);
  if (name == extentsAttr)
    return verifyExtents(op, argument, attribute.getValue());
  if (name == adjointOfAttr || name == tangentOfAttr || name == versionOfAttr ||
      name == scratchOfAttr || name == ownersOfAttr)
    return verifyOrigin(op, argument, attribute);
  return success();
}

static LogicalResult verifyCheckpoints(Operation *op,
                                       NamedAttribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (isa<LoopLikeOpInterface>(op) && number &&
      number.getType().isInteger(64) && number.getValue().isStrictlyPositive())
    return success();
  return op->emitOpError("has `") << attribute.getName().getValue()
                                  << "`, which is an i64 above 0, on a loop";
}

static LogicalResult verifyBlockDim(Operation *op, Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  if (isa<RangeOp>(op) && number && number.getInt() > 0 &&
      number.getInt() <= 1024)
    return success();
  return op->emitOpError("has `")
         << blockDimAttr << "`, which is 1 to 1024, on a range";
}

LogicalResult
CostateDialect::verifyOperationAttribute(Operation *op,
                                         NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == checkpointsAttr)
    return verifyCheckpoints(op, attribute);
  if (name == blockDimAttr)
    return verifyBlockDim(op, attribute.getValue());
  bool isOfLoops = name == wholeAttr || name == rerunAttr ||
                   name == segmentAttr || name == restAttr;
  if (isOfLoops && !isa<LoopLikeOpInterface>(op))
    return op->emitOpError("has `") << name << "`, but is no loop";
  if (name == replayedAttr || name == storedValueAttr)
    return verifyNumber(op, attribute);
  return success();
}

//===-- ArrayType ---------------------------------------------------------===//

bool isNarrow(Type element) {
  return !element.isInteger(1) && element.getIntOrFloatBitWidth() < 32;
}

static Type valueTypeOf(Type element) {
  MLIRContext *context = element.getContext();
  if (element.isF16())
    return Float32Type::get(context);
  if (!element.isInteger())
    return element;
  unsigned width = element.getIntOrFloatBitWidth();
  return IntegerType::get(context, isNarrow(element) ? 32 : width);
}

static bool isElement(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return type.isF16() || type.isF32() || type.isF64();
  switch (integer.getWidth()) {
  case 1:
    return integer.isSignless();
  case 8:
  case 16:
  case 32:
  case 64:
    return !integer.isSigned();
  default:
    return false;
  }
}

Type ArrayType::getValueType() const { return valueTypeOf(getElementType()); }

ArrayType ArrayType::getDerivative() const {
  return get(getContext(), getValueType(), getRank());
}

LogicalResult ArrayType::verify(function_ref<InFlightDiagnostic()> emitError,
                                Type element, unsigned rank) {
  if (!isElement(element))
    return emitError() << "an array cannot have elements of type " << element;
  if (rank > 8)
    return emitError() << "an array has at most 8 dimensions, not " << rank;
  return success();
}

//===-- Values of derivatives ---------------------------------------------===//

LogicalResult ByOrderOp::verify() {
  return getValues().empty() ? emitOpError("has no value") : success();
}

//===-- Private arrays ----------------------------------------------------===//

Type LocalType::getValueType() const { return valueTypeOf(getElementType()); }

LocalType LocalType::getDerivative() const {
  return get(getContext(), getValueType(), getSize());
}

LogicalResult LocalType::verify(function_ref<InFlightDiagnostic()> emitError,
                                Type element, int64_t size) {
  if (!isElement(element))
    return emitError() << "a private array cannot have elements of type "
                       << element;
  int64_t bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
  if (size < 1 || size > ::costate::ir::mostSharedBytes / bytes)
    return emitError() << "a private array has 1 to " << mostBytes / bytes
                       << " elements of type " << element << ", not " << size;
  return success();
}

LogicalResult LocalOp::verify() {
  LocalType type = getType();
  if (type.bytes() > LocalType::mostBytes)
    return emitError("a private array has 1 to ")
           << LocalType::mostBytes / type.elementBytes() << " elements of type "
           << type.getElementType() << ", not " << type.getSize();
  auto range = (*this)->getParentOfType<RangeOp>();
  for (Operation *user : (*this)->getUsers()) {
    if (!writesLocal(user) && !isa<LocalLoadOp>(user))
      return user->emitOpError("uses a private array as a whole");
    if (user->getParentOfType<RangeOp>() != range)
      return user->emitOpError(
          "uses a private array of serial code in a range");
  }
  return success();
}

//===-- KernelOp ----------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type) {
  state.addAttribute(SymbolTable::getSymbolAttrName(),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  Block &block = state.addRegion()->emplaceBlock();
  for (Type input : type.getInputs())
    block.addArgument(input, state.location);
  ensureTerminator(*state.regions.front(), builder, state.location);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto type = [](Builder &builder, ArrayRef<Type> inputs,
                 ArrayRef<Type> results, function_interface_impl::VariadicFlag,
                 std::string &) {
    return builder.getFunctionType(inputs, results);
  };
  if (function_interface_impl::parseFunctionOp(
          parser, result, /*allowVariadic=*/false,
          getFunctionTypeAttrName(result.name), type,
          getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)))
    return failure();
  ensureTerminator(*result.regions.front(), parser.getBuilder(),
                   result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

std::string argumentText(BlockArgument argument) {
  auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
  unsigned number = argument.getArgNumber();
  if (auto name = kernel.getArgAttrOfType<StringAttr>(number, nameAttr))
    return name.str();
  return "argument " + std::to_string(number + 1);
}

std::vector<int64_t> knownExtents(BlockArgument argument) {
  auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
  unsigned number = argument.getArgNumber();
  auto rankOf = [](BlockArgument array) {
    return cast<ArrayType>(array.getType()).getRank();
  };
  for (StringRef name : {adjointOfAttr, tangentOfAttr})
    if (auto of = kernel.getArgAttrOfType<IntegerAttr>(number, name))
      if (BlockArgument origin = kernel.getArgument(of.getInt());
          rankOf(origin) == rankOf(argument))
        return knownExtents(origin);
  auto known = kernel.getArgAttrOfType<DenseI64ArrayAttr>(number, extentsAttr);
  return known ? std::vector<int64_t>(known.asArrayRef())
               : std::vector<int64_t>();
}

Value innermostIndex(ElementAccess access) {
  auto array = dyn_cast<BlockArgument>(access.getArray());
  std::vector<int64_t> known;
  if (array && isa<KernelOp>(array.getOwner()->getParentOp()))
    known = knownExtents(array);
  for (size_t dim = access.getIndices().size(); dim-- > 0;)
    if (dim >= known.size() || known[dim] != 1)
      return access.getIndices()[dim];
  return {};
}

bool isScalar(Type type) {
  return type.isF32() || type.isF64() || type.isSignlessInteger(1) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64);
}

LogicalResult KernelOp::verify() {
  if (!getFunctionType().getResults().empty())
    return emitOpError("has no results; write to an array instead");
  for (Type type : getFunctionType().getInputs())
    if (!isa<ArrayType>(type) && !isScalar(type))
      return emitOpError("cannot take an argument of type ") << type;
  return success();
}

/// Whether `value` is what a number becomes on a tape, or the half float on the
/// way to its bits or back.
static bool isPacked(Value value) {
  auto becomes = [&]<class Next>() {
    return !value.use_empty() &&
           llvm::all_of(value.getUsers(), llvm::IsaPred<Next>);
  };
  Type type = value.getType();
  if (!type.isF16())
    return type.isInteger(8) || type.isInteger(16);
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::TruncFOp>(op))
    return becomes.operator()<arith::BitcastOp>();
  return isa_and_nonnull<arith::BitcastOp>(op) &&
         becomes.operator()<arith::ExtFOp>();
}

/// Why `value` cannot stand inside a kernel; empty if it can.
static StringRef refusalOf(Value value) {
  Type type = value.getType();
  if (isa<ArrayType>(type))
    return "is an array that is not an argument of the kernel; select elements "
           "instead";
  Operation *op = value.getDefiningOp();
  if (isa<LocalType>(type) && isa_and_nonnull<LocalOp, SharedOp>(op))
    return "";
  bool counts =
      op ? isa<arith::ConstantOp, arith::IndexCastOp>(op)
         : isa<LoopLikeOpInterface>(value.getParentBlock()->getParentOp());
  if (type.isIndex() ? counts : isScalar(type) || isPacked(value))
    return "";
  return "is no scalar of a kernel: i1, i32, i64, f32 or f64";
}

bool holdsOwners(Value array) {
  auto argument = cast<BlockArgument>(array);
  auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
  return bool(kernel.getArgAttr(argument.getArgNumber(), ownersOfAttr));
}

bool isDirectory(Value array) {
  auto argument = dyn_cast<BlockArgument>(array);
  auto kernel =
      dyn_cast_or_null<KernelOp>(array.getParentBlock()->getParentOp());
  return argument && kernel &&
         kernel.getArgAttr(argument.getArgNumber(), directoryAttr);
}

/// Of an argument of a kernel.
static IntegerAttr attributeOf(Value array, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(array);
  auto kernel =
      dyn_cast_or_null<KernelOp>(array.getParentBlock()->getParentOp());
  if (!argument || !kernel)
    return {};
  return kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), name);
}

bool isAdjoint(Value array) {
  return static_cast<bool>(attributeOf(array, adjointOfAttr));
}

bool isOfAdjoint(Value array) {
  IntegerAttr primal = attributeOf(array, tangentOfAttr);
  return isAdjoint(primal ? array.getParentBlock()->getArgument(primal.getInt())
                          : array);
}

/// Whether an argument is a scratch array, or tangents of one.
static bool isScratch(KernelOp kernel, unsigned argument) {
  if (kernel.getArgAttr(argument, scratchOfAttr))
    return true;
  auto of = kernel.getArgAttrOfType<IntegerAttr>(argument, tangentOfAttr);
  return of && isScratch(kernel, of.getInt());
}

/// Else a sweep that only measures would leave the write out.
static LogicalResult verifyScratch(KernelOp kernel, Operation *op) {
  auto access = dyn_cast<ElementAccess>(op);
  if (!access || !writesElement(op) || op->hasAttr(replayedAttr))
    return success();
  auto array = dyn_cast<BlockArgument>(access.getArray());
  if (!array || !isScratch(kernel, array.getArgNumber()))
    return success();
  return op->emitError("writes to a scratch array without a part that it "
                       "repeats");
}

LogicalResult KernelOp::verifyRegions() {
  WalkResult result = walk([&](Operation *op) {
    if (op == *this)
      return WalkResult::advance();
    if (failed(verifyScratch(*this, op)))
      return WalkResult::interrupt();
    SmallVector<Value> values(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::append_range(values, block.getArguments());
    for (Value value : values)
      if (StringRef refusal = refusalOf(value); !refusal.empty()) {
        op->emitError("a value of type ") << value.getType() << ' ' << refusal;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted() ||
                 failed(tape::verifyRecords(*this)) ||
                 failed(tape::verifyPairs(*this)));
}

//===-- RangeOp -----------------------------------------------------------===//

void RangeOp::build(OpBuilder &builder, OperationState &state,
                    ValueRange extents, TypeRange sums) {
  state.addOperands(extents);
  state.addTypes(sums);
  Block &block = state.addRegion()->emplaceBlock();
  for (unsigned i = 0; i < extents.size(); ++i)
    block.addArgument(builder.getI64Type(), state.location);
  if (sums.empty())
    ensureTerminator(*state.regions.front(), builder, state.location);
}

SmallVector<Region *> RangeOp::getLoopRegions() { return {&getRegion()}; }

ParseResult RangeOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> indices;
  SmallVector<OpAsmParser::UnresolvedOperand> extents;
  Type i64 = parser.getBuilder().getI64Type();
  if (parser.parseArgumentList(indices, AsmParser::Delimiter::Paren) ||
      parser.parseKeyword("in") ||
      parser.parseOperandList(extents, AsmParser::Delimiter::Paren) ||
      parser.parseOptionalArrowTypeList(result.types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(extents, i64, result.operands))
    return failure();
  for (OpAsmParser::Argument &index : indices)
    index.type = i64;
  if (parser.parseRegion(*result.addRegion(), indices))
    return failure();
  ensureTerminator(*result.regions.front(), parser.getBuilder(),
                   result.location);
  return success();
}

void RangeOp::print(OpAsmPrinter &printer) {
  printer << " (" << getIndices() << ") in (" << getExtents() << ")";
  printer.printOptionalArrowTypeList(getResultTypes());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << ' ';
  printer.printRegion(getRegion(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/getNumResults() != 0);
}

static LogicalResult verifySums(RangeOp range) {
  auto isInteger = [](Type type) { return type.isInteger(64); };
  bool any = llvm::any_of(range.getResultTypes(), isInteger);
  bool all = llvm::all_of(range.getResultTypes(), isInteger);
  if (any && !all)
    return range.emitOpError("adds up either floats or i64");
  unsigned results = range.getNumResults(); // none: nobody wanted the pair
  if (range.getMinima() && results && (!any || results != 2))
    return range.emitOpError("with minima gives a key and a place of i64");
  return success();
}

LogicalResult RangeOp::verify() {
  if (getExtents().empty())
    return emitOpError("needs at least one extent");
  if (getBody()->getNumArguments() != getExtents().size())
    return emitOpError("has ") << getExtents().size() << " extents but "
                               << getBody()->getNumArguments() << " indices";
  auto yield = dyn_cast<YieldOp>(getBody()->getTerminator());
  if (!yield)
    return emitOpError("ends with another operation than `costate.yield`");
  if (yield.getValues().getTypes() != getSums().getTypes())
    return emitOpError("must yield one value for each of its sums");
  if (failed(verifySums(*this)))
    return failure();
  if ((*this)->getParentOfType<RangeOp>())
    return emitOpError(
        "stands inside a range; use one range with more extents, "
        "or a loop");
  return success();
}

//===-- Regions -----------------------------------------------------------===//

static auto interruptIf(function_ref<bool(Operation *)> isWanted) {
  return [isWanted](Operation *op) {
    return isWanted(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
}

bool contains(Region &region, function_ref<bool(Operation *)> isWanted) {
  return region.walk(interruptIf(isWanted)).wasInterrupted();
}

bool contains(Operation *root, function_ref<bool(Operation *)> isWanted) {
  return root->walk(interruptIf(isWanted)).wasInterrupted();
}

//===-- SerialOp ----------------------------------------------------------===//

LogicalResult SerialOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBody()->getTerminator());
  if (!yield)
    return emitOpError("ends with another operation than `costate.yield`");
  if (yield.getValues().getTypes() != getValues().getTypes())
    return emitOpError("must yield one value for each of its results");
  if (contains<RangeOp, CopyOp>(*this))
    return emitOpError("holds a range or a copy, which the host begins");
  return success();
}

//===-- CustomOp ----------------------------------------------------------===//

static unsigned countFloats(TypeRange types) {
  return llvm::count_if(types, [](Type type) { return isa<FloatType>(type); });
}

Value CustomOp::getPartial(unsigned index) {
  auto before = TypeRange(getInputs().getTypes()).take_front(index);
  return getPartials().front().getTerminator()->getOperand(countFloats(before));
}

static LogicalResult verifyEnds(CustomOp op, Region &region, TypeRange takes,
                                TypeRange yields) {
  Block &block = region.front();
  auto end = dyn_cast<YieldOp>(block.getTerminator());
  if (block.getArgumentTypes() == takes && end &&
      end.getValues().getTypes() == yields)
    return success();
  InFlightDiagnostic error = op.emitOpError("region ")
                             << region.getRegionNumber() << " must take (";
  llvm::interleaveComma(takes, error);
  error << ") and yield (";
  llvm::interleaveComma(yields, error);
  return error << ')';
}

LogicalResult CustomOp::verifyRegions() {
  SmallVector<Type> takes(getInputs().getTypes());
  SmallVector<Type> partials(countFloats(takes), getType());
  if (failed(verifyEnds(*this, getPrimal(), takes, getType())))
    return failure();
  takes.push_back(getType());
  if (failed(verifyEnds(*this, getPartials(), takes, partials)))
    return failure();
  if (!isMemoryEffectFree(*this))
    return emitOpError("must not have effects");
  for (Operation &op : getPartials().front())
    if (op.getNumRegions() && !isa<CustomOp>(op))
      return op.emitOpError("stands in the partial derivatives of a function; "
                            "these must be straight code");
  return success();
}

//===-- NarrowOp ----------------------------------------------------------===//

LogicalResult NarrowOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  Type type = adaptor.getValue().getType();
  Type number = getElementTypeOrSelf(type).isInteger()
                    ? Type(IntegerType::get(context, 32))
                    : Float32Type::get(context);
  auto lanes = dyn_cast<VectorType>(type);
  types.push_back(lanes ? lanes.clone(number) : number);
  return success();
}

LogicalResult NarrowOp::verify() {
  bool fits = isElement(getElement()) && isNarrow(getElement()) &&
              valueTypeOf(getElement()) == getElementTypeOrSelf(getType());
  if (fits)
    return success();
  return emitOpError("cannot make a number of type ") << getElement();
}

//===-- TripCountOp -------------------------------------------------------===//

bool TripCountOp::cannotFail() {
  APInt step;
  return matchPattern(getStep(), m_ConstantInt(&step)) && !step.isZero();
}

//===-- Array accesses ----------------------------------------------------===//

static LogicalResult verifyIndices(Operation *op, Value array, size_t count) {
  unsigned rank = cast<ArrayType>(array.getType()).getRank();
  if (count == rank)
    return success();
  return op->emitOpError("has ")
         << count << " indices for an array of rank " << rank;
}

LogicalResult LoadOp::verify() {
  return verifyIndices(*this, getArray(), getIndices().size());
}
LogicalResult StoreOp::verify() {
  return verifyIndices(*this, getArray(), getIndices().size());
}
LogicalResult AtomicTakeOp::verify() {
  return verifyIndices(*this, getArray(), getIndices().size());
}

template <class Op> static LogicalResult verifyUpdate(Op op) {
  if (op.getValue().getType().isInteger(1))
    return op.emitOpError("cannot add, or take extrema of, bools");
  return verifyIndices(op, op.getArray(), op.getIndices().size());
}
LogicalResult AtomicAddOp::verify() { return verifyUpdate(*this); }
LogicalResult AtomicMinOp::verify() { return verifyUpdate(*this); }
LogicalResult AtomicMaxOp::verify() { return verifyUpdate(*this); }

LogicalResult AtomicFetchOp::verify() {
  StringRef kind = getKind();
  bool ofBits = kind == "and" || kind == "or" || kind == "xor";
  if (!ofBits && kind != "add" && kind != "mul" && kind != "min" &&
      kind != "max" && kind != "exchange")
    return emitOpError("has no kind `") << kind << "`";
  if (ofBits && isa<FloatType>(getValue().getType()))
    return emitOpError("cannot take the bits of floats");
  if (!ofBits && kind != "exchange")
    return verifyUpdate(*this);
  return verifyIndices(*this, getArray(), getIndices().size());
}

LogicalResult CompareExchangeOp::verify() {
  return verifyIndices(*this, getArray(), getIndices().size());
}

LogicalResult ExtentOp::verify() {
  uint64_t rank = getArray().getType().getRank();
  if (getDim() < rank)
    return success();
  return emitOpError("asks for extent ")
         << int64_t(getDim()) << " of an array of rank " << rank;
}

//===-- Messages ----------------------------------------------------------===//

static bool fits(char kind, Type type) {
  if (kind == 'f')
    return isa<FloatType>(type);
  if (kind == 'b')
    return type.isInteger(1);
  if (kind == elementKind)
    return type.isInteger(64);
  return (kind == 'i' || kind == 'u') && isa<IntegerType>(type) &&
         !type.isInteger(1);
}

static LogicalResult verifyMessage(Operation *op, StringRef text,
                                   ValueRange values, size_t most) {
  size_t next = 0;
  bool allFit = true;
  bool braces =
      filled(text, [&](char kind, std::string_view) {
        allFit &= kind != elementKind || op->hasAttr("refuses");
        for (int k = kind == elementKind ? 2 : 1; k > 0; --k, ++next)
          allFit &= next < values.size() && fits(kind, values[next].getType());
        return "";
      }).has_value();
  if (!braces || !allFit || next != values.size() || next > most)
    return op->emitOpError(
               "has a text that does not fit to its values, at most ")
           << most;
  return success();
}

LogicalResult PrintOp::verify() {
  return verifyMessage(*this, getText(), getValues(), mostPrinted);
}

LogicalResult AssertOp::verify() {
  return verifyMessage(*this, getText(), getValues(), mostAsserted);
}

//===-- The search for inf and NaN ----------------------------------------===//

static LogicalResult verifyText(Operation *op, StringRef text, size_t numbers) {
  if (text.count('%') <= numbers)
    return success();
  return op->emitOpError("has a text for more than ") << numbers << " numbers";
}

LogicalResult CheckFiniteOp::verify() {
  return verifyText(*this, getText(), getOperandValues().size() + 1);
}

LogicalResult CheckElementOp::verify() {
  if (getArray().getType().getValueType() != getValue().getType())
    return emitOpError("of a value that is no element of the array");
  if (failed(verifyIndices(*this, getArray(), getIndices().size())))
    return failure();
  return verifyText(*this, getText(), getAdded() ? 2 : 1);
}

} // namespace costate::ir
