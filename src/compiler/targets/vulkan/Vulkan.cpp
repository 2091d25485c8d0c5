/// Devices of Vulkan.

#include "base/VulkanChip.h"
#include "compiler/Pipelines.h"
#include "compiler/targets/TargetBackend.h"
#include "compiler/targets/vulkan/Lacks.h"
#include "compiler/targets/vulkan/Spirv.h"

namespace costate::compiler {
namespace {

class Vulkan final : public TargetBackend {
public:
  explicit Vulkan(const VulkanFeatures &features)
      : features(features), shape(shapeOf(features)) {}

  const GpuShape *gpu() const override { return &shape; }

  /// Functions of anything but numbers are inlined (`callsScalarOnly`).
  void addPasses(mlir::OpPassManager &passes,
                 const Options &options) const override {
    addDevicePasses(passes, options, {.maths = "libclc", .inlines = true});
  }

  std::optional<Fault> faultOf(mlir::Operation *op) const override {
    return lackOf(op, features);
  }

  bool hasImage() const override { return true; }
  Result<Image> emit(std::unique_ptr<llvm::Module> device) const override {
    Result<std::string> bytes = emitSpirv(std::move(device), features);
    if (!bytes)
      return bytes.error();
    return Image{std::move(*bytes), ".spv"};
  }

private:
  VulkanFeatures features;
  GpuShape shape;
};

std::unique_ptr<TargetBackend> make(const std::string &target) {
  std::optional<VulkanFeatures> features = parseVulkanChip(target);
  return features ? std::make_unique<Vulkan>(*features) : nullptr;
}

/// With most that SPIRV-Tools know.
std::string usual() {
  auto features = VulkanFeatures::everything();
  features.reconvergence = false; // younger than Debian's SPIRV-Tools
  features.warps = features.canHaveWarps();
  return vulkanChip(features);
}

} // namespace

const TargetKind &targets::vulkan() {
  static const TargetKind kind = {
      .targets = "Vulkan devices as vulkan1.2;subgroup=32;f64",
      .language = "spirv",
      .usual = usual,
      .make = make};
  return kind;
}

} // namespace costate::compiler
