/// Apple's GPUs.

#include "base/MetalChip.h"
#include "compiler/Pipelines.h"
#include "compiler/targets/TargetBackend.h"
#include "compiler/targets/metal/Lacks.h"
#include "compiler/targets/metal/MetalSource.h"

namespace costate::compiler {
namespace {

class Metal final : public TargetBackend {
public:
  explicit Metal(const MetalFeatures &features) : features(features) {}

  const GpuShape *gpu() const override { return &metalShape; }

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
    Result<std::string> text = emitMetal(std::move(device));
    if (!text)
      return text.error();
    return Image{std::move(*text), ".metal"};
  }

private:
  MetalFeatures features;
};

std::unique_ptr<TargetBackend> make(const std::string &target) {
  std::optional<MetalFeatures> features = parseMetalChip(target);
  return features ? std::make_unique<Metal>(*features) : nullptr;
}

std::string usual() { return metalChip({}); }

} // namespace

const TargetKind &targets::metal() {
  static const TargetKind kind = {.targets = "Metal as metal3.2",
                                  .language = "metal",
                                  .usual = usual,
                                  .make = make};
  return kind;
}

} // namespace costate::compiler
