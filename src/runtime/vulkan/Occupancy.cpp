#include "runtime/vulkan/Occupancy.h"

#include <algorithm>
#include <cstring>

namespace costate::runtime::vulkan {

// Of a multiprocessor of NVIDIA's, since Volta.
static constexpr int64_t registersOfProcessor = 65536;
static constexpr int64_t registerUnit = 8; ///< of a thread
static constexpr int64_t mostBlocks = 32;
static constexpr size_t reservedShared = 1024; ///< of a block

int registersOf(const Session &session, VkPipeline pipeline) {
  const Api &api = session.api();
  if (!session.adapter().tellsStatistics ||
      !api.vkGetPipelineExecutableStatisticsKHR)
    return 0;
  VkPipelineExecutableInfoKHR info{
      VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
  info.pipeline = pipeline;
  uint32_t count = 0;
  api.vkGetPipelineExecutableStatisticsKHR(session.device(), &info, &count,
                                           nullptr);
  std::vector<VkPipelineExecutableStatisticKHR> all(
      count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  api.vkGetPipelineExecutableStatisticsKHR(session.device(), &info, &count,
                                           all.data());
  for (const VkPipelineExecutableStatisticKHR &one : all)
    if (std::strcmp(one.name, "Register Count") == 0 &&
        one.format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR)
      return static_cast<int>(std::min<uint64_t>(one.value.u64, 255));
  return 0;
}

int64_t residentBlocks(const gpu::Properties &gpu, int registers,
                       int blockThreads, size_t sharedBytes) {
  auto ceil = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  int64_t threads = gpu.residentThreads / gpu.multiprocessors;
  int64_t whole = ceil(blockThreads, 32) * 32;
  int64_t blocks = threads / whole;
  if (registers) {
    int64_t each = ceil(registers, registerUnit) * registerUnit;
    blocks =
        std::min({blocks, registersOfProcessor / (each * whole), mostBlocks});
  } else {
    blocks /= 2;
  }
  if (sharedBytes) {
    size_t fitting =
        gpu.sharedPerMultiprocessor / (sharedBytes + reservedShared);
    blocks = std::min(blocks, static_cast<int64_t>(fitting));
  }
  return std::max<int64_t>(blocks, 1) * gpu.multiprocessors;
}

} // namespace costate::runtime::vulkan
