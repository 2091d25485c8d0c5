target_sources(costate-compiler PRIVATE targets/cuda/Cuda.cpp targets/cuda/LateGuards.cpp targets/cuda/Nvidia.cpp)
costate_device_library(cuda "" DeviceCollectives.c)
