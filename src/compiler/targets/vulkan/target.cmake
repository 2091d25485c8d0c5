target_sources(costate-compiler PRIVATE targets/vulkan/Lacks.cpp targets/vulkan/Spirv.cpp targets/vulkan/Vulkan.cpp)
