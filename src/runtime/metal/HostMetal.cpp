#include "runtime/metal/HostMetal.h"

#include "base/DeviceSymbol.h"
#include "runtime/metal/HostProgram.h"
#include "runtime/simt/HostedDriver.h"

#include <utility>

namespace costate::runtime::metal {
namespace {

/// What the threads of a block share on Apple's GPUs.
constexpr size_t sharedBytes = 32 << 10;

struct Code final : gpu::Module {
  std::shared_ptr<HostProgram> program;
  std::shared_ptr<gpu::Module> ofHost;
};

simt::Options optionsOf(int threads) {
  simt::Options options;
  options.threads = threads;
  options.lanes = metalShape.lanes;
  options.sharedPerBlock = options.sharedPerMultiprocessor = sharedBytes;
  options.sharedOfChip = 0;
  options.sortsApart = true; // no other kernel has code that sorts
  return options;
}

class HostMetal final : public simt::HostedDriver {
public:
  HostMetal(int threads, const MetalFeatures &features)
      : HostedDriver(optionsOf(threads)) {
    info.name = "metal-host";
    info.chip = metalChip(features);
    info.shape = metalShape;
    info.sharedPerBlock = sharedBytes - metalOwnBlockBytes;
    info.blocksProgress = false;
  }

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    auto program = HostProgram::compile(code.image);
    if (!program)
      return program.error();
    auto made = std::make_shared<Code>();
    made->program = std::move(*program);
    auto loaded = loadEntries(code, [&](const std::string &symbol) {
      return made->program->entry(metalName(deviceSymbol(symbol)));
    });
    if (!loaded)
      return loaded.error();
    made->ofHost = std::move(*loaded);
    return std::shared_ptr<gpu::Module>(std::move(made));
  }
  Result<> prepare(gpu::Module &module, const std::string &symbol,
                   size_t bytes) override {
    return host->prepare(*codeOf(module).ofHost, symbol, bytes);
  }
  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words,
                  size_t bytes) override {
    Code &code = codeOf(module);
    return host->launch(*code.ofHost, symbol, grid, words,
                        bytes + code.program->blockBytes());
  }
  Result<int64_t> residentBlocks(gpu::Module &module, const std::string &symbol,
                                 int blockThreads, size_t bytes) override {
    return host->residentBlocks(*codeOf(module).ofHost, symbol, blockThreads,
                                bytes);
  }

private:
  static Code &codeOf(gpu::Module &module) {
    return static_cast<Code &>(module);
  }
};

} // namespace

std::shared_ptr<gpu::Driver> createHostMetal(int threads,
                                             const MetalFeatures &features) {
  return std::make_shared<HostMetal>(threads, features);
}

} // namespace costate::runtime::metal
