#include "runtime/streams/Memory.h"

#include "runtime/Text.h"

#include <cstdint>

namespace costate::runtime::streams {

Result<std::unique_ptr<Memory>> Memory::open(std::shared_ptr<Session> session,
                                             DeviceNumber device, size_t total,
                                             bool hasPools) {
  const Api &api = session->api();
  std::unique_ptr<Memory> memory(new Memory(std::move(session), total));
  Status status = hasPools ? memory->createPool(device) : success;
  if (status == success || status == notSupported)
    return memory;
  return Failure{ErrorCode::NoDevice,
                 "the GPU offers no memory: " + api.text(status) +
                     "; choose another device"};
}

/// A pool of our own: others of this process keep theirs as they are.
Status Memory::createPool(DeviceNumber device) {
  const Api &api = session->api();
  PoolProperties properties;
  properties.location = device;
  if (Status status = session->call(api.createPool, &pool, &properties))
    return status;
  uint64_t keepAll = UINT64_MAX;
  return session->call(api.setPool, pool, PoolAttribute::ReleaseThreshold,
                       &keepAll);
}

Memory::~Memory() {
  freeReleased();
  if (pool)
    (void)session->call(session->api().destroyPool, pool);
}

Status Memory::tryAllocate(Address &address, size_t bytes) const {
  const Api &api = session->api();
  Status status =
      pool ? session->enqueue(api.allocateFromPool, &address, bytes, pool)
           : session->call(api.allocate, &address, bytes);
  return status == success && !address ? outOfMemory : status; // old HIP
}

/// Gives back what is free, once it is.
void Memory::trim() const {
  if (session->wait() == success && pool)
    (void)session->call(session->api().trimPool, pool, size_t(0));
}

Result<std::byte *> Memory::allocate(size_t bytes) {
  if (bytes == 0)
    return nullptr;
  {
    std::lock_guard lock(mutex);
    freeReleased();
  }
  Address address = 0;
  Status status = bytes <= total ? tryAllocate(address, bytes) : outOfMemory;
  if (status == outOfMemory && bytes <= total) {
    trim();
    status = tryAllocate(address, bytes);
  }
  if (status == success)
    return reinterpret_cast<std::byte *>(address);
  if (status != outOfMemory)
    return session->failure(status, "allocate " + bytesText(bytes));
  return Failure{ErrorCode::OutOfMemory,
                 bytesText(bytes) + " do not fit: " + bytesText(freeBytes()) +
                     " of the GPU's " + bytesText(total) +
                     " are free; release arrays, or end other programs that "
                     "use this GPU"};
}

void Memory::release(std::byte *address) {
  if (!address)
    return;
  std::lock_guard lock(mutex);
  released.push_back(reinterpret_cast<Address>(address));
  freeReleased();
}

Status Memory::free(Address address) const {
  const Api &api = session->api();
  if (pool)
    return session->enqueue(api.freeAsync, address);
  Status status = session->wait();
  return status ? status : session->call(api.free, address);
}

/// What cannot be freed while somebody captures the stream waits for its end.
void Memory::freeReleased() {
  std::erase_if(released, [&](Address address) {
    return free(address) != captureUnsupported;
  });
}

size_t Memory::poolBytes(PoolAttribute attribute) const {
  uint64_t bytes = 0;
  if (pool)
    (void)session->call(session->api().getPool, pool, attribute, &bytes);
  return bytes;
}

size_t Memory::freeBytes() const {
  size_t free = 0, all = 0;
  if (session->call(session->api().memoryInfo, &free, &all) != success)
    return 0;
  return free + poolBytes(PoolAttribute::Reserved) -
         poolBytes(PoolAttribute::Used);
}

} // namespace costate::runtime::streams
