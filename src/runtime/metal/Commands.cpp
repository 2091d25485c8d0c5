#include "runtime/metal/Commands.h"

#include <algorithm>
#include <cstdint>

namespace costate::runtime::metal {

static constexpr unsigned long barrierOfBuffers = 1; // MTLBarrierScopeBuffers
static constexpr unsigned long statusError = 5; // MTLCommandBufferStatusError

void Commands::begin() {
  buffer = Owned(api, send(api, send(api, queue, "commandBuffer"), "retain"));
  encoder =
      Owned(api, send(api, send(api, buffer.get(), "computeCommandEncoder"),
                      "retain"));
}

void Commands::dispatch(const Dispatch &work) {
  Pool pool(api);
  if (!encoder)
    begin();
  struct {
    uint64_t words, locks;
  } launch{work.words, work.locks};
  Object to = encoder.get();
  send<void>(api, to, "setComputePipelineState:", work.pipeline);
  send<void>(api, to,
             "setBytes:length:atIndex:", static_cast<const void *>(&launch),
             (unsigned long)sizeof launch, 0ul);
  unsigned long bytes = (std::max<size_t>(work.blockBytes, 1) + 15) / 16 * 16;
  send<void>(api, to, "setThreadgroupMemoryLength:atIndex:", bytes, 0ul);
  Size blocks{static_cast<unsigned long>(work.blocks)},
      threads{static_cast<unsigned long>(work.blockThreads)};
  send<void>(api, to, "dispatchThreadgroups:threadsPerThreadgroup:", blocks,
             threads);
  send<void>(api, to, "memoryBarrierWithScope:", barrierOfBuffers);
}

Result<> Commands::wait() {
  if (!encoder)
    return {};
  Pool pool(api);
  send<void>(api, encoder.get(), "endEncoding");
  send<void>(api, buffer.get(), "commit");
  send<void>(api, buffer.get(), "waitUntilCompleted");
  bool hasFailed =
      send<unsigned long>(api, buffer.get(), "status") == statusError;
  Object error = send(api, buffer.get(), "error");
  Result<> done;
  if (hasFailed)
    done = Failure{ErrorCode::KernelFailed,
                   "a kernel has failed on the GPU: " + errorText(api, error) +
                       "; what its arrays hold is lost (`debug` in "
                       "KernelOptions finds indices out of range)"};
  encoder = Owned();
  buffer = Owned();
  return done;
}

std::string errorText(const Api &api, Object error) {
  if (!error)
    return "no reason given";
  Object text = send(api, error, "localizedDescription");
  const char *bytes = send<const char *>(api, text, "UTF8String");
  return bytes ? bytes : "";
}

} // namespace costate::runtime::metal
