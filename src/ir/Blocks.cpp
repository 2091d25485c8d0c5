/// What work items of a block do together.

#include "ir/Blocks.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "ir/BlockOps.cpp.inc"

namespace costate::ir {

LogicalResult SharedOp::verify() {
  if ((*this)->getParentOfType<RangeOp>() ||
      !(*this)->getParentOfType<KernelOp>())
    return success();
  return emitOpError("stands outside of a range");
}

LogicalResult SharedUpdateOp::verify() {
  bool ofBits = llvm::is_contained({"and", "or", "xor"}, getKind());
  if (!ofBits && !llvm::is_contained({"add", "mul", "min", "max"}, getKind()))
    return emitOpError("has no kind `") << getKind() << "`";
  if (ofBits && isa<FloatType>(getValue().getType()))
    return emitOpError("cannot take the bits of floats");
  return success(); // that a private array is none, its LocalOp says
}

/// By letters of costate/detail/group_operations.def.
static bool fits(char letter, Type type) {
  bool isBool = type.isInteger(1);
  switch (letter) {
  case 'b':
    return isBool;
  case 'v':
    return !isBool;
  case 'w':
    return !isBool && type.getIntOrFloatBitWidth() == 32;
  default:
    return type.isInteger(32);
  }
}

static LogicalResult verifyForm(GroupOp op, StringRef operands, char result) {
  bool holds = operands.size() == op.getValues().size() &&
               op.getNumResults() == (result != '-');
  for (size_t k = 0; holds && k < operands.size(); ++k)
    holds = fits(operands[k], op.getValues()[k].getType());
  if (holds && result != '-')
    holds = result == 'v'
                ? op.getResult(0).getType() == op.getValues()[1].getType()
                : fits(result, op.getResult(0).getType());
  if (holds)
    return success();
  return op.emitOpError("has operands or results that `")
         << op.getKind() << "` does not have";
}

LogicalResult GroupOp::verify() {
#define COSTATE_GROUP(Name, name, operands, result)                            \
  if (getKind() == name)                                                       \
    return verifyForm(*this, operands, result);
#include "costate/detail/group_operations.def"
  return emitOpError("knows no operation `") << getKind() << "`";
}

bool hasBlocks(RangeOp range) { return contains(range, isOfBlock); }

int64_t blockDimOf(RangeOp range) {
  auto wanted = range->getAttrOfType<IntegerAttr>(blockDimAttr);
  return wanted ? wanted.getInt() : usualBlockDim;
}

} // namespace costate::ir
