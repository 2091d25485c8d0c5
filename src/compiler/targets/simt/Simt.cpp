/// The host as a GPU: device functions are code of the host.

#include "compiler/Pipelines.h"
#include "compiler/Target.h"
#include "compiler/targets/TargetBackend.h"
#include "compiler/targets/simt/Places.h"

namespace costate::compiler {
namespace {

class Simt final : public TargetBackend {
public:
  const GpuShape *gpu() const override { return &shape; }

  void addPasses(mlir::OpPassManager &passes,
                 const Options &options) const override {
    addDevicePasses(passes, options, {.maths = host().maths});
  }

  void finish(llvm::Module &module) const override { tellPlaces(module); }

private:
  GpuShape shape;
};

} // namespace

const TargetKind &targets::simt() {
  static const TargetKind kind = {
      .targets = "simt",
      .make = [](const std::string &target) -> std::unique_ptr<TargetBackend> {
        return target == "simt" ? std::make_unique<Simt>() : nullptr;
      }};
  return kind;
}

} // namespace costate::compiler
