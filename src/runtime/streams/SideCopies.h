#pragma once
/// Copies to and from the host on a stream of their own.

#include "runtime/gpu/SideStream.h"
#include "runtime/streams/Session.h"

namespace costate::runtime::streams {

Result<std::unique_ptr<gpu::SideStream>>
openSideCopies(std::shared_ptr<Session> session);

} // namespace costate::runtime::streams
