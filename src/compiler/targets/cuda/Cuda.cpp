/// NVIDIA's GPUs.

#include "compiler/Pipelines.h"
#include "compiler/targets/TargetBackend.h"
#include "compiler/targets/cuda/Nvidia.h"

namespace costate::compiler {
namespace {

class Cuda final : public TargetBackend {
public:
  explicit Cuda(std::string chip) : chip(std::move(chip)) {}

  const GpuShape *gpu() const override { return &nvidiaShape; }

  void addPasses(mlir::OpPassManager &passes,
                 const Options &options) const override {
    addDevicePasses(passes, options, {.maths = "libclc"});
  }

  bool hasImage() const override { return true; }
  Result<Image> emit(std::unique_ptr<llvm::Module> device) const override {
    Result<std::string> text = emitPtx(*device, chip);
    if (!text)
      return text.error();
    return Image{std::move(*text), ".ptx"};
  }

private:
  std::string chip;
};

} // namespace

const TargetKind &targets::cuda() {
  static const TargetKind kind = {
      .targets = "NVIDIA chips as sm_90",
      .language = "ptx",
      .usual = [] { return std::string("sm_90"); },
      .make = [](const std::string &target) -> std::unique_ptr<TargetBackend> {
        bool isChip = target.starts_with("sm_");
        return isChip ? std::make_unique<Cuda>(target) : nullptr;
      }};
  return kind;
}

} // namespace costate::compiler
