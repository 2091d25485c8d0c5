#pragma once
/// Ranks that NCCL connects.

#include "runtime/cuda/NcclApi.h"
#include "runtime/streams/Session.h"

namespace costate::runtime::cuda {

/// Of another rank than 0: an empty one, if there is NCCL.
Result<MeetingPlace> makeMeetingPlace(int rank);
Result<std::shared_ptr<Ranks>> joinRanks(std::shared_ptr<Session> session,
                                         const Meeting &meeting);
/// The same through `api`.
Result<std::shared_ptr<Ranks>> joinRanks(const NcclApi &api,
                                         std::shared_ptr<Session> session,
                                         const Meeting &meeting);

} // namespace costate::runtime::cuda
