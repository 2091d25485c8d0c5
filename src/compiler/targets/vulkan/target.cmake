target_sources(costate-compiler PRIVATE targets/vulkan/Lacks.cpp targets/vulkan/Spirv.cpp targets/vulkan/Vulkan.cpp)
costate_device_library(vulkan "-DCOSTATE_VULKAN;-DCOSTATE_TRANSLATED" DeviceCollectivesVulkan.c DeviceDivision.c DeviceFma.c)
