#pragma once
/// Copies to and from the host on a stream of their own.

#include "runtime/cuda/Session.h"
#include "runtime/gpu/SideStream.h"

namespace costate::runtime::cuda {

Result<std::unique_ptr<gpu::SideStream>>
openSideCopies(std::shared_ptr<Session> session);

} // namespace costate::runtime::cuda
