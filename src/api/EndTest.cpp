/// Threads that work when the process ends.

#include "costate/costate.h"
#include "costate/syntax.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <unistd.h>

namespace costate {
namespace {

std::atomic<int> done = 0;

/// What others have registered meanwhile, as libraries do.
void expectNothingIsDone() {
  const int before = done;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (done > before + 1) // which may have been done, and not counted
    _exit(1);
}

template <class F> [[noreturn]] void endWhile(F work) {
  std::thread([=] {
    for (;; ++done)
      work();
  }).detach();
  while (done < 2)
    std::this_thread::yield();
  std::atexit(expectNothingIsDone);
  std::exit(7);
}

Kernel cubes() {
  return kernel("cube", [](ArrayRef<double, 1> x, Scalar<double> c) {
    parallel(x.size(), [&](Index i) { x(i) = x(i) * x(i) * x(i) + c; });
  });
}

void compileOn(const std::string &name) {
  Device device = Device::open(name);
  endWhile([=] { cubes()(device.array<double>({3}), 1.0); });
}

TEST(EndTest, NothingIsCompiledAtTheEnd) {
  for (const char *device : {"cpu", "simt"})
    EXPECT_EXIT(compileOn(device), testing::ExitedWithCode(7), "");
}

template <class F> void workOnGpu(F work) {
  Device device = Device::open("simt");
  Kernel cube = cubes();
  Array<double> x = device.array<double>({3});
  cube(x, 1.0);
  endWhile([=] { work(device, cube, x); });
}

TEST(EndTest, NoDriverIsCalledAtTheEnd) {
  auto launch = [](const Device &, const Kernel &cube, Array<double> x) {
    cube(x, 1.0);
  };
  auto allocate = [](const Device &device, const Kernel &, Array<double>) {
    device.array<double>({3});
  };
  auto read = [](const Device &, const Kernel &, Array<double> x) {
    x.to_host();
  };
  EXPECT_EXIT(workOnGpu(launch), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(workOnGpu(allocate), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(workOnGpu(read), testing::ExitedWithCode(7), "");
}

} // namespace
} // namespace costate
