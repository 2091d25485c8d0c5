#pragma once
/// A device of Vulkan before it is opened: what it has, and whether it will do.

#include "base/VulkanChip.h"
#include "runtime/gpu/Driver.h"
#include "runtime/vulkan/VulkanApi.h"

namespace costate::runtime::vulkan {

#ifdef VK_KHR_shader_maximal_reconvergence
using ReconvergenceFeatures =
    VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR;
#else
/// Of headers that are younger than ours.
#define VK_KHR_SHADER_MAXIMAL_RECONVERGENCE_EXTENSION_NAME                     \
  "VK_KHR_shader_maximal_reconvergence"
constexpr auto
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MAXIMAL_RECONVERGENCE_FEATURES_KHR =
        VkStructureType(1000434000);
struct ReconvergenceFeatures {
  VkStructureType sType;
  void *pNext;
  VkBool32 shaderMaximalReconvergence;
};
#endif

/// What Vulkan can be asked for, chained: as it is there, and then as it is
/// wanted.
struct FeatureChain {
  FeatureChain();
  FeatureChain(const FeatureChain &) = delete;

  VkPhysicalDeviceFeatures2 core;
  VkPhysicalDeviceVulkan11Features v11;
  VkPhysicalDeviceVulkan12Features v12;
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroupSize;
  VkPhysicalDeviceMaintenance4Features maintenance4;
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomicFloat;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables;
  ReconvergenceFeatures reconvergence;
};

struct Adapter {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  gpu::Properties properties;
  VulkanFeatures features;
  std::shared_ptr<FeatureChain> wanted;
  std::vector<const char *> extensions; ///< wanted as well
  uint32_t queueFamily = 0;
  /// What pipelines must ask for to have subgroups of `features.subgroup`
  /// lanes; 0: nothing.
  uint32_t askedSubgroup = 0;
  size_t mostBytes = 0; ///< of an allocation
  /// Of a buffer that several allocations are bound to; 0: there are none.
  size_t mostSparseBytes = 0;
  bool bindsSparse = false;
  bool isCpu = false;
  bool tellsStatistics = false; ///< of kernels
  bool tellsBudget = false;     ///< how much memory is free
  std::string driver = {};      ///< and its version, for what is kept on disk
};

/// `which`: empty for the fastest one, a number as Vulkan counts them, or a
/// part of a name. NoDevice says what there is, or what it lacks.
Result<Adapter> chooseAdapter(const Instance &instance,
                              const std::string &which);

} // namespace costate::runtime::vulkan
