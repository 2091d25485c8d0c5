#pragma once
/// Reads what a device of Vulkan has.

#include "runtime/vulkan/Adapter.h"

namespace costate::runtime::vulkan {

VkPhysicalDeviceProperties plainProperties(VkPhysicalDevice device);

/// What there is no way of asking for.
struct Guess {
  int multiprocessors;
  int threads; ///< of a multiprocessor
};

class AdapterReader {
public:
  explicit AdapterReader(VkPhysicalDevice device) : device(device) {
    readExtensions();
    readProperties();
    vkGetPhysicalDeviceMemoryProperties(device, &memory);
  }

  Result<Adapter> adapter();

private:
  void readExtensions();
  void readProperties();
  bool has(const char *extension) const;
  bool isAtLeast(uint32_t version) const {
    return properties.properties.apiVersion >= version;
  }
  void readFeatures(FeatureChain &there) const;
  void want(FeatureChain &wanted, const FeatureChain &there) const;
  std::string lacking(const FeatureChain &there) const;
  bool findQueue(Adapter &adapter) const;
  VulkanFeatures features(const FeatureChain &there, uint32_t lanes) const;
  void addFloatControls(VulkanFeatures &features) const;
  bool isSizeChosen(const FeatureChain &there) const;
  uint32_t lanesOf(const FeatureChain &there, uint32_t &asked) const;
  Guess guess() const;
  gpu::Properties gpuProperties(const VulkanFeatures &features) const;

  VkPhysicalDevice device;
  std::vector<VkExtensionProperties> extensions;
  VkPhysicalDeviceProperties2 properties{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceVulkan11Properties v11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
  VkPhysicalDeviceVulkan12Properties v12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroupSize{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceMaintenance4Properties maintenance4{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
  VkPhysicalDeviceMemoryProperties memory{};
};

} // namespace costate::runtime::vulkan
