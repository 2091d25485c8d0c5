#pragma once
/// The part of the CUDA driver API that is in use. It comes with the driver, as
/// libcuda.so.1, and is loaded at run time; names, types and numbers are those
/// of cuda.h.

#include "base/Result.h"

#include <cstddef>
#include <string>

namespace costate::runtime::cuda {

using Status = int;
constexpr Status success = 0;
constexpr Status invalidValue = 1;
constexpr Status outOfMemory = 2;
constexpr Status noDevice = 100;
constexpr Status unsupportedPtx = 222;
constexpr Status notReady = 600;
/// A stream is captured, and this cannot be.
constexpr Status captureUnsupported = 900;
/// The context is unusable from then on.
constexpr Status illegalAddress = 700;
constexpr Status launchTimeout = 702;
constexpr Status deviceAssert = 710;
constexpr Status firstOfLaunch = 714; ///< hardware stack, instruction, ...
constexpr Status lastOfLaunch = 719;

using DeviceNumber = int;
using Address = unsigned long long;
using Context = struct ContextObject *;
using Stream = struct StreamObject *;
using Event = struct EventObject *;
using Pool = struct PoolObject *;
using Code = struct CodeObject *;
using Function = struct FunctionObject *;
using GraphHandle = struct GraphObject *;
using GraphRun = struct GraphRunObject *;
using Held = struct HeldObject *;
using GraphNode = struct GraphNodeObject *;

enum class DeviceAttribute : int {
  Multiprocessors = 16,
  L2Bytes = 38,
  ThreadsOfMultiprocessor = 39,
  CapabilityMajor = 75,
  CapabilityMinor = 76,
  SharedOfMultiprocessor = 81,
  LargestSharedOfBlock = 97,
  HasPools = 115,
};

enum class FunctionAttribute : int { LocalBytes = 3, LargestDynamicShared = 8 };

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

enum class MemoryKind : int { Device = 2 };

/// One side of a copy of rows.
struct PitchedMemory {
  size_t xInBytes = 0, y = 0;
  MemoryKind kind = MemoryKind::Device;
  void *host = nullptr;
  Address device = 0;
  struct ArrayObject *array = nullptr;
  size_t pitch = 0;
};

struct RowCopy {
  PitchedMemory from, to;
  size_t bytes = 0; ///< of a row
  size_t rows = 0;
};
static_assert(sizeof(RowCopy) == 128, "CUDA_MEMCPY2D");

enum class JitOption : int { ErrorLog = 5, ErrorLogBytes = 6 };

/// Entries of the last argument of launchKernel.
inline void *const launchBuffer = reinterpret_cast<void *>(1);
inline void *const launchBufferBytes = reinterpret_cast<void *>(2);
inline void *const launchEnd = nullptr;

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
#define COSTATE_CUDA_FUNCTIONS(F)                                              \
  F(init, cuInit, unsigned)                                                    \
  F(driverVersion, cuDriverGetVersion, int *)                                  \
  F(errorName, cuGetErrorName, Status, const char **)                          \
  F(errorString, cuGetErrorString, Status, const char **)                      \
  F(deviceCount, cuDeviceGetCount, int *)                                      \
  F(device, cuDeviceGet, DeviceNumber *, int)                                  \
  F(deviceName, cuDeviceGetName, char *, int, DeviceNumber)                    \
  F(deviceMemory, cuDeviceTotalMem_v2, size_t *, DeviceNumber)                 \
  F(attribute, cuDeviceGetAttribute, int *, DeviceAttribute, DeviceNumber)     \
  F(retainContext, cuDevicePrimaryCtxRetain, Context *, DeviceNumber)          \
  F(releaseContext, cuDevicePrimaryCtxRelease_v2, DeviceNumber)                \
  F(pushContext, cuCtxPushCurrent_v2, Context)                                 \
  F(popContext, cuCtxPopCurrent_v2, Context *)                                 \
  F(createStream, cuStreamCreate, Stream *, unsigned)                          \
  F(createUrgentStream, cuStreamCreateWithPriority, Stream *, unsigned, int)   \
  F(destroyStream, cuStreamDestroy_v2, Stream)                                 \
  F(waitForStream, cuStreamSynchronize, Stream)                                \
  F(streamWaitsFor, cuStreamWaitEvent, Stream, Event, unsigned)                \
  F(captureStatus, cuStreamIsCapturing, Stream, CaptureStatus *)               \
  F(captureInfo, cuStreamGetCaptureInfo_v2, Stream, CaptureStatus *,           \
    unsigned long long *, GraphHandle *, const GraphNode **, size_t *)         \
  F(exchangeMode, cuThreadExchangeStreamCaptureMode, CaptureMode *)            \
  F(hold, cuUserObjectCreate, Held *, void *, void (*)(void *), unsigned,      \
    unsigned)                                                                  \
  F(giveToGraph, cuGraphRetainUserObject, GraphHandle, Held, unsigned,         \
    unsigned)                                                                  \
  F(beginCapture, cuStreamBeginCapture_v2, Stream, CaptureMode)                \
  F(endCapture, cuStreamEndCapture, Stream, GraphHandle *)                     \
  F(instantiate, cuGraphInstantiateWithFlags, GraphRun *, GraphHandle,         \
    unsigned long long)                                                        \
  F(launchGraph, cuGraphLaunch, GraphRun, Stream)                              \
  F(destroyGraph, cuGraphDestroy, GraphHandle)                                 \
  F(destroyGraphRun, cuGraphExecDestroy, GraphRun)                             \
  F(createEvent, cuEventCreate, Event *, unsigned)                             \
  F(destroyEvent, cuEventDestroy_v2, Event)                                    \
  F(recordEvent, cuEventRecord, Event, Stream)                                 \
  F(waitForEvent, cuEventSynchronize, Event)                                   \
  F(queryEvent, cuEventQuery, Event)                                           \
  F(elapsed, cuEventElapsedTime, float *, Event, Event)                        \
  F(memoryInfo, cuMemGetInfo_v2, size_t *, size_t *)                           \
  F(allocate, cuMemAlloc_v2, Address *, size_t)                                \
  F(free, cuMemFree_v2, Address)                                               \
  F(allocateHost, cuMemHostAlloc, void **, size_t, unsigned)                   \
  F(freeHost, cuMemFreeHost, void *)                                           \
  F(createPool, cuMemPoolCreate, Pool *, const PoolProperties *)               \
  F(destroyPool, cuMemPoolDestroy, Pool)                                       \
  F(setPool, cuMemPoolSetAttribute, Pool, PoolAttribute, void *)               \
  F(getPool, cuMemPoolGetAttribute, Pool, PoolAttribute, void *)               \
  F(trimPool, cuMemPoolTrimTo, Pool, size_t)                                   \
  F(allocateFromPool, cuMemAllocFromPoolAsync, Address *, size_t, Pool, Stream)\
  F(freeAsync, cuMemFreeAsync, Address, Stream)                                \
  F(copyToDevice, cuMemcpyHtoDAsync_v2, Address, const void *, size_t, Stream) \
  F(copyToHost, cuMemcpyDtoHAsync_v2, void *, Address, size_t, Stream)         \
  F(copy, cuMemcpyDtoDAsync_v2, Address, Address, size_t, Stream)              \
  F(copyRows, cuMemcpy2DAsync_v2, const RowCopy *, Stream)                     \
  F(fill8, cuMemsetD8Async, Address, unsigned char, size_t, Stream)            \
  F(fill16, cuMemsetD16Async, Address, unsigned short, size_t, Stream)         \
  F(fill32, cuMemsetD32Async, Address, unsigned, size_t, Stream)               \
  F(loadCode, cuModuleLoadDataEx, Code *, const void *, unsigned, JitOption *, \
    void **)                                                                   \
  F(unloadCode, cuModuleUnload, Code)                                          \
  F(function, cuModuleGetFunction, Function *, Code, const char *)             \
  F(residentBlocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, int *,        \
    Function, int, size_t)                                                     \
  F(getFunction, cuFuncGetAttribute, int *, FunctionAttribute, Function)       \
  F(setFunction, cuFuncSetAttribute, Function, FunctionAttribute, int)         \
  F(launchKernel, cuLaunchKernel, Function, unsigned, unsigned, unsigned,      \
    unsigned, unsigned, unsigned, unsigned, Stream, void **, void **)
// clang-format on

struct Api {
#define COSTATE_CUDA_MEMBER(member, symbol, ...)                               \
  Status (*member)(__VA_ARGS__) = nullptr;
  COSTATE_CUDA_FUNCTIONS(COSTATE_CUDA_MEMBER)
#undef COSTATE_CUDA_MEMBER
};

/// Loaded once and initialised. NoDevice says what is missing.
Result<const Api *> loadApi();

/// `CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)`.
std::string statusText(const Api &api, Status status);

} // namespace costate::runtime::cuda
