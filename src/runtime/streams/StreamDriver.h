#pragma once
/// A GPU whose driver has the interface of Api.h. What CUDA and HIP do in ways
/// of their own is virtual.

#include "runtime/gpu/Driver.h"
#include "runtime/gpu/Staging.h"
#include "runtime/streams/EventClock.h"
#include "runtime/streams/Memory.h"
#include "runtime/streams/PinnedSlot.h"
#include "runtime/streams/Readback.h"
#include "runtime/streams/StreamModule.h"

namespace costate::runtime::streams {

inline Address addressOf(const std::byte *pointer) {
  return reinterpret_cast<Address>(pointer);
}

struct Description {
  gpu::Properties properties;
  bool hasPools = false; ///< of memory, in the order of streams
};

/// What a driver is made of.
struct Opened {
  gpu::Properties properties;
  std::shared_ptr<Session> session;
  std::unique_ptr<Memory> memory;
};

using Describe = std::function<Result<Description>(DeviceNumber device)>;

/// The GPU number `ordinal`, as the driver counts them. NoDevice says what is
/// missing and what to do.
Result<Opened> openDevice(const Api &api, int ordinal,
                          const Describe &describe);

/// Reads the properties of one GPU; remembers the first failure.
class Query {
public:
  Query(const Api &api, DeviceNumber device) : api(api), device(device) {}

  /// `Which`: numbers that the driver gives its attributes.
  template <class Which> int attribute(Which which) {
    int value = 0;
    note(api.attribute(&value, static_cast<int>(which), device));
    return value;
  }
  template <class Which> size_t bytes(Which which) {
    return static_cast<size_t>(attribute(which));
  }
  std::string name();
  size_t memory();
  /// NoDevice if something was not answered.
  Result<> answered() const;

private:
  void note(Status status) { failed = failed ? failed : status; }
  const Api &api;
  DeviceNumber device;
  Status failed = success;
};

class StreamDriver : public gpu::Driver {
public:
  explicit StreamDriver(Opened opened);
  ~StreamDriver() override { (void)session->wait(); }

  const gpu::Properties &properties() const override { return gpuProperties; }
  Result<std::byte *> allocate(size_t bytes) override {
    streams::endDropped();
    return memory->allocate(bytes);
  }
  void release(std::byte *address) override { memory->release(address); }
  void disown(std::byte *, bool waits) override {
    if (waits)
      (void)session->wait();
  }
  Result<std::byte *> allocateHost(size_t bytes) override;
  void releaseHost(std::byte *address) override;
  Result<std::unique_ptr<gpu::SideStream>> openSideStream() override;
  Result<int64_t> residentBlocks(gpu::Module &module, const std::string &symbol,
                                 int blockThreads, size_t sharedBytes) override;
  size_t freeBytes() override { return memory->freeBytes(); }

  Result<> upload(std::byte *to, const void *from, size_t bytes) override;
  Result<> download(void *to, const std::byte *from, size_t bytes) override;
  Result<> copy(std::byte *to, const std::byte *from,
                const CopyShape &shape) override;
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override;

  Result<> prepare(gpu::Module &module, const std::string &symbol,
                   size_t sharedBytes) override;
  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words,
                  size_t sharedBytes) override;
  Result<> synchronize() override;

  Result<> useStream(std::optional<void *> stream) override;
  Result<bool> letWait(void *stream) override;
  uint64_t captureOfOthers() override { return session->captureOfOthers(); }
  Result<> goTo(gpu::Place place) override;
  Result<> giveToGraph(std::shared_ptr<void> held) override {
    return session->result(session->giveToGraph(std::move(held)),
                           "keep memory for a graph");
  }
  void endDropped() override { streams::endDropped(); }
  Result<> beginCapture() override;
  Result<std::shared_ptr<gpu::Captured>> endCapture() override;
  Result<> replay(gpu::Captured &captured) override;

  std::shared_ptr<profile::Moment> mark() override { return clock->mark(); }
  bool beginSeries() override { return session->beginSeries(); }
  Result<> endSeries() override {
    return session->result(session->endSeries(), "start a kernel");
  }
  bool isShared() override { return session->isShared(); }
  Counters &counters() override { return session->counters(); }

protected:
  /// Code cannot be loaded while a thread captures: what fills and copies need
  /// is, before that.
  virtual Result<> prepareOwnCode() { return {}; }
  /// See Tell.
  virtual Status tell(std::byte *, const std::byte *, size_t, uint64_t *) {
    return notSupported;
  }
  /// Repeats a pattern of 8 bytes whose halves differ; drivers fill with at
  /// most 4.
  virtual Result<> fillWords(std::byte *to, size_t words, uint64_t pattern);

  const gpu::Properties gpuProperties;
  const std::shared_ptr<Session> session;

private:
  Status copyRow(std::byte *to, const std::byte *from, size_t bytes) {
    return session->enqueue(session->api().copy, addressOf(to), addressOf(from),
                            bytes);
  }
  Status copyAll(std::byte *to, const std::byte *from, const CopyShape &shape);

  std::unique_ptr<Memory> memory;
  gpu::Staging<PinnedSlot> staging;
  Readback readback;
  std::shared_ptr<EventClock> clock;
  bool isOwnCodeReady = false; ///< for graphs
};

} // namespace costate::runtime::streams
