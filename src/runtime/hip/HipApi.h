#pragma once
/// The part of HIP that is in use, AMD's interface like CUDA's. It comes with
/// ROCm, and is loaded at run time. Structures differ between its versions:
/// none of them is used but PoolProperties, which does not.

#include "runtime/streams/Api.h"

#include <string_view>

namespace costate::runtime::hip {

using namespace streams;

/// Of hipDeviceAttribute_t, as they are since version 5.
enum class DeviceAttribute : int {
  L2Bytes = 19,
  LargestBlock = 56,
  ThreadsOfMultiprocessor = 57,
  Multiprocessors = 63,
  LargestSharedOfBlock = 74,
  Lanes = 87,
  HasPools = 88,
  SharedOfMultiprocessor = 10002,
};

enum class CopyKind : int { DeviceToDevice = 3 };

// clang-format off
#define COSTATE_HIP_FUNCTIONS(F)                                               \
  F(errorName, hipGetErrorName, const char *, Status)                          \
  F(errorText, hipGetErrorString, const char *, Status)                        \
  F(forgetError, hipGetLastError, Status)                                      \
  F(currentDevice, hipGetDevice, Status, DeviceNumber *)                       \
  F(useDevice, hipSetDevice, Status, DeviceNumber)                             \
  F(copyRows, hipMemcpy2DAsync, Status, Address, size_t, Address, size_t,      \
    size_t, size_t, CopyKind, Stream)                                          \
  F(loadCode, hipModuleLoadData, Status, Code *, const void *)
// clang-format on

/// What HIP has in a way of its own.
struct OwnFunctions {
#define COSTATE_HIP_MEMBER(member, symbol, result, ...)                        \
  result (*member)(__VA_ARGS__) = nullptr;
  COSTATE_HIP_FUNCTIONS(COSTATE_HIP_MEMBER)
#undef COSTATE_HIP_MEMBER
  /// Fills hipDeviceProp_t, of one layout or another.
  Status (*properties)(void *all, DeviceNumber device) = nullptr;
};

class HipApi final : public Api {
public:
  OwnFunctions own;
  /// COSTATE_HIP_POOLS=1: those of several versions of ROCm lose memory.
  bool usesPools = false;

  const Words &words() const override;
  std::string text(Status status) const override;
  Status retain(Context &context, DeviceNumber device) const override;
  void release(DeviceNumber) const override {}
  Status enter(Context context, Context &before) const override;
  void leave(Context before, Status done) const override;
  Status copyRows(PitchedRows to, PitchedRows from, size_t bytes, size_t rows,
                  Stream stream) const override;
  void *launchEnd() const override { return reinterpret_cast<void *>(3); }

  /// What LLVM calls the chip, `gfx90a:sramecc+:xnack-`; empty: it is not said.
  std::string chip(DeviceNumber device) const;
};

/// Fills `api`. NoDevice says what is missing.
Result<> findAll(const Lookup &library, HipApi &api);

/// What is used of the library, required or not; for tests.
std::vector<Symbol> usedSymbols();

/// Loaded once and initialised. NoDevice says what is missing.
Result<const HipApi *> loadApi();

/// The first text in `bytes` that is all of what LLVM calls an AMD chip.
std::string_view chipIn(std::string_view bytes);

} // namespace costate::runtime::hip
