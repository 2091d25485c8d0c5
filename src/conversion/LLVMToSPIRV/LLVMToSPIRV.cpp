#include "conversion/LLVMToSPIRV/LLVMToSPIRV.h"

#include "conversion/LLVMToSPIRV/Lift.h"
#include "conversion/LLVMToSPIRV/Prepare.h"
#include "conversion/LLVMToSPIRV/Translation.h"
#include "conversion/LLVMToSPIRV/Words.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMIRToLLVMTranslation.h"
#include "mlir/Target/LLVMIR/Import.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// A context for one module: the kernel's own has its own handlers.
class Workshop {
public:
  Workshop() : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    registerLLVMDialectImport(registry);
    registry.insert<scf::SCFDialect, cf::ControlFlowDialect, ub::UBDialect,
                    arith::ArithDialect, spirv::SPIRVDialect, DLTIDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (errors.empty() &&
          diagnostic.getSeverity() == DiagnosticSeverity::Error)
        errors = diagnostic.str();
      return success();
    });
  }

  MLIRContext context;
  std::string errors;
};

/// Where shared variables start, and what they take; what a launch adds comes
/// last.
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

LogicalResult translateAll(ModuleOp module, SpirvModule &to, uint64_t &bytes) {
  SharedLayout shared = layOut(module, bytes);
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    if (failed(liftControlFlow(function)))
      return function.emitError("has control flow that cannot be structured");
    if (failed(translateFunction(to, shared, function)))
      return failure();
  }
  return success();
}

Result<std::string> serialise(SpirvModule &made, uint64_t blockBytes,
                              Workshop &workshop) {
  OwningOpRef<spirv::ModuleOp> module = made.finish();
  auto fails = [&](const char *what) {
    return Failure{ErrorCode::Internal, std::string("code for Vulkan ") + what +
                                            ": " + workshop.errors};
  };
#ifdef COSTATE_ASSERTIONS
  if (failed(verify(*module)))
    return fails("is malformed");
#endif
  SmallVector<uint32_t, 0> words;
  spirv::SerializationOptions options;
  options.emitSymbolName = false;
  if (failed(spirv::serialize(*module, words, options)))
    return fails("cannot be serialised");
  complete(words, {.blockBytes = blockBytes,
                   .tables = made.tables(),
                   .reconverges = made.features().reconvergence});
  return std::string(reinterpret_cast<const char *>(words.data()),
                     words.size() * sizeof words[0]);
}

} // namespace

Result<std::string> convertToSpirv(std::unique_ptr<llvm::Module> module,
                                   llvm::TargetMachine &machine,
                                   const VulkanFeatures &features) {
  prepareForSpirv(*module, machine, features);
  Workshop workshop;
  OwningOpRef<ModuleOp> imported = translateLLVMIRToModule(
      std::move(module), &workshop.context, /*emitExpensiveWarnings=*/false,
      /*dropDICompositeTypeElements=*/false, /*loadAllDialects=*/false,
      /*preferUnregisteredIntrinsics=*/false);
  SpirvModule made(&workshop.context, features);
  uint64_t blockBytes = 0;
  if (!imported || failed(translateAll(*imported, made, blockBytes)))
    return Failure{ErrorCode::Internal,
                   "code for Vulkan cannot be made: " + workshop.errors};
  if (std::string lack = made.lacking(); !lack.empty())
    return Failure{ErrorCode::BadKernel,
                   "the kernel needs " + lack +
                       ", which this device does not have, in what the code "
                       "has besides its own numbers (sums of a range and "
                       "numbers in messages are f64); use another device"};
  return serialise(made, blockBytes, workshop);
}

} // namespace costate::conversion
