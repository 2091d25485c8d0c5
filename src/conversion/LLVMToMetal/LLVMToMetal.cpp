#include "conversion/LLVMToMetal/LLVMToMetal.h"

#include "base/MetalChip.h"
#include "base/VulkanChip.h"
#include "conversion/LLVMToMetal/Emission.h"
#include "conversion/LLVMToSPIRV/Lift.h"
#include "conversion/LLVMToSPIRV/Prepare.h"

#include "llvm/IR/Module.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// What Metal computes itself, in the words of Prepare.h.
VulkanFeatures features() {
  VulkanFeatures has;
  has.div32 = has.sqrt32 = has.fma32 = true;
  has.fadd32 = true; // in global memory only
  return has;
}

/// Metal's names are those of C++.
void nameFunctions(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.setName(metalName(function.getName()));
}

LogicalResult emitAll(ModuleOp module, MetalText &to) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    if (failed(liftControlFlow(function)))
      return function.emitError("has control flow that cannot be structured");
    if (failed(emitFunction(to, function)))
      return failure();
  }
  return success();
}

} // namespace

Result<std::string> convertToMetal(std::unique_ptr<llvm::Module> module,
                                   llvm::TargetMachine &machine) {
  prepareForSpirv(*module, machine, features());
  nameFunctions(*module);
  Imported imported(std::move(module));
  uint64_t blockBytes = 0;
  SharedLayout shared;
  if (imported.module)
    shared = layOut(*imported.module, blockBytes);
  MetalText text(shared);
  if (!imported.module || failed(emitAll(*imported.module, text)))
    return Failure{ErrorCode::Internal,
                   "code for Metal cannot be made: " + imported.errors};
  return text.finish(blockBytes);
}

} // namespace costate::conversion
