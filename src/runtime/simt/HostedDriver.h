#pragma once
/// A device whose kernels are code of the host, which runs them as the
/// simulated GPU; all that it has is that one's.

#include "code/DeviceCode.h"
#include "runtime/Text.h"
#include "runtime/gpu/Driver.h"
#include "runtime/simt/SimtDevice.h"

#include <functional>

namespace costate::runtime::simt {

class HostedDriver : public gpu::Driver {
public:
  explicit HostedDriver(const Options &options)
      : host(createDriver(options)), info(host->properties()) {}

  const gpu::Properties &properties() const override { return info; }

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
    return stream ? noStreams(info.name) : Result<>();
  }
  Result<> beginCapture() override { return host->beginCapture(); }
  Result<std::shared_ptr<gpu::Captured>> endCapture() override {
    return host->endCapture();
  }
  Result<> replay(gpu::Captured &captured) override {
    return host->replay(captured);
  }
  Counters &counters() override { return host->counters(); }

protected:
  /// Code whose kernels are DeviceEntries; null: there is none of the name.
  /// `areCollective`: all of them ask which lanes are together.
  Result<std::shared_ptr<gpu::Module>>
  loadEntries(const gpu::DeviceCode &code,
              const std::function<void *(const std::string &)> &entryOf,
              bool areCollective = false) {
    gpu::DeviceCode compiled;
    for (const gpu::DeviceFunction &function : code.functions)
      for (const std::string &symbol :
           {function.symbol, function.measure, function.sharedSymbol,
            function.drainSymbol, function.sortSymbol}) {
        void *entry = symbol.empty() ? nullptr : entryOf(symbol);
        if (!entry)
          continue;
        compiled.addresses[symbol] = entry;
        compiled.functions.push_back(function);
        compiled.functions.back().symbol = symbol;
        compiled.functions.back().collective |= areCollective;
      }
    return host->load(compiled);
  }

  const std::shared_ptr<gpu::Driver> host;
  gpu::Properties info;
};

} // namespace costate::runtime::simt
