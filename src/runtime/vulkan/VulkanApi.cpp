#include "runtime/vulkan/VulkanApi.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <utility>

namespace costate::runtime::vulkan {
namespace {

constexpr const char *validationLayer = "VK_LAYER_KHRONOS_validation";
constexpr const char *elsewhere = ", or choose another device";

Failure noLoader() {
  return {ErrorCode::NoDevice,
          std::string("there is no Vulkan on this machine: libvulkan.so.1 "
                      "cannot be loaded; install it (Debian: libvulkan1) and "
                      "the driver of the GPU") +
              elsewhere};
}

Failure noDriver(Status status) {
  return {
      ErrorCode::NoDevice,
      "Vulkan finds no driver on this machine: " + statusText(status) +
          "; install the driver of the GPU (for the CPU, Debian: "
          "mesa-vulkan-drivers), see `vulkaninfo --summary`, VK_DRIVER_FILES "
          "and VK_ICD_FILENAMES" +
          elsewhere};
}

bool hasLayer() {
  uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  vkEnumerateInstanceLayerProperties(&count, layers.data());
  return std::ranges::any_of(layers, [](const VkLayerProperties &layer) {
    return std::strcmp(layer.layerName, validationLayer) == 0;
  });
}

VKAPI_ATTR VkBool32 VKAPI_CALL
note(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
     const VkDebugUtilsMessengerCallbackDataEXT *data, void *messages) {
  static_cast<Messages *>(messages)->add(data->pMessage);
  return VK_FALSE;
}

/// volk's functions of instances are those of the loader, which are the same
/// for all.
void loadFunctions(VkInstance instance) {
  static std::once_flag once;
  std::call_once(once, [&] { volkLoadInstanceOnly(instance); });
}

template <class Function>
Function functionOf(VkInstance instance, const char *name) {
  return reinterpret_cast<Function>(vkGetInstanceProcAddr(instance, name));
}

} // namespace

std::string statusText(Status status) {
  switch (status) {
#define COSTATE_VULKAN_STATUS(NAME)                                            \
  case NAME:                                                                   \
    return #NAME;
    COSTATE_VULKAN_STATUS(VK_SUCCESS)
    COSTATE_VULKAN_STATUS(VK_TIMEOUT)
    COSTATE_VULKAN_STATUS(VK_INCOMPLETE)
    COSTATE_VULKAN_STATUS(VK_ERROR_OUT_OF_HOST_MEMORY)
    COSTATE_VULKAN_STATUS(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    COSTATE_VULKAN_STATUS(VK_ERROR_INITIALIZATION_FAILED)
    COSTATE_VULKAN_STATUS(VK_ERROR_DEVICE_LOST)
    COSTATE_VULKAN_STATUS(VK_ERROR_MEMORY_MAP_FAILED)
    COSTATE_VULKAN_STATUS(VK_ERROR_LAYER_NOT_PRESENT)
    COSTATE_VULKAN_STATUS(VK_ERROR_EXTENSION_NOT_PRESENT)
    COSTATE_VULKAN_STATUS(VK_ERROR_FEATURE_NOT_PRESENT)
    COSTATE_VULKAN_STATUS(VK_ERROR_INCOMPATIBLE_DRIVER)
    COSTATE_VULKAN_STATUS(VK_ERROR_TOO_MANY_OBJECTS)
    COSTATE_VULKAN_STATUS(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    COSTATE_VULKAN_STATUS(VK_ERROR_FRAGMENTATION)
    COSTATE_VULKAN_STATUS(VK_ERROR_INVALID_SHADER_NV)
    COSTATE_VULKAN_STATUS(VK_ERROR_UNKNOWN)
#undef COSTATE_VULKAN_STATUS
  default:
    return "VkResult " + std::to_string(status);
  }
}

static std::atomic<bool> forked = false;

bool isForked() { return forked; }

Failure forkedFailure() {
  return {ErrorCode::NoDevice,
          "Vulkan does not survive a fork, and the parent of this process has "
          "used it: start the process before that, or by `exec` (`spawn` of "
          "Python's multiprocessing)"};
}

void Messages::add(const std::string &text) {
  std::lock_guard lock(mutex);
  texts += (texts.empty() ? "" : "\n") + text;
}

std::string Messages::take() {
  std::lock_guard lock(mutex);
  return std::exchange(texts, "");
}

Instance::~Instance() {
  if (messenger)
    functionOf<PFN_vkDestroyDebugUtilsMessengerEXT>(
        instance, "vkDestroyDebugUtilsMessengerEXT")(instance, messenger,
                                                     nullptr);
  if (instance)
    vkDestroyInstance(instance, nullptr);
  if (std::string text = said.take(); !text.empty())
    std::fprintf(stderr, "costate: validation: %s\n", text.c_str());
}

Status Instance::create(bool validate) {
  VkApplicationInfo program{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  program.pEngineName = "costate";
  program.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &program;
  const char *extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                              VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  VkValidationFeatureEnableEXT enabled =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &enabled;
  if (validate) {
    chain(info, features);
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &validationLayer;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
  }
  Status status = vkCreateInstance(&info, nullptr, &instance);
  if (status)
    return status;
  loadFunctions(instance);
  return validate ? listen() : VK_SUCCESS;
}

Status Instance::listen() {
  VkDebugUtilsMessengerCreateInfoEXT info{
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = note;
  info.pUserData = &said;
  auto make = functionOf<PFN_vkCreateDebugUtilsMessengerEXT>(
      instance, "vkCreateDebugUtilsMessengerEXT");
  return make ? make(instance, &info, nullptr, &messenger)
              : VK_ERROR_EXTENSION_NOT_PRESENT;
}

Result<std::shared_ptr<Instance>> Instance::open(bool validate) {
  static std::mutex mutex;
  static auto &usual = *new std::shared_ptr<Instance>; // drivers stay loaded
  std::lock_guard lock(mutex);
  static const Status loaded = volkInitialize();
  if (loaded != VK_SUCCESS)
    return noLoader();
  static const int watched =
      pthread_atfork(nullptr, nullptr, [] { forked = true; });
  (void)watched; // without memory for that there is none for the rest either
  if (isForked())
    return forkedFailure();
  if (volkGetInstanceVersion() < VK_API_VERSION_1_2)
    return Failure{ErrorCode::NoDevice,
                   std::string("the Vulkan of this machine is too old: 1.2 is "
                               "the oldest that will do; update libvulkan1") +
                       elsewhere};
  if (validate && !hasLayer()) {
    std::fprintf(stderr,
                 "costate: there is no %s on this machine (Debian: "
                 "vulkan-validationlayers); what Vulkan is asked to do "
                 "is not validated\n",
                 validationLayer);
    validate = false;
  }
  if (!validate && usual)
    return usual;
  std::shared_ptr<Instance> made(new Instance);
  if (Status status = made->create(validate))
    return noDriver(status);
  if (!validate)
    usual = made;
  return made;
}

Result<std::vector<VkPhysicalDevice>> Instance::devices() const {
  uint32_t count = 0;
  Status status = vkEnumeratePhysicalDevices(instance, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  if (status == VK_SUCCESS && count)
    status = vkEnumeratePhysicalDevices(instance, &count, devices.data());
  if (status != VK_SUCCESS)
    return noDriver(status);
  if (count == 0)
    return noDriver(VK_ERROR_INCOMPATIBLE_DRIVER);
  devices.resize(count);
  return devices;
}

} // namespace costate::runtime::vulkan
