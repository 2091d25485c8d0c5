#include "runtime/streams/StreamDriver.h"

#include "runtime/streams/SideCopies.h"

#include <algorithm>
#include <cstring>

namespace costate::runtime::streams {
namespace {

class StreamGraph final : public gpu::Captured {
public:
  StreamGraph(std::shared_ptr<Session> session, Statistics statistics)
      : statistics(statistics), session(std::move(session)) {}
  ~StreamGraph() override {
    if (run)
      (void)session->call(session->api().destroyGraphRun, run);
  }

  GraphRun run = nullptr;
  const Statistics statistics; ///< of one replay

private:
  std::shared_ptr<Session> session;
};

StreamModule &moduleOf(gpu::Module &module) {
  return static_cast<StreamModule &>(module);
}

} // namespace

StreamDriver::StreamDriver(Opened opened)
    : gpuProperties(std::move(opened.properties)),
      session(std::move(opened.session)), memory(std::move(opened.memory)),
      staging(session),
      readback(session, [this](auto... what) { return tell(what...); }),
      clock(std::make_shared<EventClock>(session)) {}

Result<std::byte *> StreamDriver::allocateHost(size_t bytes) {
  void *made = nullptr;
  Status status = session->call(session->api().allocateHost, &made, bytes,
                                hostForAllDevices | hostForCode);
  if (status != success)
    return session->failure(status, "allocate memory of the host");
  return static_cast<std::byte *>(made);
}

void StreamDriver::releaseHost(std::byte *address) {
  (void)session->wait();
  (void)session->call(session->api().freeHost, static_cast<void *>(address));
}

Result<std::unique_ptr<gpu::SideStream>> StreamDriver::openSideStream() {
  return openSideCopies(session);
}

Result<int64_t> StreamDriver::residentBlocks(gpu::Module &module,
                                             const std::string &symbol,
                                             int blockThreads,
                                             size_t sharedBytes) {
  Result<Function> function = moduleOf(module).find(symbol, sharedBytes);
  if (!function)
    return function.error();
  int blocks = 0;
  Status status = session->call(session->api().residentBlocks, &blocks,
                                *function, blockThreads, sharedBytes);
  if (status != success)
    return session->failure(status, "ask how much of `" + symbol + "` fits");
  return int64_t(std::max(blocks, 1)) * gpuProperties.multiprocessors;
}

//===-- Copies and fills --------------------------------------------------===//

Result<> StreamDriver::upload(std::byte *to, const void *from, size_t bytes) {
  if (session->captureOfOthers())
    return session->failure(captureUnsupported, "receive data");
  session->counters().uploads += bytes > 0;
  return session->result(staging.upload(to, from, bytes), "receive data");
}

Result<> StreamDriver::download(void *to, const std::byte *from, size_t bytes) {
  if (bytes == 0)
    return {};
  if (session->captureOfOthers())
    return session->failure(captureUnsupported, "send data");
  ++session->counters().downloads;
  auto done = session->result(readback.download(to, from, bytes), "send data");
  return done ? session->doubts() : done;
}

/// Drivers do not take all pitches: none of 2 GiB, for one.
Status StreamDriver::copyAll(std::byte *to, const std::byte *from,
                             const CopyShape &shape) {
  Status status = session->withStream([&](Stream stream) {
    return session->within([&] {
      return session->api().copyRows({addressOf(to), shape.toPitch},
                                     {addressOf(from), shape.fromPitch},
                                     shape.bytes, shape.rows, stream);
    });
  });
  if (status != invalidValue)
    return status;
  status = success;
  for (size_t row = 0; row < shape.rows && status == success; ++row)
    status = copyRow(to + row * shape.toPitch, from + row * shape.fromPitch,
                     shape.bytes);
  return status;
}

Result<> StreamDriver::copy(std::byte *to, const std::byte *from,
                            const CopyShape &shape) {
  if (shape.size() == 0)
    return {};
  ++session->counters().copies;
  Status status = shape.rows == 1 ? copyRow(to, from, shape.bytes)
                                  : copyAll(to, from, shape);
  return session->result(status, "copy data");
}

Result<> StreamDriver::fill(std::byte *to, size_t bytes, const void *pattern,
                            size_t patternBytes) {
  if (bytes == 0)
    return {};
  ++session->counters().fills;
  const Api &api = session->api();
  uint64_t value = 0;
  std::memcpy(&value, pattern, patternBytes);
  auto low = static_cast<uint32_t>(value);
  bool isRepeated = patternBytes == 8 && low == value >> 32;
  if (patternBytes == 8 && !isRepeated)
    return fillWords(to, bytes / 8, value);
  Status status =
      patternBytes == 1
          ? session->enqueue(api.fill8, addressOf(to),
                             static_cast<unsigned char>(value), bytes)
      : patternBytes == 2
          ? session->enqueue(api.fill16, addressOf(to),
                             static_cast<unsigned short>(value), bytes / 2)
          : session->enqueue(api.fill32, addressOf(to), low, bytes / 4);
  return session->result(status, "fill memory");
}

/// What is filled already is copied behind itself, so that there are as many
/// copies as the number of words has digits in base 2.
Result<> StreamDriver::fillWords(std::byte *to, size_t words,
                                 uint64_t pattern) {
  const Api &api = session->api();
  Status status = success;
  for (size_t half = 0; half < 2 && status == success; ++half)
    status = session->enqueue(api.fill32, addressOf(to) + 4 * half,
                              static_cast<unsigned>(pattern >> (32 * half)),
                              size_t(1));
  for (size_t done = 1; done < words && status == success; done *= 2)
    status = copyRow(to + 8 * done, to, 8 * std::min(done, words - done));
  return session->result(status, "fill memory");
}

//===-- Launches ----------------------------------------------------------===//

Result<> StreamDriver::prepare(gpu::Module &module, const std::string &symbol,
                               size_t sharedBytes) {
  auto function = moduleOf(module).find(symbol, sharedBytes);
  return function ? Result<>() : function.error();
}

Result<> StreamDriver::launch(gpu::Module &module, const std::string &symbol,
                              gpu::Grid grid, std::span<const uint64_t> words,
                              size_t sharedBytes) {
  if (grid.blocks <= 0)
    return {};
  ++session->counters().launches;
  Result<Function> function = moduleOf(module).find(symbol, sharedBytes);
  if (!function)
    return function.error();
  if (grid.blocks > gpuProperties.mostBlocks)
    return session->failure(invalidValue,
                            "run `" + symbol + "` in so many blocks");
  const Start one{*function, static_cast<unsigned>(grid.blocks),
                  static_cast<unsigned>(grid.blockThreads),
                  static_cast<unsigned>(sharedBytes)};
  Status status = session->launch(one, words);
  if (status == success)
    return {};
  return session->failure(status, "start the kernel `" + symbol + "`");
}

Result<> StreamDriver::synchronize() {
  auto done = session->result(session->wait(), "finish its work");
  return done ? session->doubts() : done;
}

//===-- Streams and graphs ------------------------------------------------===//

Result<> StreamDriver::useStream(std::optional<void *> stream) {
  std::optional<Stream> next;
  if (stream)
    next = static_cast<Stream>(*stream);
  return session->result(session->useStream(next), "go on in another stream");
}

Result<bool> StreamDriver::letWait(void *stream) {
  Status status = session->letWait(static_cast<Stream>(stream));
  if (status != success)
    return session->failure(status, "let another stream wait");
  return true;
}

Result<> StreamDriver::goTo(gpu::Place place) {
  auto go = [&](gpu::Place there) {
    return session->result(session->goTo(there), "work beside a graph");
  };
  if (place == gpu::Place::InGraph && !isOwnCodeReady) {
    Result<> ready = go(gpu::Place::Aside);
    if (ready)
      ready = prepareOwnCode();
    isOwnCodeReady = ready.ok();
    if (Result<> left = go(gpu::Place::Usual); !ready || !left)
      return ready ? left : ready;
  }
  return go(place);
}

Result<> StreamDriver::beginCapture() {
  Result<> ready = prepareOwnCode();
  isOwnCodeReady = ready.ok();
  if (!ready)
    return ready;
  return session->result(session->beginCapture(), "start a graph");
}

Result<std::shared_ptr<gpu::Captured>> StreamDriver::endCapture() {
  auto captured =
      std::make_shared<StreamGraph>(session, session->counters().read());
  if (Status status = session->endCapture(captured->run))
    return session->failure(status, "make a graph");
  return std::shared_ptr<gpu::Captured>(std::move(captured));
}

Result<> StreamDriver::replay(gpu::Captured &captured) {
  auto &graph = static_cast<StreamGraph &>(captured);
  session->counters().add(graph.statistics);
  return session->result(
      session->enqueue(session->api().launchGraph, graph.run),
      "replay a graph");
}

//===-- Opening -----------------------------------------------------------===//

std::string Query::name() {
  char text[256] = "";
  note(api.deviceName(text, sizeof text, device));
  return text;
}

size_t Query::memory() {
  size_t bytes = 0;
  note(api.deviceMemory(&bytes, device));
  return bytes;
}

Result<> Query::answered() const {
  if (!failed)
    return {};
  return Failure{ErrorCode::NoDevice,
                 "the GPU does not answer: " + api.text(failed)};
}

static Result<DeviceNumber> findDevice(const Api &api, int ordinal) {
  int count = 0;
  DeviceNumber device = 0;
  Status status = api.deviceCount(&count);
  if (status == success && ordinal >= 0 && ordinal < count)
    status = api.device(&device, ordinal);
  else if (status == success)
    return Failure{ErrorCode::NoDevice,
                   std::string("there is no ") + api.words().gpu + " number " +
                       std::to_string(ordinal) + ": this machine has " +
                       std::to_string(count) + ", counted from 0"};
  if (status == success)
    return device;
  return Failure{ErrorCode::NoDevice, std::string(api.words().driver) +
                                          " lists no GPU: " + api.text(status)};
}

Result<Opened> openDevice(const Api &api, int ordinal,
                          const Describe &describe) {
  Result<DeviceNumber> device = findDevice(api, ordinal);
  if (!device)
    return device.error();
  Result<Description> description = describe(*device);
  if (!description)
    return description.error();
  Result<std::shared_ptr<Session>> session = Session::open(api, *device);
  if (!session)
    return session.error();
  gpu::Properties &properties = description->properties;
  Result<std::unique_ptr<Memory>> memory =
      Memory::open(*session, *device, properties.memory, description->hasPools);
  if (!memory)
    return memory.error();
  return Opened{std::move(properties), *session, std::move(*memory)};
}

} // namespace costate::runtime::streams
