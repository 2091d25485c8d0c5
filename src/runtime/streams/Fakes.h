#pragma once
/// The drivers of streams, each with a fake of its API.

#include "runtime/cuda/CudaDriver.h"
#include "runtime/cuda/FakeCuda.h"
#include "runtime/hip/FakeHip.h"
#include "runtime/hip/HipDriver.h"

namespace costate::runtime::streams {

struct Fake {
  std::string name;
  std::string image; ///< that it takes as code
  std::unique_ptr<FakeGpu> (*make)();
  Result<std::shared_ptr<gpu::Driver>> (*open)(FakeGpu &gpu);
};

inline const Fake fakes[] = {
    {"cuda", "",
     []() -> std::unique_ptr<FakeGpu> {
       return std::make_unique<cuda::FakeCuda>();
     },
     [](FakeGpu &gpu) {
       return cuda::openCuda(static_cast<cuda::FakeCuda &>(gpu).api(), 0);
     }},
    {"hip", hip::ElfHead().text(),
     []() -> std::unique_ptr<FakeGpu> {
       return std::make_unique<hip::FakeHip>();
     },
     [](FakeGpu &gpu) {
       return hip::openHip(static_cast<hip::FakeHip &>(gpu).api(), 0);
     }},
};

/// Of tests for all of them.
inline std::string nameOfFake(const auto &info) { return info.param.name; }

} // namespace costate::runtime::streams
