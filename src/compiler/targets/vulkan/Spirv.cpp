#include "compiler/targets/vulkan/Spirv.h"

#include "compiler/GpuMachine.h"
#include "compiler/GpuModule.h"
#include "compiler/targets/vulkan/Library.h"
#include "conversion/LLVMToSPIRV/LLVMToSPIRV.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {

Result<std::string> emitSpirv(std::unique_ptr<Module> module,
                              const VulkanFeatures &features) {
  constexpr unsigned largestWords = 1 << 16;
  Result<std::unique_ptr<TargetMachine>> machine = genericGpuMachine();
  if (!machine)
    return machine.error();
  GpuForm form{"Vulkan devices", largestWords, vulkanLibrary(),
               shapeOf(features)};
  form.reconverges = features.gathers();
  form.fusesFloats = features.fma32;
  form.fusesDoubles = features.fma64;
  form.dividesLongs = !features.miscompilesI64Division;
  form.callsScalarOnly = true;
  if (Result<> made = makeKernels(*module, **machine, form); !made)
    return made.error();
  return conversion::convertToSpirv(std::move(module), **machine, features);
}

} // namespace costate::compiler
