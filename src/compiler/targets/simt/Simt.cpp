/// The host as a GPU: device functions are code of the host.

#include "base/SimtChip.h"
#include "compiler/Pipelines.h"
#include "compiler/Target.h"
#include "compiler/targets/TargetBackend.h"
#include "compiler/targets/simt/Places.h"

namespace costate::compiler {
namespace {

class Simt final : public TargetBackend {
public:
  explicit Simt(const GpuShape &shape) : shape(shape) {}

  const GpuShape *gpu() const override { return &shape; }

  void addPasses(mlir::OpPassManager &passes,
                 const Options &options) const override {
    addDevicePasses(
        passes, options,
        {.maths = host().maths, .lanes = static_cast<unsigned>(shape.lanes)});
  }

  void finish(llvm::Module &module) const override { tellPlaces(module); }

private:
  GpuShape shape;
};

} // namespace

const TargetKind &targets::simt() {
  static const TargetKind kind = {
      .targets = "simt, simt;lanes=64",
      .make = [](const std::string &target) -> std::unique_ptr<TargetBackend> {
        std::optional<GpuShape> shape = parseSimtChip(target);
        return shape ? std::make_unique<Simt>(*shape) : nullptr;
      }};
  return kind;
}

} // namespace costate::compiler
