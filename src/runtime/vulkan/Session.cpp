#include "runtime/vulkan/Session.h"

#include <bit>

namespace costate::runtime::vulkan {

Result<std::shared_ptr<Session>>
Session::open(std::shared_ptr<Instance> instance, Adapter adapter,
              void (*change)(Api &)) {
  std::string name = adapter.properties.name;
  std::shared_ptr<Session> session(
      new Session(std::move(instance), std::move(adapter)));
  if (Status status = session->create())
    return Failure{ErrorCode::NoDevice,
                   "`" + name + "` cannot be opened: " + statusText(status) +
                       "; choose another device"};
  if (change)
    change(session->functions);
  return session;
}

template <class... Rest> VKAPI_ATTR void VKAPI_CALL leave(VkDevice, Rest...) {}

/// For a process that was forked: what it would destroy is its parent's.
static Api abandonedOf(Api api) {
  api.vkDestroyBuffer = leave;
  api.vkDestroyCommandPool = leave;
  api.vkDestroyDevice = leave;
  api.vkDestroyFence = leave;
  api.vkDestroyPipeline = leave;
  api.vkDestroyPipelineCache = leave;
  api.vkDestroyPipelineLayout = leave;
  api.vkDestroySemaphore = leave;
  api.vkDestroyShaderModule = leave;
  api.vkFreeMemory = leave;
  return api;
}

Status Session::create() {
  float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = opened.queueFamily;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &opened.wanted->core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(opened.extensions.size());
  info.ppEnabledExtensionNames = opened.extensions.data();
  if (Status status = vkCreateDevice(opened.handle, &info, nullptr, &handle))
    return status;
  volkLoadDeviceTable(&functions, handle);
  abandoned = abandonedOf(functions);
  functions.vkGetDeviceQueue(handle, opened.queueFamily, 0, &work);
  vkGetPhysicalDeviceMemoryProperties(opened.handle, &memory);
  return createLayout();
}

Status Session::createLayout() {
  VkPushConstantRange words{VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            3 * sizeof(uint64_t)};
  VkPipelineLayoutCreateInfo info{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &words;
  return functions.vkCreatePipelineLayout(handle, &info, nullptr, &kernels);
}

Session::~Session() {
  if (!handle)
    return;
  api().vkDestroyPipelineLayout(handle, kernels, nullptr);
  api().vkDestroyDevice(handle, nullptr);
}

Result<> Session::result(Status status, const std::string &doing) {
  if (status == VK_SUCCESS)
    return {};
  return failure(status, doing);
}

Failure Session::failure(Status status, const std::string &doing) {
  if (isForked())
    return forkedFailure();
  std::string text = statusText(note(status));
  if (isLost())
    return {ErrorCode::KernelFailed,
            "a kernel has failed on the GPU, or its driver has: "
            "VK_ERROR_DEVICE_LOST; what its arrays hold is lost, and the "
            "device must be opened again (`debug` in KernelOptions finds "
            "indices out of range; some systems stop kernels that run for "
            "seconds on a GPU with a display)"};
  if (status == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      status == VK_ERROR_OUT_OF_HOST_MEMORY)
    return {ErrorCode::OutOfMemory,
            "the GPU has no memory left to " + doing + "; release arrays"};
  return {ErrorCode::Internal, "the GPU fails to " + doing + ": " + text};
}

Result<> Session::defects() {
  if (std::string kernel = watch.take(); !kernel.empty())
    return Failure{ErrorCode::KernelFailed,
                   "Mesa's Vulkan driver for the CPU ends the loops of a "
                   "thread after 65,535 iterations, and has done so in `" +
                       kernel +
                       "`: what was computed since the last synchronisation "
                       "is wrong; use the device `cpu`, or a GPU"};
  std::string text = instance->messages().take();
  if (text.empty())
    return {};
  return Failure{ErrorCode::Internal, "validation: " + text};
}

size_t Session::freeBytes(uint32_t heap) const {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 properties{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  if (!opened.tellsBudget)
    return heapBytes(heap);
  chain(properties, budget);
  vkGetPhysicalDeviceMemoryProperties2(opened.handle, &properties);
  VkDeviceSize used = budget.heapUsage[heap], all = budget.heapBudget[heap];
  return all > used ? all - used : 0;
}

int Session::memoryType(uint32_t allowed, VkMemoryPropertyFlags needed,
                        VkMemoryPropertyFlags liked,
                        VkMemoryPropertyFlags disliked) const {
  int best = -1, bestScore = 0;
  for (uint32_t k = 0; k < memory.memoryTypeCount; ++k) {
    VkMemoryPropertyFlags flags = memory.memoryTypes[k].propertyFlags;
    if (!(allowed & (1u << k)) || (flags & needed) != needed)
      continue;
    int score = std::popcount(flags & liked) - std::popcount(flags & disliked);
    if (best >= 0 && score <= bestScore)
      continue;
    best = static_cast<int>(k);
    bestScore = score;
  }
  return best;
}

} // namespace costate::runtime::vulkan
