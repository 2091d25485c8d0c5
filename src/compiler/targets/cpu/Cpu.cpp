/// Vectors and threads of this machine.

#include "compiler/Groups.h"
#include "compiler/Pipelines.h"
#include "compiler/targets/TargetBackend.h"
#include "ir/Blocks.h"

namespace costate::compiler {
namespace {

class Cpu final : public TargetBackend {
public:
  void addPasses(mlir::OpPassManager &passes,
                 const Options &options) const override {
    addHostPasses(passes, options);
  }

  std::optional<Fault> faultOf(mlir::Operation *op) const override {
    if (!ir::isOfBlock(op))
      return std::nullopt;
    return Fault{groupName(op) + " is for GPUs: on the CPU there are no blocks",
                 "choose cuda, vulkan or simt, which runs the code of a GPU on "
                 "the host; or write the range without blocks"};
  }
};

} // namespace

const TargetKind &targets::cpu() {
  static const TargetKind kind = {
      .targets = "cpu",
      .make = [](const std::string &target) -> std::unique_ptr<TargetBackend> {
        return target == "cpu" ? std::make_unique<Cpu>() : nullptr;
      }};
  return kind;
}

} // namespace costate::compiler
