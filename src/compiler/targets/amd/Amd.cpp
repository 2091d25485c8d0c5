/// AMD's GPUs.

#include "base/AmdChip.h"
#include "base/AmdHost.h"
#include "compiler/Pipelines.h"
#include "compiler/targets/TargetBackend.h"
#include "compiler/targets/amd/CodeObject.h"
#include "compiler/targets/amd/Disassembly.h"

namespace costate::compiler {
namespace {

class Amd final : public TargetBackend {
public:
  Amd(std::string chip, const GpuShape &shape, bool isHost)
      : chip(std::move(chip)), shape(shape), isHost(isHost) {}

  const GpuShape *gpu() const override { return &shape; }

  /// Functions of anything but numbers are inlined (`callsScalarOnly`).
  void addPasses(mlir::OpPassManager &passes,
                 const Options &options) const override {
    addDevicePasses(passes, options,
                    {.maths = "libclc",
                     .inlines = true,
                     .lanes = static_cast<unsigned>(shape.lanes)});
  }

  bool hasImage() const override { return true; }
  Result<Image> emit(std::unique_ptr<llvm::Module> device) const override {
    Result<std::string> bytes =
        isHost ? emitAmdForHost(*device, chip) : emitCodeObject(*device, chip);
    if (!bytes)
      return bytes.error();
    return Image{std::move(*bytes), isHost ? ".so" : ".hsaco"};
  }

private:
  std::string chip;
  GpuShape shape;
  bool isHost;
};

std::unique_ptr<TargetBackend> make(const std::string &target) {
  bool isHost = target.ends_with(amdOnHost);
  std::string chip =
      target.substr(0, target.size() - (isHost ? amdOnHost.size() : 0));
  std::optional<GpuShape> shape = parseAmdChip(chip);
  return shape ? std::make_unique<Amd>(chip, *shape, isHost) : nullptr;
}

} // namespace

const TargetKind &targets::amd() {
  static const TargetKind kind = {.targets = "AMD chips as gfx942",
                                  .language = "amdgcn",
                                  .usual = [] { return std::string("gfx942"); },
                                  .text = disassemble,
                                  .make = make};
  return kind;
}

} // namespace costate::compiler
