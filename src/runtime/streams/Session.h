#pragma once
/// One stream of one GPU, and what every call of its driver needs.

#include "base/Fork.h"
#include "runtime/Counters.h"
#include "runtime/gpu/Driver.h"
#include "runtime/streams/Series.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>

namespace costate::runtime::streams {

/// Ends what graphs have let go of, of all sessions: they do that on a thread
/// that must not call the driver.
void endDropped();

/// Shared by a driver and its modules, whoever dies last.
class Session {
public:
  /// Takes `device` for good if it returns a session; NoDevice.
  static Result<std::shared_ptr<Session>> open(const Api &api,
                                               DeviceNumber device);
  ~Session();
  Session(const Session &) = delete;

  const Api &api() const { return functions; }

  /// Calls `function` of the API with the GPU as that of the thread, and puts
  /// the caller's own back.
  template <class... Params, class... Arguments>
  Status call(Status (*function)(Params...), Arguments... arguments) const {
    return within([&] { return function(arguments...); });
  }
  /// The same for a body that calls several, or those of another library.
  template <class Body> Status within(const Body &body) const {
    if (isInSeries())
      return body();
    ForeignWork work;
    Context before{};
    if (Status status = functions.enter(context, before))
      return status;
    Status status = body();
    functions.leave(before, status);
    return status;
  }

  /// As a failure, where `doing` completes "the GPU fails to".
  Result<> result(Status status, const std::string &doing) const;
  Failure failure(Status status, const std::string &doing) const;

  /// Calls `append(stream)`, after what waits to be launched.
  template <class Append> Status withStream(const Append &append) {
    if (Status status = launchSeries())
      return status;
    if (isCapturing())
      return append(captureQueue);
    std::shared_lock lock(switching);
    if (isGuest())
      return append(place == gpu::Place::Aside ? own : queue);
    if (queue != own)
      if (Status status = refuseCaptured(queue))
        return status;
    return append(queue);
  }

  /// Appends to the stream: calls `function(arguments..., stream)`.
  template <class... Params, class... Arguments>
  Status enqueue(Status (*function)(Params...), Arguments... arguments) {
    return withStream(
        [&](Stream stream) { return call(function, arguments..., stream); });
  }

  /// Launches, at once or with others: see gpu::Driver::beginSeries.
  Status launch(const Start &start, std::span<const uint64_t> words);
  bool beginSeries();
  Status endSeries();
  /// Before code is unloaded.
  void forgetSeries();

  /// For all that is queued.
  Status wait() {
    ++counted.synchronizations;
    Stream stream = nullptr;
    Status status = findStream(stream);
    return status ? status : call(functions.waitForStream, stream);
  }
  /// For what is queued to make `isDone` true; faster than the driver can.
  template <class IsDone> Status waitUntil(const IsDone &isDone) {
    ++counted.synchronizations;
    Stream stream = nullptr;
    if (Status status = findStream(stream))
      return status;
    Status status = notReady;
    while (status == notReady && !isSoon(isDone))
      status = call(functions.queryStream, stream);
    if (status == notReady || isDone())
      return success;
    return status ? status : unknownError;
  }
  Status waitFor(Event event) {
    ++counted.synchronizations;
    return call(functions.waitForEvent, event);
  }

  /// From here to endCapture, what this thread appends is kept in a graph.
  Status beginCapture();
  Status endCapture(GraphRun &run);
  bool isCapturing() const { return capturer == std::this_thread::get_id(); }

  /// What is appended from here on goes to `stream`, or to our own one for
  /// none, after all that has been appended before. The host waits for that if
  /// somebody captures `stream`: a graph cannot.
  Status useStream(std::optional<Stream> stream);
  /// What others append to `stream` from here on comes after all that has been
  /// appended before.
  Status letWait(Stream stream);

  /// See gpu::Driver.
  uint64_t captureOfOthers();
  Status goTo(gpu::Place place);
  Status giveToGraph(std::shared_ptr<void> held);
  /// What is queued may have come to nothing; from here on whoever waits for it
  /// is told, until `who` trusts it again.
  void doubt(const void *who, const Failure &why);
  void trust(const void *who);
  Result<> doubts();

  /// Somebody wants to run beside what is queued from here on, or no more.
  void share() { ++sharing; }
  void unshare() { --sharing; }
  bool isShared() const { return sharing > 0; }

  /// Of what is being captured, or of all the rest.
  Counters &counters() { return isCapturing() ? captured : counted; }

private:
  /// What is appended to `next` comes after what has been appended to the
  /// stream in use. Under the lock.
  Status order(Stream next);

  /// What captures a stream; 0: nobody does.
  Status captureOf(Stream stream, unsigned long long &capture);
  /// Waits while others capture.
  Status waitBeside(Stream stream);
  bool isGuest() const { return guest == std::this_thread::get_id(); }

  Status findStream(Stream &stream) {
    return withStream([&](Stream current) {
      stream = current;
      return success;
    });
  }

  /// Looks for as long as nobody has to ask the driver what keeps the GPU.
  template <class IsDone> static bool isSoon(const IsDone &isDone) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::microseconds(50);
    bool done = isDone();
    while (!done && Clock::now() < end)
      done = isDone();
    return done;
  }

  bool isInSeries() const { return inSeries == std::this_thread::get_id(); }
  Status launchSeries() {
    return isInSeries() && series.size() > 0 ? launchTogether() : success;
  }
  Status launchTogether();
  Status launchNow(const Start &start, std::span<const uint64_t> words);
  Status launchOneByOne(const Series &all);
  GraphRun graphOf(const Series &all);

  /// A graph of the user would miss what we do besides launching.
  Status refuseCaptured(Stream stream);

  Session(const Api &api, DeviceNumber device, Context context)
      : functions(api), device(device), context(context), graphs(api) {}

  const Api &functions;
  DeviceNumber device;
  Context context;
  Counters counted, captured;
  std::shared_mutex switching;
  Stream own = nullptr;
  Stream queue = nullptr; ///< our own one or one of the user
  Event switched = nullptr;
  Stream captureQueue = nullptr;
  std::atomic<std::thread::id> capturer = {};
  std::atomic<std::thread::id> guest = {}; ///< has gone to `place`
  gpu::Place place = gpu::Place::Usual;
  CaptureMode usualMode = CaptureMode::Global; ///< of that thread
  std::atomic<int> sharing = 0;

  std::atomic<std::thread::id> inSeries = {}; ///< its context is ours
  Context visitor{};                          ///< what that was before
  Series series, launching;                   ///< of that thread
  std::mutex graphsMutex;
  SeriesGraphs graphs;
  std::mutex doubting;
  std::map<const void *, Failure> doubters;
};

} // namespace costate::runtime::streams
