target_sources(costate-compiler PRIVATE targets/cpu/Cpu.cpp)
