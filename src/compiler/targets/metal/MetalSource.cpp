#include "compiler/targets/metal/MetalSource.h"

#include "base/MetalChip.h"
#include "compiler/GpuMachine.h"
#include "compiler/GpuModule.h"
#include "compiler/targets/vulkan/Library.h"
#include "conversion/LLVMToMetal/LLVMToMetal.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {

Result<std::string> emitMetal(std::unique_ptr<Module> module) {
  constexpr unsigned largestWords = 1 << 16;
  Result<std::unique_ptr<TargetMachine>> machine = genericGpuMachine();
  if (!machine)
    return machine.error();
  // Simdgroups are subgroups, whose collectives are those of Vulkan.
  GpuForm form{"Metal devices", largestWords, vulkanLibrary(), metalShape};
  form.fusesDoubles = false;
  form.callsScalarOnly = true;
  if (Result<> made = makeKernels(*module, **machine, form); !made)
    return made.error();
  return conversion::convertToMetal(std::move(module), **machine);
}

} // namespace costate::compiler
