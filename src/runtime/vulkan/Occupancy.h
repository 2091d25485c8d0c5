#pragma once
/// How many blocks of a kernel run at a time, which Vulkan does not tell.

#include "runtime/vulkan/Session.h"

namespace costate::runtime::vulkan {

/// Registers of a thread, as drivers of NVIDIA tell them; 0: not known.
int registersOf(const Session &session, VkPipeline pipeline);

/// On the whole device, at least one for each multiprocessor. Without
/// `registers` a guess: half of the threads, which have 64 each on GPUs of
/// NVIDIA.
int64_t residentBlocks(const gpu::Properties &gpu, int registers,
                       int blockThreads, size_t sharedBytes);

} // namespace costate::runtime::vulkan
