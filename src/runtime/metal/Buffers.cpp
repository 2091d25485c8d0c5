#include "runtime/metal/Buffers.h"

#include "runtime/Text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace costate::runtime::metal {

/// MTLResourceStorageModeShared, MTLResourceHazardTrackingModeUntracked: nobody
/// but us knows what code does behind addresses.
static constexpr unsigned long sharedUntracked = 1 << 8;

Result<> Buffers::open(Buffers &buffers, const Api &api, Object device,
                       Object queue) {
  buffers.api = &api;
  buffers.device = device;
  Object form = api.findClass("MTLResidencySetDescriptor");
  if (!form)
    return Failure{ErrorCode::NoDevice,
                   "Metal is too old: it has no residency sets; update to "
                   "macOS 15 or newer, or choose another device"};
  Owned descriptor(api, send(api, form, "new"));
  Object error = nullptr;
  buffers.residency =
      Owned(api, send(api, device, "newResidencySetWithDescriptor:error:",
                      descriptor.get(), &error));
  if (!buffers.residency)
    return Failure{ErrorCode::NoDevice,
                   "the GPU keeps no memory for Metal; choose another device"};
  send<void>(api, queue, "addResidencySet:", buffers.residency.get());
  return {};
}

Result<const Buffer *> Buffers::allocate(size_t bytes) {
  Pool pool(*api);
  Buffer made;
  made.object =
      Owned(*api, send(*api, device, "newBufferWithLength:options:",
                       static_cast<unsigned long>(bytes), sharedUntracked));
  if (!made.object)
    return Failure{ErrorCode::OutOfMemory,
                   bytesText(bytes) + " do not fit into the memory that the "
                                      "GPU may use; release arrays"};
  Object object = made.object.get();
  made.onHost =
      static_cast<std::byte *>(send<void *>(*api, object, "contents"));
  made.onDevice =
      reinterpret_cast<std::byte *>(send<uint64_t>(*api, object, "gpuAddress"));
  made.bytes = bytes;
  std::memset(made.onHost, 0, bytes);
  std::lock_guard lock(mutex);
  send<void>(*api, residency.get(), "addAllocation:", object);
  send<void>(*api, residency.get(), "commit");
  bytesInUse += bytes;
  const std::byte *key = made.onDevice;
  return &(all[key] = std::move(made));
}

void Buffers::erase(Map::iterator place) {
  Pool pool(*api);
  send<void>(*api, residency.get(),
             "removeAllocation:", place->second.object.get());
  send<void>(*api, residency.get(), "commit");
  bytesInUse -= place->second.bytes;
  all.erase(place);
}

void Buffers::release(std::byte *onDevice) {
  std::lock_guard lock(mutex);
  if (auto found = all.find(onDevice); found != all.end())
    erase(found);
}

void Buffers::releaseHost(std::byte *onHost) {
  release(deviceAddressOf(onHost));
}

std::byte *Buffers::deviceAddressOf(std::byte *onHost) {
  std::lock_guard lock(mutex);
  for (const auto &[address, buffer] : all)
    if (buffer.onHost <= onHost && onHost < buffer.onHost + buffer.bytes)
      return buffer.onDevice + (onHost - buffer.onHost);
  return nullptr;
}

std::byte *Buffers::hostAddressOf(const std::byte *address) {
  std::lock_guard lock(mutex);
  auto after = all.upper_bound(address);
  if (after == all.begin())
    return nullptr;
  const Buffer &buffer = std::prev(after)->second;
  auto offset = static_cast<size_t>(address - buffer.onDevice);
  return offset < buffer.bytes ? buffer.onHost + offset : nullptr;
}

size_t Buffers::used() {
  std::lock_guard lock(mutex);
  return bytesInUse;
}

} // namespace costate::runtime::metal
