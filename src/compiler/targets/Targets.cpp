#include "compiler/targets/TargetBackend.h"

namespace costate::compiler {

std::span<const TargetKind *const> targetKinds() {
  static const TargetKind *const kinds[] = {
#define COSTATE_TARGET(name) &targets::name(),
#include "compiler/targets/Targets.def"
  };
  return kinds;
}

const TargetKind *kindWith(const std::string &language) {
  for (const TargetKind *kind : targetKinds())
    if (kind->language && kind->language == language)
      return kind;
  return nullptr;
}

bool isOf(const std::string &target, const TargetKind &kind) {
  return kind.make(target) != nullptr;
}

Result<std::unique_ptr<TargetBackend>> findTarget(const std::string &target) {
  std::string known;
  for (const TargetKind *kind : targetKinds()) {
    if (auto found = kind->make(target))
      return found;
    known.append(known.empty() ? "" : ", ").append(kind->targets);
  }
  return Failure{ErrorCode::Internal,
                 "nothing makes code for `" + target + "`; there are " + known};
}

bool runsOnGpu(const std::string &target) {
  auto found = findTarget(target);
  return found && (*found)->gpu();
}

Result<Image> TargetBackend::emit(std::unique_ptr<llvm::Module>) const {
  return Failure{ErrorCode::Internal, "the host runs device functions itself"};
}

} // namespace costate::compiler
