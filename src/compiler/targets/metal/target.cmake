target_sources(costate-compiler PRIVATE targets/metal/Lacks.cpp targets/metal/Metal.cpp targets/metal/MetalSource.cpp)
costate_tests(targets/metal/MetalTest.cpp)
