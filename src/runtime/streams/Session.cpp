#include "runtime/streams/Session.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace costate::runtime::streams {

Result<std::shared_ptr<Session>> Session::open(const Api &api,
                                               DeviceNumber device) {
  Context context{};
  Status status = api.retain(context, device);
  if (status == success) {
    std::shared_ptr<Session> session(new Session(api, device, context));
    status = session->call(api.createStream, &session->own, blockingStream);
    session->queue = session->own;
    if (status == success)
      return session;
  }
  return Failure{ErrorCode::NoDevice,
                 "the GPU cannot be opened: " + api.text(status) + "; see " +
                     api.words().tool + ", or choose another device"};
}

Session::~Session() {
  forgetSeries();
  if (switched)
    (void)call(functions.destroyEvent, switched);
  for (Stream stream : {own, captureQueue})
    if (stream)
      (void)call(functions.destroyStream, stream);
  functions.release(device);
}

Status Session::beginCapture() {
  if (!captureQueue)
    if (Status status =
            call(functions.createStream, &captureQueue, nonBlockingStream))
      return status;
  Status status =
      call(functions.beginCapture, captureQueue, CaptureMode::ThreadLocal);
  captured.reset();
  if (status == success)
    capturer = std::this_thread::get_id();
  return status;
}

Status Session::endCapture(GraphRun &run) {
  capturer = std::thread::id();
  GraphHandle graph = nullptr;
  Status status = call(functions.endCapture, captureQueue, &graph);
  if (status == success)
    status = call(functions.instantiate, &run, graph, 0ull);
  if (graph)
    (void)call(functions.destroyGraph, graph);
  return status;
}

Status Session::refuseCaptured(Stream stream) {
  CaptureStatus captured = CaptureStatus::None;
  if (Status status = call(functions.captureStatus, stream, &captured))
    return status;
  return captured == CaptureStatus::None ? success : captureUnsupported;
}

Status Session::captureOf(Stream stream, unsigned long long &capture) {
  CaptureStatus captured = CaptureStatus::None;
  capture = 0;
  if (stream == own)
    return success;
  if (!stream) // it is never captured, but beside a capture it is an error
    return call(functions.captureStatus, stream, &captured);
  Status status = call(functions.captureInfo, stream, &captured, &capture,
                       static_cast<GraphHandle *>(nullptr),
                       static_cast<const GraphNode **>(nullptr),
                       static_cast<size_t *>(nullptr));
  if (captured == CaptureStatus::None)
    capture = 0;
  return status;
}

Status Session::waitBeside(Stream stream) {
  CaptureMode mode = CaptureMode::Relaxed;
  if (Status status = call(functions.exchangeMode, &mode))
    return status;
  Status status = call(functions.waitForStream, stream);
  Status restored = call(functions.exchangeMode, &mode);
  return status ? status : restored;
}

/// An event cannot order what runs now and what is only captured: where that
/// begins, the host waits; where it ends, nothing is there to wait for.
Status Session::order(Stream next) {
  if (next == queue)
    return success;
  unsigned long long before = 0, after = 0;
  if (Status status = captureOf(queue, before))
    return status;
  if (Status status = captureOf(next, after))
    return status;
  if (before != after) {
    if (before)
      return success;
    ++counted.synchronizations;
    return waitBeside(queue);
  }
  if (!switched)
    if (Status status =
            call(functions.createEvent, &switched, eventWithoutTime))
      return status;
  Status status = call(functions.recordEvent, switched, queue);
  return status ? status : call(functions.streamWaitsFor, next, switched, 0u);
}

Status Session::useStream(std::optional<Stream> stream) {
  std::unique_lock lock(switching);
  Stream next = stream.value_or(own);
  Status status = order(next);
  if (status == success)
    queue = next;
  return status;
}

Status Session::letWait(Stream stream) {
  std::unique_lock lock(switching);
  return order(stream);
}

//===-- Launches together -------------------------------------------------===//

/// A longer series is made of several graphs.
static constexpr size_t mostOfGraph = 128;

bool Session::beginSeries() {
  std::thread::id nobody;
  if (!functions.graphRule().least || isCapturing() || isGuest() ||
      !inSeries.compare_exchange_strong(nobody, std::this_thread::get_id()))
    return false;
  if (functions.enter(context, visitor) == success)
    return true;
  inSeries = std::thread::id();
  return false;
}

Status Session::endSeries() {
  Status status = launchSeries();
  inSeries = std::thread::id();
  functions.leave(visitor, status);
  return status;
}

void Session::forgetSeries() {
  std::lock_guard lock(graphsMutex);
  (void)within([&] {
    graphs.forget();
    return success;
  });
}

Status Session::launch(const Start &start, std::span<const uint64_t> words) {
  if (!isInSeries())
    return launchNow(start, words);
  series.add(start, words);
  return series.size() < mostOfGraph ? success : launchSeries();
}

Status Session::launchNow(const Start &start, std::span<const uint64_t> words) {
  uint64_t none = 0;
  size_t bytes = std::max(words.size_bytes(), sizeof none);
  auto *data = words.empty() ? &none : const_cast<uint64_t *>(words.data());
  void *extra[] = {launchBuffer, data, launchBufferBytes, &bytes,
                   functions.launchEnd()};
  return withStream([&](Stream stream) {
    return call(functions.launchKernel, start.function, start.blocks, 1u, 1u,
                start.blockThreads, 1u, 1u, start.sharedBytes, stream,
                static_cast<void **>(nullptr), static_cast<void **>(extra));
  });
}

Status Session::launchOneByOne(const Series &all) {
  return all.forEach([&](const Start &start, std::span<const uint64_t> words) {
    return launchNow(start, words);
  });
}

GraphRun Session::graphOf(const Series &all) {
  std::lock_guard lock(graphsMutex);
  bool isDue = false;
  GraphRun run = graphs.find(all, isDue);
  if (!isDue)
    return run;
  Status status = beginCapture();
  if (status == success) {
    status = launchOneByOne(all);
    Status ended = endCapture(run);
    status = status ? status : ended;
  }
  graphs.keep(all, status == success ? run : nullptr);
  return status == success ? run : nullptr;
}

Status Session::launchTogether() {
  std::swap(series, launching);
  bool isShort = launching.size() < functions.graphRule().least;
  GraphRun run = isShort ? nullptr : graphOf(launching);
  Status status =
      run ? enqueue(functions.launchGraph, run) : launchOneByOne(launching);
  launching.clear();
  return status;
}

//===-- Captures of others ------------------------------------------------===//

uint64_t Session::captureOfOthers() {
  if (isCapturing() || isGuest())
    return 0;
  std::shared_lock lock(switching);
  unsigned long long capture = 0;
  return captureOf(queue, capture) == success ? capture : 0;
}

Status Session::goTo(gpu::Place next) {
  const gpu::Place before = std::exchange(place, next);
  guest = next == gpu::Place::Usual ? std::thread::id()
                                    : std::this_thread::get_id();
  Status status = success;
  if (next == gpu::Place::Aside) {
    usualMode = CaptureMode::Relaxed;
    status = call(functions.exchangeMode, &usualMode);
  } else if (before == gpu::Place::Aside) {
    status = call(functions.waitForStream, own);
    CaptureMode mode = usualMode;
    if (Status restored = call(functions.exchangeMode, &mode); !status)
      status = restored;
  }
  return status;
}

namespace {
struct Dropped {
  Mutex mutex;
  std::vector<std::shared_ptr<void>> all;
};
} // namespace

/// Never destroyed: graphs may end late.
static Dropped &dropped() {
  static auto &all = *new Dropped;
  return all;
}

void endDropped() {
  std::vector<std::shared_ptr<void>> ended;
  std::lock_guard lock(dropped().mutex);
  ended.swap(dropped().all);
}

static void drop(void *pointer) {
  std::unique_ptr<std::shared_ptr<void>> kept(
      static_cast<std::shared_ptr<void> *>(pointer));
  std::lock_guard lock(dropped().mutex);
  dropped().all.push_back(std::move(*kept));
}

Status Session::giveToGraph(std::shared_ptr<void> given) {
  CaptureStatus captured = CaptureStatus::None;
  unsigned long long capture = 0;
  GraphHandle graph = nullptr;
  if (Status status = call(functions.captureInfo, queue, &captured, &capture,
                           &graph, static_cast<const GraphNode **>(nullptr),
                           static_cast<size_t *>(nullptr)))
    return status;
  auto kept = std::make_unique<std::shared_ptr<void>>(std::move(given));
  Held held = nullptr;
  if (Status status =
          call(functions.hold, &held, static_cast<void *>(kept.get()), &drop,
               1u, letGoAnyTime))
    return status;
  (void)kept.release();
  return call(functions.giveToGraph, graph, held, 1u, graphOwns);
}

void Session::doubt(const void *who, const Failure &why) {
  std::lock_guard lock(doubting);
  doubters.emplace(who, why);
}

void Session::trust(const void *who) {
  std::lock_guard lock(doubting);
  doubters.erase(who);
}

Result<> Session::doubts() {
  std::lock_guard lock(doubting);
  return doubters.empty() ? Result<>() : doubters.begin()->second;
}

Result<> Session::result(Status status, const std::string &doing) const {
  if (status == success)
    return {};
  return failure(status, doing);
}

static bool hasStopped(Status status) {
  return status == illegalAddress || status == launchTimeout ||
         status == deviceAssert ||
         (status >= firstOfLaunch && status <= lastOfLaunch);
}

Failure Session::failure(Status status, const std::string &doing) const {
  std::string text = functions.text(status);
  if (hasStopped(status))
    return {ErrorCode::KernelFailed,
            "a kernel has failed on the GPU: " + text +
                "; what its arrays hold is lost, and a restart of the program "
                "may be needed before the GPU can be used again (`debug` in "
                "KernelOptions finds indices out of range)"};
  if (status == captureUnsupported)
    return {ErrorCode::CannotCapture,
            "somebody else captures the stream that the device works on, as "
            "`torch.cuda.graph` does, and the graph cannot make the GPU " +
                doing +
                "; do that before the capture, or go back to the stream of the "
                "device (use_own_stream)"};
  if (status == outOfMemory)
    return {ErrorCode::OutOfMemory,
            "the GPU has no memory left to " + doing + "; release arrays"};
  return {ErrorCode::Internal, "the GPU fails to " + doing + ": " + text};
}

} // namespace costate::runtime::streams
