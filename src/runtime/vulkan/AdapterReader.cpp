#include "runtime/vulkan/AdapterReader.h"

#include <algorithm>
#include <cstring>

namespace costate::runtime::vulkan {

/// At most, of what a block shares: for code itself (`exchanged` in
/// device/DeviceCollectivesVulkan.c).
static constexpr uint32_t ownShared = 1024;

VkPhysicalDeviceProperties plainProperties(VkPhysicalDevice device) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(device, &properties);
  return properties;
}

FeatureChain::FeatureChain()
    : core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}},
      v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES},
      v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES},
      subgroupSize{
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES},
      maintenance4{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES},
      atomicFloat{
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT},
      executables{
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR},
      reconvergence{
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MAXIMAL_RECONVERGENCE_FEATURES_KHR} {
}

void AdapterReader::readExtensions() {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  extensions.resize(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count,
                                       extensions.data());
}

bool AdapterReader::has(const char *extension) const {
  return std::ranges::any_of(extensions, [&](const auto &known) {
    return std::strcmp(known.extensionName, extension) == 0;
  });
}

void AdapterReader::readProperties() {
  properties.properties = plainProperties(device);
  if (!isAtLeast(VK_API_VERSION_1_2))
    return;
  chain(properties, v11);
  chain(properties, v12);
  if (isAtLeast(VK_API_VERSION_1_3) ||
      has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME))
    chain(properties, subgroupSize);
  if (isAtLeast(VK_API_VERSION_1_3) || has(VK_KHR_MAINTENANCE_4_EXTENSION_NAME))
    chain(properties, maintenance4);
  if (has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
    chain(properties, nvidia);
  if (has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME))
    chain(properties, amd);
  vkGetPhysicalDeviceProperties2(device, &properties);
}

void AdapterReader::readFeatures(FeatureChain &there) const {
  chain(there.core, there.v11);
  chain(there.core, there.v12);
  if (isAtLeast(VK_API_VERSION_1_3) ||
      has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME))
    chain(there.core, there.subgroupSize);
  if (isAtLeast(VK_API_VERSION_1_3) || has(VK_KHR_MAINTENANCE_4_EXTENSION_NAME))
    chain(there.core, there.maintenance4);
  if (has(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME))
    chain(there.core, there.atomicFloat);
  if (has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME))
    chain(there.core, there.executables);
  if (has(VK_KHR_SHADER_MAXIMAL_RECONVERGENCE_EXTENSION_NAME))
    chain(there.core, there.reconvergence);
  vkGetPhysicalDeviceFeatures2(device, &there.core);
}

/// What code or the driver makes use of, as far as it is there.
void AdapterReader::want(FeatureChain &wanted,
                         const FeatureChain &there) const {
  readFeatures(wanted); // for the chain
  wanted.core.features = {};
  auto keep = [&](auto &to, const auto &from, auto... members) {
    ((to.*members = from.*members), ...);
  };
  using Core = VkPhysicalDeviceFeatures;
  keep(wanted.core.features, there.core.features, &Core::shaderInt64,
       &Core::shaderFloat64, &Core::shaderInt16, &Core::sparseBinding);
  auto clear = [](auto &features) {
    auto *next = features.pNext;
    auto type = features.sType;
    features = {};
    features.sType = type;
    features.pNext = next;
  };
  clear(wanted.v11);
  using V11 = VkPhysicalDeviceVulkan11Features;
  keep(wanted.v11, there.v11, &V11::storageBuffer16BitAccess);
  clear(wanted.v12);
  using V12 = VkPhysicalDeviceVulkan12Features;
  keep(wanted.v12, there.v12, &V12::bufferDeviceAddress,
       &V12::timelineSemaphore, &V12::shaderInt8, &V12::shaderFloat16,
       &V12::storageBuffer8BitAccess, &V12::shaderBufferInt64Atomics,
       &V12::shaderSharedInt64Atomics, &V12::shaderSubgroupExtendedTypes,
       &V12::vulkanMemoryModel, &V12::vulkanMemoryModelDeviceScope,
       &V12::scalarBlockLayout);
}

std::string AdapterReader::lacking(const FeatureChain &there) const {
  if (!there.v12.bufferDeviceAddress)
    return "addresses of buffers (bufferDeviceAddress)";
  if (!there.core.features.shaderInt64)
    return "64-bit integers (shaderInt64)";
  if (!there.v12.timelineSemaphore)
    return "timeline semaphores (timelineSemaphore)";
  return "";
}

/// One for compute only, where there is one.
bool AdapterReader::findQueue(Adapter &adapter) const {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  bool found = false;
  for (uint32_t k = 0; k < count; ++k) {
    VkQueueFlags flags = families[k].queueFlags;
    bool isBetter = !found || !(flags & VK_QUEUE_GRAPHICS_BIT);
    if (!(flags & VK_QUEUE_COMPUTE_BIT) || !isBetter)
      continue;
    adapter.queueFamily = k;
    adapter.bindsSparse = flags & VK_QUEUE_SPARSE_BINDING_BIT;
    found = true;
  }
  return found;
}

/// Whether pipelines may choose how many lanes a subgroup has.
bool AdapterReader::isSizeChosen(const FeatureChain &there) const {
  return there.subgroupSize.subgroupSizeControl &&
         subgroupSize.minSubgroupSize < subgroupSize.maxSubgroupSize &&
         (subgroupSize.requiredSubgroupSizeStages &
          VK_SHADER_STAGE_COMPUTE_BIT);
}

/// Lanes of a subgroup: 32, if pipelines may choose.
uint32_t AdapterReader::lanesOf(const FeatureChain &there,
                                uint32_t &asked) const {
  if (!isSizeChosen(there))
    return v11.subgroupSize;
  asked = std::clamp(32u, subgroupSize.minSubgroupSize,
                     subgroupSize.maxSubgroupSize);
  return asked;
}

/// Only such that a module may ask for at the same time.
void AdapterReader::addFloatControls(VulkanFeatures &to) const {
  to.nan16 = v12.shaderSignedZeroInfNanPreserveFloat16;
  to.nan32 = v12.shaderSignedZeroInfNanPreserveFloat32;
  to.nan64 = v12.shaderSignedZeroInfNanPreserveFloat64;
  to.denorm16 = v12.shaderDenormPreserveFloat16;
  to.denorm32 = v12.shaderDenormPreserveFloat32;
  to.denorm64 = v12.shaderDenormPreserveFloat64;
  to.rte16 = v12.shaderRoundingModeRTEFloat16;
  to.rte32 = v12.shaderRoundingModeRTEFloat32;
  to.rte64 = v12.shaderRoundingModeRTEFloat64;
  auto agree = [](VkShaderFloatControlsIndependence freedom, bool &of16,
                  bool &of32, bool &of64) {
    bool all = of16 && of32 && of64;
    if (freedom == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE)
      of16 = of32 = of64 = all;
    if (freedom == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY)
      of16 = of64 = of16 && of64;
  };
  agree(v12.denormBehaviorIndependence, to.denorm16, to.denorm32, to.denorm64);
  agree(v12.roundingModeIndependence, to.rte16, to.rte32, to.rte64);
}

VulkanFeatures AdapterReader::features(const FeatureChain &there,
                                       uint32_t lanes) const {
  VulkanFeatures to;
  to.major = static_cast<int>(VK_API_VERSION_MAJOR(
      std::min(properties.properties.apiVersion, VK_API_VERSION_1_3)));
  to.minor = static_cast<int>(VK_API_VERSION_MINOR(
      std::min(properties.properties.apiVersion, VK_API_VERSION_1_3)));
  to.subgroup = static_cast<int>(lanes);
  to.f64 = there.core.features.shaderFloat64;
  to.i16 = there.core.features.shaderInt16;
  to.storage16 = there.v11.storageBuffer16BitAccess;
  to.i8 = there.v12.shaderInt8;
  to.f16 = there.v12.shaderFloat16;
  to.storage8 = there.v12.storageBuffer8BitAccess;
  to.i64Atomics = there.v12.shaderBufferInt64Atomics;
  to.sharedI64Atomics = there.v12.shaderSharedInt64Atomics;
  to.extendedTypes = there.v12.shaderSubgroupExtendedTypes;
  to.memoryModel =
      there.v12.vulkanMemoryModel && there.v12.vulkanMemoryModelDeviceScope;
  to.fadd32 = there.atomicFloat.shaderBufferFloat32AtomicAdd;
  to.fadd64 = there.atomicFloat.shaderBufferFloat64AtomicAdd;
  to.sharedFadd32 = there.atomicFloat.shaderSharedFloat32AtomicAdd;
  to.sharedFadd64 = there.atomicFloat.shaderSharedFloat64AtomicAdd;
  to.fullSubgroups =
      there.subgroupSize.computeFullSubgroups &&
      (lanes == subgroupSize.maxSubgroupSize || isSizeChosen(there));
  auto hasOperation = [&](VkSubgroupFeatureFlagBits which) {
    return (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
           (v11.subgroupSupportedOperations & which);
  };
  to.vote = hasOperation(VK_SUBGROUP_FEATURE_VOTE_BIT);
  to.ballot = hasOperation(VK_SUBGROUP_FEATURE_BALLOT_BIT);
  to.shuffle = hasOperation(VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
  to.shuffleRelative = hasOperation(VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT);
  to.arithmetic = hasOperation(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
  to.reconvergence = there.reconvergence.shaderMaximalReconvergence;
  to.warps = to.canHaveWarps();
  addFloatControls(to);
  // Its code for rests, for places in private arrays and for saturated sums is
  // wrong in some kernels (580.159.04); of its assembler see hideNegations in
  // Nvidia.cpp.
  bool isNvidia = v12.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  to.miscompilesI64Division = to.miscompilesPlaceSums = isNvidia;
  to.miscompilesNegatedMinimum = to.miscompilesSaturation = isNvidia;
  to.skipsHalfRounding = isNvidia; // f32(f16(x)) is x
  // It takes `56 < i64(x)` for true whatever the sign of x (22.3.6).
  bool isMesa = std::string_view(v12.driverInfo).starts_with("Mesa");
  to.miscompilesSignExtension = isMesa;
  // It ends the process where bits of a new f64 are exchanged, with vectors of
  // 256 bits (LLVM 15).
  to.crashesOnExchangedF64 = v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
  return to;
}

/// Drivers of NVIDIA and AMD tell how large the GPU is, others do not: numbers
/// that keep a usual one busy.
Guess AdapterReader::guess() const {
  if (nvidia.shaderSMCount)
    return {static_cast<int>(nvidia.shaderSMCount),
            static_cast<int>(nvidia.shaderWarpsPerSM) * 32};
  if (amd.computeUnitsPerShaderArray)
    return {static_cast<int>(amd.shaderEngineCount *
                             amd.shaderArraysPerEngineCount *
                             amd.computeUnitsPerShaderArray),
            static_cast<int>(amd.simdPerComputeUnit * amd.wavefrontsPerSimd *
                             amd.wavefrontSize)};
  switch (properties.properties.deviceType) {
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return {1024, 256}; // a thread may not run for long (`endsLongLoops`)
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return {32, 1024};
  default:
    return {8, 1024};
  }
}

/// Bytes of a multiprocessor that CUDA gives, of the newest GPUs with as many
/// warps: "Technical Specifications per Compute Capability" in the CUDA C++
/// Programming Guide. 0: it is not NVIDIA's.
static size_t sharedOfNvidia(uint32_t warps) {
  return size_t(warps == 0   ? 0
                : warps < 48 ? 64
                : warps < 64 ? 100
                             : 228)
         << 10;
}

gpu::Properties
AdapterReader::gpuProperties(const VulkanFeatures &features) const {
  const VkPhysicalDeviceLimits &limits = properties.properties.limits;
  Guess guess = this->guess();
  gpu::Properties result;
  result.name = properties.properties.deviceName;
  result.multiprocessors = guess.multiprocessors;
  result.residentThreads = guess.multiprocessors * guess.threads;
  for (uint32_t k = 0; k < memory.memoryHeapCount; ++k)
    if (memory.memoryHeaps[k].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      result.memory =
          std::max<size_t>(result.memory, memory.memoryHeaps[k].size);
  result.chip = vulkanChip(features);
  result.shape = shapeOf(features);
  result.sharedPerBlock = limits.maxComputeSharedMemorySize - ownShared;
  // NVIDIA's driver (580.159.04) gives all blocks of an H200's multiprocessor
  // together as much as one may have, of 228 KiB that there are.
  result.sharedPerMultiprocessor = limits.maxComputeSharedMemorySize;
  result.sharedOfChip = sharedOfNvidia(nvidia.shaderWarpsPerSM);
  auto most = static_cast<int>(std::min(limits.maxComputeWorkGroupInvocations,
                                        limits.maxComputeWorkGroupSize[0]));
  result.blockThreads = std::min(features.largestBlock(), most);
  result.mostBlocks = limits.maxComputeWorkGroupCount[0];
  result.sortsApart = true; // its sweeps have no code that sorts (DeviceSort.c)
  return result;
}

Result<Adapter> AdapterReader::adapter() {
  std::string name = properties.properties.deviceName;
  auto lacks = [&](const std::string &what) {
    return Failure{ErrorCode::NoDevice, "`" + name + "` lacks " + what +
                                            "; update its driver, or choose "
                                            "another device"};
  };
  if (!isAtLeast(VK_API_VERSION_1_2))
    return lacks("Vulkan 1.2");
  Adapter result;
  result.handle = device;
  if (!findQueue(result))
    return lacks("a queue for compute");
  FeatureChain there;
  readFeatures(there);
  if (std::string missing = lacking(there); !missing.empty())
    return lacks(missing);
  result.wanted = std::make_shared<FeatureChain>();
  want(*result.wanted, there);
  result.bindsSparse &= there.core.features.sparseBinding == VK_TRUE;
  for (const char *extension :
       {VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME,
        VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
        VK_KHR_MAINTENANCE_4_EXTENSION_NAME,
        VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
        VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME,
        VK_KHR_SHADER_MAXIMAL_RECONVERGENCE_EXTENSION_NAME})
    if (has(extension))
      result.extensions.push_back(extension);
  uint32_t lanes = lanesOf(there, result.askedSubgroup);
  result.features = features(there, lanes);
  result.properties = gpuProperties(result.features);
  result.mostBytes = v11.maxMemoryAllocationSize;
  size_t mostOfBuffer =
      maintenance4.maxBufferSize ? maintenance4.maxBufferSize : SIZE_MAX;
  result.mostBytes = std::min(result.mostBytes, mostOfBuffer);
  if (result.bindsSparse)
    result.mostSparseBytes = std::min<size_t>(
        mostOfBuffer, properties.properties.limits.sparseAddressSpaceSize);
  result.isCpu =
      properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  result.tellsStatistics = there.executables.pipelineExecutableInfo;
  result.tellsBudget = has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  const auto &plain = properties.properties;
  result.driver =
      name + " " + std::to_string(plain.vendorID) + " " +
      std::to_string(plain.deviceID) + " " +
      std::to_string(plain.driverVersion) + " " + v12.driverInfo + " " +
      std::string(reinterpret_cast<const char *>(plain.pipelineCacheUUID),
                  VK_UUID_SIZE);
  return result;
}

} // namespace costate::runtime::vulkan
