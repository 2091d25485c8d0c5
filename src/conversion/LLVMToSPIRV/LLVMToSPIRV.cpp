#include "conversion/LLVMToSPIRV/LLVMToSPIRV.h"

#include "conversion/LLVMToSPIRV/Imported.h"
#include "conversion/LLVMToSPIRV/Lift.h"
#include "conversion/LLVMToSPIRV/Prepare.h"
#include "conversion/LLVMToSPIRV/Translation.h"
#include "conversion/LLVMToSPIRV/Words.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace costate::conversion {
namespace {

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
                              const Imported &imported) {
  OwningOpRef<spirv::ModuleOp> module = made.finish();
  auto fails = [&](const char *what) {
    return Failure{ErrorCode::Internal, std::string("code for Vulkan ") + what +
                                            ": " + imported.errors};
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
  Imported imported(std::move(module));
  SpirvModule made(&imported.context, features);
  uint64_t blockBytes = 0;
  if (!imported.module ||
      failed(translateAll(*imported.module, made, blockBytes)))
    return Failure{ErrorCode::Internal,
                   "code for Vulkan cannot be made: " + imported.errors};
  if (std::string lack = made.lacking(); !lack.empty())
    return Failure{ErrorCode::BadKernel,
                   "the kernel needs " + lack +
                       ", which this device does not have, in what the code "
                       "has besides its own numbers (sums of a range and "
                       "numbers in messages are f64); use another device"};
  return serialise(made, blockBytes, imported);
}

} // namespace costate::conversion
