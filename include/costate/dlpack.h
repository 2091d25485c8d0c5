#pragma once
/// What consumers of DLPack ask of a device.

#include "costate/device.h"

namespace costate {

/// The other way round than Device::use_stream: what others queue on `stream`
/// from here on comes after all that the device was asked to do, and the host
/// does not wait. `stream` is as they pass it: 1 is CUDA's default stream, 2
/// that of the calling thread, -1 says that nothing is to wait, none is the
/// same as 1; any other is a CUstream or cudaStream_t. Error(BadArgument) for
/// 0, which may mean both default streams, and for other negative numbers.
/// Devices other than `cuda` are waited for instead, and so is `cuda` while
/// somebody captures the stream.
void let_wait(const Device &device, std::optional<int64_t> stream);

} // namespace costate
