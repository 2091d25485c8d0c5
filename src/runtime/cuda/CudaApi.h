#pragma once
/// The part of the CUDA driver API that is in use. It comes with the driver, as
/// libcuda.so.1, and is loaded at run time; names, types and numbers are those
/// of cuda.h.

#include "runtime/streams/Api.h"

namespace costate::runtime::cuda {

using namespace streams;

constexpr Status unsupportedPtx = 222;

using ContextHandle = struct ContextObject *;

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

// clang-format off
#define COSTATE_CUDA_FUNCTIONS(F)                                              \
  F(errorName, cuGetErrorName, Status, const char **)                          \
  F(errorString, cuGetErrorString, Status, const char **)                      \
  F(retainContext, cuDevicePrimaryCtxRetain, ContextHandle *, DeviceNumber)    \
  F(releaseContext, cuDevicePrimaryCtxRelease_v2, DeviceNumber)                \
  F(pushContext, cuCtxPushCurrent_v2, ContextHandle)                           \
  F(popContext, cuCtxPopCurrent_v2, ContextHandle *)                           \
  F(copyRows, cuMemcpy2DAsync_v2, const RowCopy *, Stream)                     \
  F(loadCode, cuModuleLoadDataEx, Code *, const void *, unsigned, JitOption *, \
    void **)                                                                   \
  F(getFunction, cuFuncGetAttribute, int *, FunctionAttribute, Function)       \
  F(setFunction, cuFuncSetAttribute, Function, FunctionAttribute, int)
// clang-format on

/// What CUDA has in a way of its own.
struct OwnFunctions {
#define COSTATE_CUDA_MEMBER(member, symbol, ...)                               \
  Status (*member)(__VA_ARGS__) = nullptr;
  COSTATE_CUDA_FUNCTIONS(COSTATE_CUDA_MEMBER)
#undef COSTATE_CUDA_MEMBER
};

class CudaApi final : public Api {
public:
  OwnFunctions own;
  /// A graph costs as much as two launches, and as dozens to make.
  GraphRule graphs{.least = 3, .times = 2};

  const Words &words() const override;
  std::string text(Status status) const override;
  Status retain(Context &context, DeviceNumber device) const override;
  void release(DeviceNumber device) const override;
  Status enter(Context context, Context &before) const override;
  void leave(Context before, Status done) const override;
  Status copyRows(PitchedRows to, PitchedRows from, size_t bytes, size_t rows,
                  Stream stream) const override;
  Status allowShared(Function function, size_t bytes) const override;
  void *launchEnd() const override { return nullptr; }
  GraphRule graphRule() const override { return graphs; }
};

/// Loaded once and initialised. NoDevice says what is missing.
Result<const CudaApi *> loadApi();

} // namespace costate::runtime::cuda
