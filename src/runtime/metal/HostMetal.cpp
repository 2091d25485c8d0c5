#include "runtime/metal/HostMetal.h"

#include "base/DeviceSymbol.h"
#include "runtime/Text.h"
#include "runtime/metal/HostProgram.h"
#include "runtime/simt/SimtDevice.h"

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

/// `function`, and those that run in its place.
std::vector<std::string> symbolsOf(const gpu::DeviceFunction &function) {
  std::vector<std::string> symbols;
  for (const std::string &symbol :
       {function.symbol, function.measure, function.sharedSymbol,
        function.drainSymbol, function.sortSymbol})
    if (!symbol.empty())
      symbols.push_back(symbol);
  return symbols;
}

class HostMetal final : public gpu::Driver {
public:
  HostMetal(int threads, const MetalFeatures &features)
      : host(simt::createDriver(optionsOf(threads))), info(host->properties()) {
    info.name = "metal-host";
    info.chip = metalChip(features);
    info.shape = metalShape;
    info.sharedPerBlock = sharedBytes - metalOwnBlockBytes;
    info.blocksProgress = false;
  }

  const gpu::Properties &properties() const override { return info; }

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    auto program = HostProgram::compile(code.image);
    if (!program)
      return program.error();
    auto made = std::make_shared<Code>();
    made->program = std::move(*program);
    gpu::DeviceCode compiled;
    for (const gpu::DeviceFunction &function : code.functions)
      for (const std::string &symbol : symbolsOf(function)) {
        void *entry = made->program->entry(metalName(deviceSymbol(symbol)));
        if (!entry)
          continue;
        compiled.addresses[symbol] = entry;
        compiled.functions.push_back(function);
        compiled.functions.back().symbol = symbol;
      }
    auto loaded = host->load(compiled);
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

  Result<std::byte *> allocate(size_t bytes) override {
    return host->allocate(bytes);
  }
  void release(std::byte *address) override { host->release(address); }
  size_t freeBytes() override { return host->freeBytes(); }
  Result<std::byte *> allocateHost(size_t bytes) override {
    return host->allocateHost(bytes);
  }
  void releaseHost(std::byte *address) override { host->releaseHost(address); }
  Result<std::unique_ptr<gpu::SideStream>> openSideStream() override {
    return host->openSideStream();
  }
  Result<> upload(std::byte *to, const void *from, size_t bytes) override {
    return host->upload(to, from, bytes);
  }
  Result<> download(void *to, const std::byte *from, size_t bytes) override {
    return host->download(to, from, bytes);
  }
  Result<> copy(std::byte *to, const std::byte *from,
                const CopyShape &shape) override {
    return host->copy(to, from, shape);
  }
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override {
    return host->fill(to, bytes, pattern, patternBytes);
  }
  Result<> synchronize() override { return host->synchronize(); }
  Result<> useStream(std::optional<void *> stream) override {
    return stream ? noStreams("metal-host") : Result<>();
  }
  Result<> beginCapture() override { return host->beginCapture(); }
  Result<std::shared_ptr<gpu::Captured>> endCapture() override {
    return host->endCapture();
  }
  Result<> replay(gpu::Captured &captured) override {
    return host->replay(captured);
  }
  Counters &counters() override { return host->counters(); }

private:
  static Code &codeOf(gpu::Module &module) {
    return static_cast<Code &>(module);
  }

  const std::shared_ptr<gpu::Driver> host;
  gpu::Properties info;
};

} // namespace

std::shared_ptr<gpu::Driver> createHostMetal(int threads,
                                             const MetalFeatures &features) {
  return std::make_shared<HostMetal>(threads, features);
}

} // namespace costate::runtime::metal
