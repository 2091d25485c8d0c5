#pragma once
/// The part of NCCL that is in use. It is loaded at run time, as
/// libnccl.so.2; names, types and numbers are those of nccl.h.

#include "runtime/Ranks.h"
#include "runtime/cuda/CudaApi.h"

namespace costate::runtime::cuda {

using NcclStatus = int;
constexpr NcclStatus ncclSystemError = 2;
constexpr NcclStatus ncclRemoteError = 6;
constexpr NcclStatus ncclInProgress = 7;

using Communicator = struct CommunicatorObject *;

enum class NcclType : int {
  I8,
  U8,
  I32,
  U32,
  I64,
  U64,
  F16,
  F32,
  F64,
};

enum class NcclOperation : int { Sum };

// clang-format off
#define COSTATE_NCCL_FUNCTIONS(F)                                              \
  F(makePlace, ncclGetUniqueId, MeetingPlace *)                                \
  F(join, ncclCommInitRank, Communicator *, int, MeetingPlace, int)            \
  F(leave, ncclCommDestroy, Communicator)                                      \
  F(abandon, ncclCommAbort, Communicator)                                      \
  F(state, ncclCommGetAsyncError, Communicator, NcclStatus *)                  \
  F(sum, ncclAllReduce, const void *, void *, size_t, NcclType,                \
    NcclOperation, Communicator, Stream)                                       \
  F(send, ncclSend, const void *, size_t, NcclType, int, Communicator, Stream) \
  F(receive, ncclRecv, void *, size_t, NcclType, int, Communicator, Stream)    \
  F(beginGroup, ncclGroupStart)                                                \
  F(endGroup, ncclGroupEnd)
// clang-format on

struct NcclApi {
#define COSTATE_NCCL_MEMBER(member, symbol, ...)                               \
  NcclStatus (*member)(__VA_ARGS__) = nullptr;
  COSTATE_NCCL_FUNCTIONS(COSTATE_NCCL_MEMBER)
#undef COSTATE_NCCL_MEMBER
  const char *(*text)(NcclStatus) = nullptr;
};

/// Loaded once. NoDevice says what is missing.
Result<const NcclApi *> loadNccl();

} // namespace costate::runtime::cuda
