find_package(LLD REQUIRED CONFIG GLOBAL HINTS ${LLVM_DIR}/../lld)
target_sources(costate-compiler PRIVATE targets/amd/Amd.cpp targets/amd/CodeObject.cpp targets/amd/Disassembly.cpp
                                        targets/amd/HostForm.cpp targets/amd/Intrinsics.cpp targets/amd/KernelIr.cpp
                                        targets/amd/Link.cpp)
target_include_directories(costate-compiler SYSTEM PRIVATE ${LLD_INCLUDE_DIRS})
if(NOT COSTATE_STATIC)
  target_link_libraries(costate-compiler PRIVATE lldELF)
endif()
costate_device_library(amd "-DCOSTATE_TRANSLATED;-DCOSTATE_ASKS_LANES" DeviceCollectivesAmd.c)
costate_tests(targets/amd/AmdCode.cpp targets/amd/AmdTest.cpp)
