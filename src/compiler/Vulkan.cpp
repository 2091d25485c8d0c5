#include "compiler/Vulkan.h"

#include "base/VulkanChip.h"
#include "compiler/GpuModule.h"
#include "compiler/Nvidia.h"
#include "conversion/LLVMToSPIRV/LLVMToSPIRV.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {

bool isVulkan(const std::string &target) {
  return parseVulkanChip(target).has_value();
}

Result<std::string> emitSpirv(std::unique_ptr<Module> module,
                              const std::string &target) {
  std::optional<VulkanFeatures> features = parseVulkanChip(target);
  if (!features)
    return Failure{ErrorCode::Internal,
                   "there is no Vulkan device `" + target + "`"};
  // Address spaces, intrinsics of threads and costs are those of NVIDIA.
  constexpr unsigned largestWords = 1 << 16;
  Result<std::unique_ptr<TargetMachine>> machine = nvidiaMachine("sm_80", 1);
  if (!machine)
    return machine.error();
  GpuForm form{"Vulkan devices", largestWords, DeviceLibrary::Vulkan};
  form.knowsPlaces = true;
  form.hasWarps = features->warps;
  form.reconverges = features->gathers();
  form.fusesFloats = features->fma32;
  form.fusesDoubles = features->fma64;
  form.dividesLongs = !features->miscompilesI64Division;
  form.callsScalarOnly = true;
  if (Result<> made = makeKernels(*module, **machine, form); !made)
    return made.error();
  return conversion::convertToSpirv(std::move(module), **machine, *features);
}

} // namespace costate::compiler
