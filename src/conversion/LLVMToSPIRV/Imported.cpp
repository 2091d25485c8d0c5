#include "conversion/LLVMToSPIRV/Imported.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMIRToLLVMTranslation.h"
#include "mlir/Target/LLVMIR/Import.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace costate::conversion {

Imported::Imported(std::unique_ptr<llvm::Module> from)
    : context(MLIRContext::Threading::DISABLED) {
  DialectRegistry registry;
  registerLLVMDialectImport(registry);
  registry.insert<scf::SCFDialect, cf::ControlFlowDialect, ub::UBDialect,
                  arith::ArithDialect, spirv::SPIRVDialect, DLTIDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (errors.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      errors = diagnostic.str();
    return success();
  });
  module = translateLLVMIRToModule(
      std::move(from), &context, /*emitExpensiveWarnings=*/false,
      /*dropDICompositeTypeElements=*/false, /*loadAllDialects=*/false,
      /*preferUnregisteredIntrinsics=*/false);
}

SharedLayout layOut(ModuleOp module, uint64_t &bytes) {
  SharedLayout layout;
  DataLayout sizes(module);
  bytes = 0;
  auto add = [&](LLVM::GlobalOp variable) {
    constexpr uint64_t alignment = 16;
    layout[variable.getSymName()] = bytes;
    bytes += sizes.getTypeSize(variable.getGlobalType()).getFixedValue();
    bytes = llvm::alignTo(bytes, alignment);
  };
  SmallVector<LLVM::GlobalOp> last;
  for (auto variable : module.getOps<LLVM::GlobalOp>()) {
    if (variable.getAddrSpace() != 3)
      continue;
    if (variable.getLinkage() == LLVM::Linkage::External)
      last.push_back(variable);
    else
      add(variable);
  }
  for (LLVM::GlobalOp variable : last)
    add(variable);
  return layout;
}

/// The bytes of what numbers are in memory.
static std::string bytesOf(DenseElementsAttr numbers) {
  std::string bytes;
  auto add = [&](const APInt &number) {
    for (unsigned at = 0; at < number.getBitWidth(); at += 8)
      bytes += static_cast<char>(number.lshr(at).trunc(8).getZExtValue());
  };
  if (isa<FloatType>(numbers.getElementType()))
    for (const APFloat &number : numbers.getValues<APFloat>())
      add(number.bitcastToAPInt());
  else
    for (const APInt &number : numbers.getValues<APInt>())
      add(number.zext(llvm::alignTo(number.getBitWidth(), 8)));
  return bytes;
}

FailureOr<std::string> tableBytes(const DataLayout &layout,
                                  LLVM::AddressOfOp op) {
  auto table = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
      op, op.getGlobalNameAttr());
  Attribute contents = table.getValueOrNull();
  if (auto text = dyn_cast_or_null<StringAttr>(contents))
    return text.str();
  if (auto numbers = dyn_cast_or_null<DenseElementsAttr>(contents))
    return bytesOf(numbers);
  if (isa_and_nonnull<LLVM::ZeroAttr>(contents))
    return std::string(
        layout.getTypeSize(table.getGlobalType()).getFixedValue(), '\0');
  return op.emitError("the contents of a table are not numbers");
}

bool isKernel(LLVM::LLVMFuncOp function) {
  return function.getCConv() == LLVM::cconv::CConv::PTX_Kernel;
}

} // namespace costate::conversion
