#pragma once
/// What the host code of a launch sees while the launch is captured.

#include "runtime/gpu/Driver.h"

namespace costate::runtime::gpu {

/// First a rehearsal: memory and code are acquired for real, but nothing of the
/// launch runs. Then, after keep(), `real` keeps what it is given, and there is
/// nothing left to allocate. Whatever waits is CannotCapture: it would look at
/// values that are not there yet.
class CapturingDriver final : public Driver {
public:
  explicit CapturingDriver(Driver &real) : real(real) {}
  /// The end of the rehearsal.
  void keep() { isRehearsal = false; }

  const Properties &properties() const override { return real.properties(); }
  Result<std::byte *> allocate(size_t bytes) override;
  void release(std::byte *address) override { real.release(address); }
  size_t freeBytes() override { return real.freeBytes(); }
  Result<std::byte *> allocateHost(size_t bytes) override;
  std::byte *onDevice(std::byte *host) override { return real.onDevice(host); }
  void releaseHost(std::byte *address) override { real.releaseHost(address); }
  Result<> upload(std::byte *to, const void *from, size_t bytes) override;
  Result<> download(void *to, const std::byte *from, size_t bytes) override;
  Result<> copy(std::byte *to, const std::byte *from,
                const CopyShape &shape) override;
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override;
  Result<std::shared_ptr<Module>> load(const DeviceCode &code) override;
  Result<> prepare(Module &module, const std::string &symbol,
                   size_t sharedBytes) override {
    return real.prepare(module, symbol, sharedBytes);
  }
  Result<> launch(Module &module, const std::string &symbol, Grid grid,
                  std::span<const uint64_t> words, size_t sharedBytes) override;
  Result<int64_t> residentBlocks(Module &module, const std::string &symbol,
                                 int blockThreads,
                                 size_t sharedBytes) override {
    return real.residentBlocks(module, symbol, blockThreads, sharedBytes);
  }
  Result<> synchronize() override;
  bool isShared() override { return real.isShared(); }
  Counters &counters() override { return real.counters(); }

  Result<> useStream(std::optional<void *> stream) override;
  Result<bool> letWait(void *stream) override;
  Result<> beginCapture() override;
  Result<std::shared_ptr<Captured>> endCapture() override;
  Result<> replay(Captured &captured) override;

private:
  Driver &real;
  bool isRehearsal = true;
};

} // namespace costate::runtime::gpu
