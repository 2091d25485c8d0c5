#include "runtime/gpu/CapturingDriver.h"

namespace costate::runtime::gpu {

static Failure waitFailure() {
  return {ErrorCode::CannotCapture,
          "the host needs a value that only the device knows before it can go "
          "on: what a range runs over, a condition around one, the size of a "
          "tape, or whether a check has failed; launch this kernel outside of "
          "the graph"};
}

static Failure changeFailure() {
  return {ErrorCode::CannotCapture,
          "the launch needs other memory now than a moment ago; capture it "
          "again"};
}

Result<std::byte *> CapturingDriver::allocate(size_t bytes) {
  return isRehearsal ? real.allocate(bytes) : changeFailure();
}

Result<std::byte *> CapturingDriver::allocateHost(size_t bytes) {
  return isRehearsal ? real.allocateHost(bytes) : changeFailure();
}

/// What a rehearsal uploads or fills is memory of the device's own.
Result<> CapturingDriver::upload(std::byte *to, const void *from,
                                 size_t bytes) {
  return isRehearsal ? real.upload(to, from, bytes) : changeFailure();
}

Result<> CapturingDriver::fill(std::byte *to, size_t bytes, const void *pattern,
                               size_t patternBytes) {
  return real.fill(to, bytes, pattern, patternBytes);
}

Result<> CapturingDriver::download(void *, const std::byte *, size_t) {
  return waitFailure();
}

Result<> CapturingDriver::synchronize() { return waitFailure(); }

Result<> CapturingDriver::copy(std::byte *to, const std::byte *from,
                               const CopyShape &shape) {
  return isRehearsal ? Result<>() : real.copy(to, from, shape);
}

Result<> CapturingDriver::launch(Module &module, const std::string &symbol,
                                 Grid grid, std::span<const uint64_t> words,
                                 size_t sharedBytes) {
  return isRehearsal ? real.prepare(module, symbol, sharedBytes)
                     : real.launch(module, symbol, grid, words, sharedBytes);
}

Result<std::shared_ptr<Module>> CapturingDriver::load(const DeviceCode &code) {
  if (isRehearsal)
    return real.load(code);
  return changeFailure();
}

Result<> CapturingDriver::useStream(std::optional<void *>) {
  return changeFailure();
}
Result<bool> CapturingDriver::letWait(void *) { return changeFailure(); }
Result<> CapturingDriver::beginCapture() { return changeFailure(); }
Result<std::shared_ptr<Captured>> CapturingDriver::endCapture() {
  return changeFailure();
}
Result<> CapturingDriver::replay(Captured &) { return changeFailure(); }

} // namespace costate::runtime::gpu
