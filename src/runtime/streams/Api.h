#pragma once
/// The interface of drivers whose work goes to streams, as CUDA and HIP have
/// it: functions, types and numbers that both share. What differs is virtual,
/// or stands beside the driver.

#include "base/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace costate::runtime::streams {

using Status = int;
constexpr Status success = 0;
constexpr Status invalidValue = 1;
constexpr Status outOfMemory = 2;
constexpr Status noDevice = 100, invalidDevice = 101;
constexpr Status notReady = 600;
constexpr Status notSupported = 801;
/// A stream is captured, and this cannot be.
constexpr Status captureUnsupported = 900;
constexpr Status unknownError = 999;
/// The context is unusable from then on.
constexpr Status illegalAddress = 700;
constexpr Status launchTimeout = 702;
constexpr Status deviceAssert = 710;
constexpr Status firstOfLaunch = 714; ///< hardware stack, instruction, ...
constexpr Status lastOfLaunch = 719;

using DeviceNumber = int;
using Address = unsigned long long;
using Stream = struct StreamObject *;
using Event = struct EventObject *;
using Pool = struct PoolObject *;
using Code = struct CodeObject *;
using Function = struct FunctionObject *;
using GraphHandle = struct GraphObject *;
using GraphRun = struct GraphRunObject *;
using Held = struct HeldObject *;
using GraphNode = struct GraphNodeObject *;
/// What makes a GPU that of a thread; of each driver's own.
enum class Context : uintptr_t {};

enum class PoolAttribute : int { ReleaseThreshold = 4, Reserved = 5, Used = 7 };

struct PoolProperties {
  int allocationType = 1; ///< pinned
  int handleTypes = 0;
  int locationType = 1; ///< a device
  int location = 0;
  void *security = nullptr;
  size_t maximum = 0;
  unsigned char reserved[56] = {};
};

/// What must be left alone during a capture: by the thread that captures, or
/// (Relaxed) by nobody.
enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };
enum class CaptureStatus : int { None = 0, Active = 1 };

/// One side of a copy of rows.
struct PitchedRows {
  Address address = 0;
  size_t pitch = 0;
};

/// Entries of the last argument of launchKernel; the driver has its own end.
inline void *const launchBuffer = reinterpret_cast<void *>(1);
inline void *const launchBufferBytes = reinterpret_cast<void *>(2);

/// The first kind is in one order with the default stream of the process.
constexpr unsigned blockingStream = 0, nonBlockingStream = 1;
/// Blocks of a stream of this priority come first where there is room. No GPU
/// has a higher one.
constexpr int mostUrgent = -100;
constexpr unsigned hostForAllDevices = 1, hostForCode = 2;
constexpr unsigned eventWithTime = 0, eventWithoutTime = 2;
/// What a graph holds is let go of on a thread of the driver, at some time.
constexpr unsigned letGoAnyTime = 1, graphOwns = 1;

// clang-format off
#define COSTATE_STREAM_FUNCTIONS(F)                                            \
  F(init, unsigned)                                                            \
  F(driverVersion, int *)                                                      \
  F(deviceCount, int *)                                                        \
  F(device, DeviceNumber *, int)                                               \
  F(deviceName, char *, int, DeviceNumber)                                     \
  F(deviceMemory, size_t *, DeviceNumber)                                      \
  F(attribute, int *, int, DeviceNumber)                                       \
  F(createStream, Stream *, unsigned)                                          \
  F(createUrgentStream, Stream *, unsigned, int)                               \
  F(destroyStream, Stream)                                                     \
  F(waitForStream, Stream)                                                     \
  F(queryStream, Stream)                                                       \
  F(streamWaitsFor, Stream, Event, unsigned)                                   \
  F(captureStatus, Stream, CaptureStatus *)                                    \
  F(captureInfo, Stream, CaptureStatus *, unsigned long long *, GraphHandle *, \
    const GraphNode **, size_t *)                                              \
  F(exchangeMode, CaptureMode *)                                               \
  F(hold, Held *, void *, void (*)(void *), unsigned, unsigned)                \
  F(giveToGraph, GraphHandle, Held, unsigned, unsigned)                        \
  F(beginCapture, Stream, CaptureMode)                                         \
  F(endCapture, Stream, GraphHandle *)                                         \
  F(instantiate, GraphRun *, GraphHandle, unsigned long long)                  \
  F(launchGraph, GraphRun, Stream)                                             \
  F(destroyGraph, GraphHandle)                                                 \
  F(destroyGraphRun, GraphRun)                                                 \
  F(createEvent, Event *, unsigned)                                            \
  F(destroyEvent, Event)                                                       \
  F(recordEvent, Event, Stream)                                                \
  F(waitForEvent, Event)                                                       \
  F(queryEvent, Event)                                                         \
  F(elapsed, float *, Event, Event)                                            \
  F(memoryInfo, size_t *, size_t *)                                            \
  F(allocate, Address *, size_t)                                               \
  F(free, Address)                                                             \
  F(allocateHost, void **, size_t, unsigned)                                   \
  F(freeHost, void *)                                                          \
  F(createPool, Pool *, const PoolProperties *)                                \
  F(destroyPool, Pool)                                                         \
  F(setPool, Pool, PoolAttribute, void *)                                      \
  F(getPool, Pool, PoolAttribute, void *)                                      \
  F(trimPool, Pool, size_t)                                                    \
  F(allocateFromPool, Address *, size_t, Pool, Stream)                         \
  F(freeAsync, Address, Stream)                                                \
  F(copyToDevice, Address, const void *, size_t, Stream)                       \
  F(copyToHost, void *, Address, size_t, Stream)                               \
  F(copy, Address, Address, size_t, Stream)                                    \
  F(fill8, Address, unsigned char, size_t, Stream)                             \
  F(fill16, Address, unsigned short, size_t, Stream)                           \
  F(fill32, Address, unsigned, size_t, Stream)                                 \
  F(unloadCode, Code)                                                          \
  F(function, Function *, Code, const char *)                                  \
  F(residentBlocks, int *, Function, int, size_t)                              \
  F(launchKernel, Function, unsigned, unsigned, unsigned, unsigned, unsigned,  \
    unsigned, unsigned, Stream, void **, void **)
// clang-format on

struct Functions {
#define COSTATE_STREAM_MEMBER(member, ...)                                     \
  Status (*member)(__VA_ARGS__) = nullptr;
  COSTATE_STREAM_FUNCTIONS(COSTATE_STREAM_MEMBER)
#undef COSTATE_STREAM_MEMBER
};

/// What a library calls a function.
struct Symbol {
  const char *name = nullptr;
  bool isOptional = false; ///< old versions have none
};

struct Symbols {
#define COSTATE_STREAM_SYMBOL(member, ...) Symbol member = {};
  COSTATE_STREAM_FUNCTIONS(COSTATE_STREAM_SYMBOL)
#undef COSTATE_STREAM_SYMBOL

  constexpr bool nameAll() const {
#define COSTATE_STREAM_IS_NAMED(member, ...) &&member.name
    return true COSTATE_STREAM_FUNCTIONS(COSTATE_STREAM_IS_NAMED);
#undef COSTATE_STREAM_IS_NAMED
  }
};

/// The address of a symbol of a library; null: it has none.
using Lookup = std::function<void *(const char *symbol)>;

template <class Signature>
bool find(const Lookup &lookup, const char *symbol, Signature &function) {
  function = reinterpret_cast<Signature>(lookup(symbol));
  return function;
}

/// Fills `functions`; optional ones that are missing say `notSupported`. The
/// name of another one that is missing; null if there is none.
const char *findAll(const Lookup &lookup, const Symbols &symbols,
                    Functions &functions);

/// Of messages.
struct Words {
  const char *gpu, *driver;
  const char *tool;   ///< that tells the user more
  const char *search; ///< what to look at where no GPU is found
};

/// Which launches become graphs.
struct GraphRule {
  size_t least = 0; ///< so many or more at a time; 0: none
  int times = 0;    ///< that they come before
};
constexpr GraphRule noGraphs{};

class Api : public Functions {
public:
  virtual ~Api() = default;
  virtual const Words &words() const = 0;
  /// `CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)`.
  virtual std::string text(Status status) const = 0;

  virtual Status retain(Context &context, DeviceNumber device) const = 0;
  virtual void release(DeviceNumber device) const = 0;
  /// The GPU is that of the calling thread until `leave`, which takes `before`
  /// and what was done in between.
  virtual Status enter(Context context, Context &before) const = 0;
  virtual void leave(Context before, Status done) const = 0;

  virtual Status copyRows(PitchedRows to, PitchedRows from, size_t bytes,
                          size_t rows, Stream stream) const = 0;
  /// Of memory that blocks of `function` may share.
  virtual Status allowShared(Function, size_t) const { return success; }
  virtual void *launchEnd() const = 0;
  virtual GraphRule graphRule() const { return noGraphs; }
};

/// NoDevice says what is missing.
Result<> initialise(const Api &api);

/// `NAME (TEXT)`, where the driver knows both.
std::string statusText(const char *name, const char *text, Status status);

} // namespace costate::runtime::streams
