#pragma once
/// NVIDIA GPUs: code is PTX, a kernel `deviceSymbol(symbol)` takes the words of
/// a launch by value.

#include "runtime/cuda/CudaApi.h"
#include "runtime/gpu/Driver.h"

namespace costate::runtime::cuda {

/// The GPU number `ordinal`, as CUDA counts them. NoDevice says what is missing
/// and what to do.
Result<std::shared_ptr<gpu::Driver>> openCuda(int ordinal);
/// The same through `api`, which is initialised.
Result<std::shared_ptr<gpu::Driver>> openCuda(const CudaApi &api, int ordinal);

} // namespace costate::runtime::cuda
