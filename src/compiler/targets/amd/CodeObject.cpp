#include "compiler/targets/amd/CodeObject.h"

#include "base/AmdChip.h"
#include "compiler/BackEnd.h"
#include "compiler/GpuMachine.h"
#include "compiler/GpuModule.h"
#include "compiler/targets/amd/HostForm.h"
#include "compiler/targets/amd/KernelIr.h"
#include "compiler/targets/amd/Library.h"
#include "compiler/targets/amd/Link.h"

#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {
namespace {

constexpr const char *tripleName = "amdgcn-amd-amdhsa";
constexpr const char *gpus = "AMD GPUs";

/// The greedy allocator of LLVM 22 copies a value that all lanes read later
/// where a branch leaves only some of them, when it splits live ranges.
void allocateWithoutSplits() {
  auto &known = cl::getRegisteredOptions();
  if (auto found = known.find("vgpr-regalloc"); found != known.end())
    found->second->addOccurrence(0, "vgpr-regalloc", "basic");
}

const llvm::Target *findAmd(std::string &error) {
  static const bool isInitialised = [] {
    allocateWithoutSplits();
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    return true;
  }();
  (void)isInitialised;
  return TargetRegistry::lookupTarget(Triple(tripleName), error);
}

bool knows(const llvm::Target &target, StringRef chip) {
  std::unique_ptr<MCSubtargetInfo> info(
      target.createMCSubtargetInfo(Triple(tripleName), "", ""));
  return info->isCPUStringValid(chip);
}

} // namespace

Result<std::unique_ptr<TargetMachine>> amdMachine(const std::string &chip) {
  std::string error;
  const llvm::Target *target = findAmd(error);
  if (!target)
    return Failure{ErrorCode::Internal, error};
  if (!knows(*target, chip))
    return Failure{ErrorCode::Internal, "there is no AMD chip `" + chip + "`"};
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      Triple(tripleName), chip, "", options, Reloc::PIC_, std::nullopt,
      CodeGenOptLevel::Default));
}

/// LLVM IR for AMDGPU, optimised.
static Result<> makeAmdKernels(Module &module, TargetMachine &machine,
                               const std::string &chip) {
  constexpr unsigned largestWords = 4095;
  std::optional<GpuShape> shape = parseAmdChip(chip);
  Result<std::unique_ptr<TargetMachine>> generic = genericGpuMachine();
  if (!generic)
    return generic.error();
  GpuForm form{gpus, largestWords, amdLibrary(), *shape};
  form.callsScalarOnly = true;
  if (Result<> made = makeKernels(module, **generic, form); !made)
    return made;
  convertToAmd(module, machine, *shape);
  return checkHasCode(module, "llvm.amdgcn.", gpus);
}

Result<std::string> emitCodeObject(Module &module, const std::string &chip) {
  Result<std::unique_ptr<TargetMachine>> machine = amdMachine(chip);
  if (!machine)
    return machine.error();
  BackEndErrors errors(module.getContext());
  if (Result<> made = makeAmdKernels(module, **machine, chip); !made)
    return made.error();
  Result<std::string> object =
      runBackEnd(module, **machine, CodeGenFileType::ObjectFile);
  if (Result<> made = errors.check(gpus); !made)
    return made.error();
  return object ? linkCodeObject(*object) : object;
}

Result<std::string> emitAmdForHost(Module &module, const std::string &chip) {
  Result<std::unique_ptr<TargetMachine>> machine = amdMachine(chip);
  if (!machine)
    return machine.error();
  if (Result<> made = makeAmdKernels(module, **machine, chip); !made)
    return made.error();
  return emitForHost(module);
}

} // namespace costate::compiler
