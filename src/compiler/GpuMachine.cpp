#include "compiler/GpuMachine.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {

static constexpr const char *tripleName = "nvptx64-nvidia-cuda";

const llvm::Target *findNvptx(std::string &error) {
  static const bool isInitialised = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)isInitialised;
  return TargetRegistry::lookupTarget(Triple(tripleName), error);
}

Result<std::unique_ptr<TargetMachine>>
nvptxMachine(const std::string &chip, const std::string &features) {
  std::string error;
  const llvm::Target *target = findNvptx(error);
  if (!target)
    return Failure{ErrorCode::Internal, error};
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      Triple(tripleName), chip, features, options, std::nullopt));
}

Result<std::unique_ptr<TargetMachine>> genericGpuMachine() {
  return nvptxMachine("sm_80", "+ptx78");
}

} // namespace costate::compiler
