#pragma once
/// A driver without a GPU, for tests: memory is the host's, and streams run
/// only while somebody waits for them.

#include "runtime/streams/Api.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace costate::runtime::streams {

using Work = std::function<void()>;

/// What a graph and all that is made of it have in common.
using HeldByGraph = std::vector<std::shared_ptr<void>>;

struct HeldObject {
  std::shared_ptr<void> one;
};

struct GraphObject {
  std::vector<Work> work;
  unsigned long long capture = 0; ///< its number
  HeldByGraph held = {};
  std::set<Stream> joined; ///< that wait for what is captured
};
struct GraphRunObject {
  std::vector<Work> work;
  HeldByGraph held = {};
};

struct StreamObject {
  std::deque<Work> queue;
  GraphObject *captured = nullptr;
  unsigned kind = 0;
};

/// Done once its stream has come so far.
struct EventObject {
  struct Mark {
    Stream stream;
    GraphObject *captured = nullptr;
    bool done = false;
    float time = 0; ///< when it came, in ms
  };
  std::shared_ptr<Mark> mark;
};

struct CodeObject {
  std::string text;
};

struct FunctionObject {
  std::function<void(std::span<const uint64_t> words)> body;
  unsigned blocks = 0, blockThreads = 0; ///< of the last launch
  size_t shared = 0;                     ///< bytes, likewise
  size_t sharedLimit = 44 << 10;         ///< it has 4 KiB by itself
  int limitChanges = 0;
  /// Of memory that a thread keeps, by what the code says; none: 0.
  std::function<int(const std::string &text)> localBytes;
  std::string text; ///< that it was found in, last
};

/// One at a time: the newest. Safe to use from several threads.
class FakeGpu {
public:
  FakeGpu() : before(std::exchange(fake, this)) {}
  virtual ~FakeGpu() { fake = before; }
  FakeGpu(const FakeGpu &) = delete;

  virtual const Api &api() const = 0;

  /// What `image` may be asked for, whatever it is.
  std::map<std::string, FunctionObject> kernels;
  size_t memory = size_t(1) << 30;
  bool hidesThatMemoryEnds = false; ///< as pools of HIP 5: null, and success
  size_t used = 0;
  bool hasPools = true;
  /// Of functions, by what Api calls them: how often they were called, and what
  /// they are to say without doing anything.
  std::map<std::string, size_t> calls;
  std::map<std::string, Status> failing;
  Status lastError = success;      ///< of all calls
  size_t largestPitch = INT32_MAX; ///< of rows that are copied
  size_t copies = 0;               ///< calls that copy within the device
  float clock = 0;                 ///< of events: ms, one for each of them
  Work whileWaiting; ///< what others do while somebody waits for an event

  size_t liveStreams() const { return streams.size(); }
  /// Of one kind.
  size_t streamsOf(unsigned kind) const {
    return static_cast<size_t>(std::ranges::count(
        streams, kind, [](Stream stream) { return stream->kind; }));
  }
  size_t liveEvents() const { return events.size(); }
  size_t livePinned() const { return pinned.size(); }
  size_t liveAllocations() const { return allocations.size(); }
  size_t liveGraphs() const { return graphs; }
  /// What a thread that captures must not do.
  size_t violations = 0;
  CaptureMode mode = CaptureMode::Global; ///< of all threads

  /// A stream of somebody else in this process.
  Stream makeStream() {
    std::lock_guard lock(mutex);
    Stream stream = nullptr;
    functions.createStream(&stream, nonBlockingStream);
    return stream;
  }
  static void append(Stream handle, Work work) {
    std::lock_guard lock(fake->mutex);
    Stream stream = streamOf(handle);
    if (stream->captured)
      stream->captured->work.push_back(std::move(work));
    else
      stream->queue.push_back(std::move(work));
  }
  /// All of it, or until something is so.
  static void run(
      Stream handle,
      const std::function<bool()> &until = [] { return false; }) {
    std::lock_guard lock(fake->mutex);
    Stream stream = streamOf(handle);
    while (!stream->queue.empty() && !until()) {
      Work work = std::move(stream->queue.front());
      stream->queue.pop_front();
      work();
    }
  }

protected:
  /// All that drivers share, under the lock.
  static Functions makeLocking();
  static Status copyRows(PitchedRows to, PitchedRows from, size_t bytes,
                         size_t rows, Stream stream);
  Status load(Code *code, const void *image, size_t bytes);

  /// One call, under the lock.
  template <class Body>
  Status perform(const std::string &function, const Body &body) {
    std::lock_guard lock(mutex);
    ++calls[function];
    isCalled(function);
    auto failure = failing.find(function);
    Status status = failure == failing.end() ? body() : failure->second;
    if (status)
      lastError = status;
    return status;
  }
  virtual void isCalled(const std::string &) {}

  static inline FakeGpu *fake = nullptr;

  /// To be called where a capturing thread would spoil its graph.
  static Status outsideOfCapture(Status status = success) {
    if (fake->capturer != std::this_thread::get_id() ||
        fake->mode == CaptureMode::Relaxed)
      return status;
    ++fake->violations;
    return captureUnsupported;
  }

private:
  /// The default streams have numbers.
  static Stream streamOf(Stream handle) {
    switch (reinterpret_cast<uintptr_t>(handle)) {
    case 0:
    case 1:
      return &fake->legacy;
    case 2:
      return &fake->ofThread;
    default:
      return handle;
    }
  }

  /// What a stream does from here on is captured, too. The one that captures
  /// ends that.
  static Status join(Stream stream, const EventObject::Mark &mark) {
    if (!stream->captured) {
      stream->captured = mark.captured;
      mark.captured->joined.insert(stream);
    } else if (mark.captured->joined.erase(mark.stream))
      mark.stream->captured = nullptr;
    return success;
  }

  static void run(EventObject::Mark &mark) {
    while (!mark.done) {
      Work work = std::move(mark.stream->queue.front());
      mark.stream->queue.pop_front();
      work();
    }
  }

  Status allocate(Address *to, size_t bytes) {
    if (bytes > memory - used) {
      *to = 0;
      return hidesThatMemoryEnds ? success : outOfMemory;
    }
    constexpr size_t alignment = 256;
    size_t whole = (bytes + alignment - 1) / alignment * alignment;
    void *made = std::aligned_alloc(alignment, whole);
    std::memset(made, 0xa5, bytes);
    allocations[made] = bytes;
    used += bytes;
    *to = reinterpret_cast<Address>(made);
    return success;
  }
  void release(Address address) {
    auto found = allocations.find(reinterpret_cast<void *>(address));
    if (found == allocations.end())
      std::abort();
    used -= found->second;
    std::free(found->first);
    allocations.erase(found);
  }

  template <class T> static T *pointer(Address address) {
    return reinterpret_cast<T *>(address);
  }
  static std::span<const uint64_t> wordsOf(void **extra) {
    return {static_cast<const uint64_t *>(extra[1]),
            *static_cast<const size_t *>(extra[3]) / 8};
  }

  static Functions makeFunctions();
  static void makeDevice(Functions &api);
  static void makeStreams(Functions &api);
  static void makeEvents(Functions &api);
  static void makeCaptures(Functions &api);
  static void makeGraphs(Functions &api);
  static void makeMemory(Functions &api);
  static void makeCopies(Functions &api);
  static void makeCode(Functions &api);

  FakeGpu *const before;
  std::recursive_mutex mutex;
  std::set<Stream> streams;
  StreamObject legacy, ofThread;
  std::set<Event> events;
  std::set<void *> pinned;
  std::map<void *, size_t> allocations;
  size_t graphs = 0;
  unsigned long long captures = 0; ///< begun so far
  std::thread::id capturer;
  std::vector<std::unique_ptr<CodeObject>> codes;
  const Functions functions = makeFunctions();
};

inline Functions FakeGpu::makeLocking() {
  Functions all;
#define COSTATE_STREAM_LOCK(member, ...)                                       \
  all.member = [](auto... params) -> Status {                                  \
    return fake->perform(#member,                                              \
                         [&] { return fake->functions.member(params...); });   \
  };
  COSTATE_STREAM_FUNCTIONS(COSTATE_STREAM_LOCK)
#undef COSTATE_STREAM_LOCK
  return all;
}

inline Status FakeGpu::copyRows(PitchedRows to, PitchedRows from, size_t bytes,
                                size_t rows, Stream stream) {
  ++fake->copies;
  for (const PitchedRows &side : {to, from})
    if (side.pitch < bytes || side.pitch > fake->largestPitch)
      return invalidValue;
  append(stream, [=] {
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(pointer<std::byte>(to.address) + row * to.pitch,
                  pointer<std::byte>(from.address) + row * from.pitch, bytes);
  });
  return success;
}

inline Status FakeGpu::load(Code *code, const void *image, size_t bytes) {
  *code = codes.emplace_back(std::make_unique<CodeObject>()).get();
  (*code)->text = std::string(static_cast<const char *>(image), bytes);
  return outsideOfCapture();
}

inline void FakeGpu::makeDevice(Functions &api) {
  api.deviceCount = [](int *count) {
    *count = 1;
    return success;
  };
  api.deviceMemory = [](size_t *bytes, DeviceNumber) {
    *bytes = fake->memory;
    return success;
  };
  api.memoryInfo = [](size_t *free, size_t *total) {
    *free = fake->memory - fake->used;
    *total = fake->memory;
    return success;
  };
  api.createPool = [](Pool *pool, const PoolProperties *) {
    *pool = reinterpret_cast<Pool>(fake);
    return success;
  };
  api.getPool = [](Pool, PoolAttribute, void *value) {
    *static_cast<uint64_t *>(value) = 0;
    return success;
  };
}

inline void FakeGpu::makeStreams(Functions &api) {
  api.createStream = [](Stream *stream, unsigned kind) {
    *stream = *fake->streams.insert(new StreamObject).first;
    (*stream)->kind = kind;
    return success;
  };
  api.createUrgentStream = [](Stream *stream, unsigned kind, int) {
    return fake->functions.createStream(stream, kind);
  };
  api.destroyStream = [](Stream stream) {
    fake->streams.erase(stream);
    delete stream;
    return success;
  };
  api.queryStream = [](Stream handle) { // as much as a GPU does meanwhile
    if (fake->whileWaiting)
      std::exchange(fake->whileWaiting, nullptr)();
    size_t steps = 0;
    run(handle, [&] { return steps++ > 0; });
    bool isDone = streamOf(handle)->queue.empty();
    return outsideOfCapture(isDone ? success : notReady);
  };
  api.waitForStream = [](Stream stream) {
    run(stream);
    return outsideOfCapture();
  };
}

inline void FakeGpu::makeEvents(Functions &api) {
  api.createEvent = [](Event *event, unsigned) {
    *event = *fake->events.insert(new EventObject).first;
    return success;
  };
  api.destroyEvent = [](Event event) {
    fake->events.erase(event);
    delete event;
    return success;
  };
  api.recordEvent = [](Event event, Stream stream) {
    auto mark = std::make_shared<EventObject::Mark>(streamOf(stream),
                                                    streamOf(stream)->captured);
    event->mark = mark;
    if (mark->captured)
      return success;
    append(stream, [mark] {
      mark->done = true;
      mark->time = fake->clock++;
    });
    return success;
  };
  api.waitForEvent = [](Event event) {
    if (fake->whileWaiting)
      std::exchange(fake->whileWaiting, nullptr)();
    if (event->mark)
      run(*event->mark);
    return outsideOfCapture();
  };
  api.streamWaitsFor = [](Stream stream, Event event, unsigned) {
    if (event->mark && event->mark->captured)
      return join(streamOf(stream), *event->mark);
    append(stream, [mark = event->mark] {
      if (mark)
        run(*mark);
    });
    return success;
  };
  api.elapsed = [](float *milliseconds, Event from, Event to) {
    if (!from->mark || !to->mark || !from->mark->done || !to->mark->done)
      return notReady;
    *milliseconds = to->mark->time - from->mark->time;
    return success;
  };
  api.queryEvent = [](Event event) {
    return !event->mark || event->mark->done ? success : notReady;
  };
}

inline void FakeGpu::makeCaptures(Functions &api) {
  api.captureStatus = [](Stream stream, CaptureStatus *status) {
    *status = streamOf(stream)->captured ? CaptureStatus::Active
                                         : CaptureStatus::None;
    return success;
  };
  api.captureInfo = [](Stream stream, CaptureStatus *status,
                       unsigned long long *id, GraphHandle *graph,
                       const GraphNode **, size_t *) {
    GraphObject *captured = streamOf(stream)->captured;
    *status = captured ? CaptureStatus::Active : CaptureStatus::None;
    *id = captured ? captured->capture : 0;
    if (graph)
      *graph = captured;
    return success;
  };
  api.exchangeMode = [](CaptureMode *mode) {
    std::swap(*mode, fake->mode);
    return success;
  };
  api.hold = [](Held *held, void *object, void (*drop)(void *), unsigned,
                unsigned) {
    *held = new HeldObject{std::shared_ptr<void>(object, drop)};
    return success;
  };
  api.giveToGraph = [](GraphHandle graph, Held held, unsigned, unsigned) {
    graph->held.push_back(held->one);
    delete held;
    return success;
  };
}

inline void FakeGpu::makeGraphs(Functions &api) {
  api.beginCapture = [](Stream stream, CaptureMode mode) {
    if (stream->captured || mode != CaptureMode::ThreadLocal)
      return invalidValue;
    stream->captured = new GraphObject{{}, ++fake->captures, {}, {}};
    ++fake->graphs;
    fake->capturer = std::this_thread::get_id();
    return success;
  };
  api.endCapture = [](Stream stream, GraphHandle *graph) {
    *graph = std::exchange(stream->captured, nullptr);
    fake->capturer = std::thread::id();
    return *graph && (*graph)->joined.empty() ? success : invalidValue;
  };
  api.destroyGraph = [](GraphHandle graph) {
    --fake->graphs;
    delete graph;
    return success;
  };
  api.instantiate = [](GraphRun *run, GraphHandle graph, unsigned long long) {
    *run = new GraphRunObject{graph->work, graph->held};
    ++fake->graphs;
    return success;
  };
  api.destroyGraphRun = [](GraphRun run) {
    --fake->graphs;
    delete run;
    return success;
  };
  api.launchGraph = [](GraphRun run, Stream stream) {
    append(stream, [work = run->work] {
      for (const Work &one : work)
        one();
    });
    return success;
  };
}

inline void FakeGpu::makeMemory(Functions &api) {
  api.allocate = [](Address *to, size_t bytes) {
    return outsideOfCapture(fake->allocate(to, bytes));
  };
  api.free = [](Address address) {
    fake->release(address);
    return success;
  };
  api.allocateFromPool = [](Address *to, size_t bytes, Pool, Stream) {
    return outsideOfCapture(fake->allocate(to, bytes));
  };
  api.freeAsync = [](Address address, Stream stream) {
    append(stream, [address] { fake->release(address); });
    return success;
  };
  api.allocateHost = [](void **to, size_t bytes, unsigned) {
    *to = *fake->pinned.insert(std::malloc(bytes)).first;
    return success;
  };
  api.freeHost = [](void *memory) {
    fake->pinned.erase(memory);
    std::free(memory);
    return success;
  };
}

inline void FakeGpu::makeCopies(Functions &api) {
  api.copyToDevice = [](Address to, const void *from, size_t bytes,
                        Stream stream) {
    append(stream, [=] { std::memcpy(pointer<void>(to), from, bytes); });
    return success;
  };
  api.copyToHost = [](void *to, Address from, size_t bytes, Stream stream) {
    append(stream, [=] { std::memcpy(to, pointer<void>(from), bytes); });
    return success;
  };
  api.copy = [](Address to, Address from, size_t bytes, Stream stream) {
    ++fake->copies;
    append(stream,
           [=] { std::memcpy(pointer<void>(to), pointer<void>(from), bytes); });
    return success;
  };
  api.fill8 = [](Address to, unsigned char value, size_t count, Stream stream) {
    append(stream, [=] { std::memset(pointer<void>(to), value, count); });
    return success;
  };
  api.fill16 = [](Address to, unsigned short value, size_t count,
                  Stream stream) {
    append(stream,
           [=] { std::fill_n(pointer<unsigned short>(to), count, value); });
    return success;
  };
  api.fill32 = [](Address to, unsigned value, size_t count, Stream stream) {
    append(stream, [=] {
      for (size_t i = 0; i < count; ++i)
        pointer<unsigned>(to)[i] = value;
    });
    return success;
  };
}

inline void FakeGpu::makeCode(Functions &api) {
  api.function = [](Function *function, Code code, const char *name) {
    auto found = fake->kernels.find(name);
    if (found == fake->kernels.end())
      return invalidValue;
    *function = &found->second;
    found->second.text = code->text;
    return outsideOfCapture();
  };
  api.residentBlocks = [](int *blocks, Function, int, size_t) {
    *blocks = 1;
    return success;
  };
  api.launchKernel = [](Function function, unsigned blocks, unsigned, unsigned,
                        unsigned threads, unsigned, unsigned, unsigned shared,
                        Stream stream, void **, void **extra) {
    if (shared > function->sharedLimit)
      return invalidValue;
    function->blocks = blocks;
    function->blockThreads = threads;
    function->shared = shared;
    if (extra[0] != launchBuffer || extra[2] != launchBufferBytes ||
        extra[4] != fake->api().launchEnd())
      return invalidValue;
    std::span<const uint64_t> words = wordsOf(extra);
    std::vector<uint64_t> kept(words.begin(), words.end());
    append(stream, [=] { function->body(kept); });
    return success;
  };
}

inline Functions FakeGpu::makeFunctions() {
  Functions api;
#define COSTATE_STREAM_FAKE(member, ...)                                       \
  api.member = [](auto...) -> Status { return success; };
  COSTATE_STREAM_FUNCTIONS(COSTATE_STREAM_FAKE)
#undef COSTATE_STREAM_FAKE
  makeDevice(api);
  makeStreams(api);
  makeEvents(api);
  makeCaptures(api);
  makeGraphs(api);
  makeMemory(api);
  makeCopies(api);
  makeCode(api);
  return api;
}

} // namespace costate::runtime::streams
