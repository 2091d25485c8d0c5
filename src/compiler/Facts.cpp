#include "compiler/Facts.h"

#include "autodiff/Differentiate.h"
#include "ir/Tape.h"
#include "sizing/Record.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace costate::compiler {

static DType dtypeOf(Type type) {
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (type.isF16())
    return DType::F16;
  auto integer = cast<IntegerType>(type);
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return isUnsigned ? DType::U8 : DType::I8;
  case 16:
    return isUnsigned ? DType::U16 : DType::I16;
  case 32:
    return isUnsigned ? DType::U32 : DType::I32;
  default:
    return isUnsigned ? DType::U64 : DType::I64;
  }
}

std::vector<syntax::Argument> argumentsOf(ir::KernelOp kernel) {
  std::vector<syntax::Argument> arguments;
  for (BlockArgument argument : kernel.getArguments()) {
    auto array = dyn_cast<ir::ArrayType>(argument.getType());
    Type type = array ? array.getElementType() : argument.getType();
    arguments.push_back(
        {dtypeOf(type), array ? static_cast<int>(array.getRank()) : -1});
    arguments.back().extents = ir::knownExtents(argument);
  }
  return arguments;
}

static runtime::Parameter parameterOf(ir::KernelOp kernel, unsigned number) {
  using Role = runtime::Parameter::Role;
  auto belongsTo = [&](StringRef attribute) {
    return kernel.getArgAttrOfType<IntegerAttr>(number, attribute);
  };
  auto array = dyn_cast<ir::ArrayType>(kernel.getArgumentTypes()[number]);
  int32_t rank = array ? static_cast<int32_t>(array.getRank()) : -1;
  if (IntegerAttr argument = belongsTo(ir::adjointOfAttr))
    return {Role::Adjoint, static_cast<uint32_t>(argument.getInt()), rank};
  if (IntegerAttr argument = belongsTo(ir::tangentOfAttr)) {
    runtime::Parameter parameter = parameterOf(kernel, argument.getInt());
    ++parameter.order;
    parameter.rank = rank;
    return parameter;
  }
  if (IntegerAttr argument = belongsTo(ir::versionOfAttr))
    return {Role::Version, static_cast<uint32_t>(argument.getInt()), rank,
            static_cast<uint32_t>(belongsTo(ir::partAttr).getInt())};
  if (IntegerAttr argument = belongsTo(ir::scratchOfAttr))
    return {Role::Scratch, static_cast<uint32_t>(argument.getInt()), rank};
  if (IntegerAttr argument = belongsTo(ir::ownersOfAttr))
    return {array.getElementType().isInteger(64) ? Role::Owners : Role::Marks,
            static_cast<uint32_t>(argument.getInt()), rank};
  return {Role::Primal, number, rank};
}

std::vector<runtime::Parameter> parametersOf(ir::KernelOp kernel) {
  std::vector<runtime::Parameter> parameters;
  for (unsigned k = 0; k < kernel.getNumArguments(); ++k)
    parameters.push_back(parameterOf(kernel, k));
  return parameters;
}

static unsigned argumentNumber(Value array) {
  return cast<BlockArgument>(array).getArgNumber();
}

static llvm::SmallVector<bool> activeFlags(ir::KernelOp primal,
                                           const std::vector<bool> &active) {
  llvm::SmallVector<bool> flags(active.begin(), active.end());
  if (!flags.empty())
    return flags;
  for (Type type : primal.getArgumentTypes()) {
    auto array = dyn_cast<ir::ArrayType>(type);
    flags.push_back(array && array.isFloat());
  }
  return flags;
}

void addAccesses(ir::KernelOp primal, std::vector<runtime::Access> &accesses) {
  accesses.resize(primal.getNumArguments());
  primal.walk([&](ir::ElementAccess op) {
    runtime::Access &access = accesses[argumentNumber(op.getArray())];
    access.written |= ir::writesElement(op) && !ir::isDirectory(op.getArray());
    // The gradient reads what a minimum or maximum has become.
    access.read |= !isa<ir::StoreOp, ir::AtomicAddOp>(op.getOperation());
  });
}

std::vector<runtime::Access> accessesOf(ir::KernelOp primal,
                                        const std::vector<bool> &active) {
  std::vector<runtime::Access> accesses;
  addAccesses(primal, accesses);
  auto activeWrites =
      autodiff::activeWrites(primal, activeFlags(primal, active));
  std::vector<ArraySection> sections = autodiff::writtenSections(primal);
  for (size_t k = 0; k < accesses.size(); ++k) {
    accesses[k].activeWrite = activeWrites[k];
    accesses[k].writtenSection = sections[k];
  }
  return accesses;
}

int64_t recordBytes(tape::PushOp push) {
  return sizing::recordBytes(push.getValues());
}

/// The most iterations that `loop` makes, if that is known.
static std::optional<uint64_t> maxTripCount(Operation *loop) {
  auto forLoop = dyn_cast<scf::ForOp>(loop);
  APInt lo, hi, step;
  if (!forLoop || !matchPattern(forLoop.getLowerBound(), m_ConstantInt(&lo)) ||
      !matchPattern(forLoop.getUpperBound(), m_ConstantInt(&hi)) ||
      !matchPattern(forLoop.getStep(), m_ConstantInt(&step)))
    return std::nullopt;
  return hi.sgt(lo) ? (hi - lo).getZExtValue() : 0;
}

/// The most bytes that `push` puts on the tape in a work item of a range or in
/// the serial code; the largest number if that is not known.
static uint64_t mostBytes(tape::PushOp push) {
  auto bytes = static_cast<uint64_t>(recordBytes(push));
  for (Operation *parent = push->getParentOp();
       !isa<ir::RangeOp, ir::KernelOp>(parent);
       parent = parent->getParentOp()) {
    if (isa<scf::IfOp>(parent))
      continue;
    std::optional<uint64_t> iterations = maxTripCount(parent);
    bytes =
        iterations ? llvm::SaturatingMultiply(bytes, *iterations) : UINT64_MAX;
  }
  return bytes;
}

bool growsTape(ir::KernelOp kernel) {
  uint64_t bytes = 0;
  kernel.walk([&](tape::PushOp push) {
    bytes = llvm::SaturatingAdd(bytes, mostBytes(push));
  });
  return bytes > runtime::smallTape;
}

int64_t recordBytes(ir::KernelOp kernel) {
  int64_t bytes = 0;
  kernel.walk([&](tape::PushOp push) { bytes += recordBytes(push); });
  return bytes;
}

bool fitsBudget(ir::KernelOp kernel) {
  return ir::contains<tape::BudgetOp>(kernel);
}

bool leftToChance(ir::KernelOp kernel) {
  return ir::contains(kernel, [](Operation *op) {
    auto access = dyn_cast<ir::ElementAccess>(op);
    return access && ir::fetchesElement(op) &&
           !ir::isDirectory(access.getArray()) &&
           op->getParentOfType<ir::RangeOp>();
  });
}

} // namespace costate::compiler
