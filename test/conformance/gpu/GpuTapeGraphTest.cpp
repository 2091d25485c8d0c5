/// Gradients of loops on GPUs, in graphs and on streams of the user.

#include "Labels.h"
#include "conformance/gpu/GpuTapes.h"

COSTATE_LABEL("*", waits);
COSTATE_LABEL("Loops/GpuTapeGraph.RunsManyLaunches/*", slow);

namespace costate::test {
namespace {

/// What repeated gradients of loops work on.
struct Step {
  Step(const Device &device, Case c)
      : device(device), x(device.array<double>({c.workItems}, grad)),
        y(device.array<double>({c.workItems}, grad)),
        n(device.array<int>({c.workItems})) {
    std::vector<double> start;
    for (int i = 0; i < c.workItems; ++i)
      start.push_back(0.2 + double(i * 31 % 101) / 60);
    x.from_host(start);
    setIterations(c.longest);
  }

  void setIterations(int longest) {
    n.from_host(tripCountsOf({x.size(), longest}));
  }
  void run(const Kernel &kernel, int times) {
    x.grad().fill(0);
    for (int k = 0; k < times; ++k) {
      kernel(x, n, y);
      y.grad().fill(1);
      kernel.grad(x, n, y);
    }
  }
  std::vector<double> result() const { return x.grad().to_host(); }

  Device device;
  Array<double> x, y;
  Array<int> n;
};

std::vector<double> onCpu(const Kernel &kernel, Case c, int times) {
  Step step(Device::open("cpu"), c);
  step.run(kernel, times);
  return step.result();
}

class GpuTapeGraph : public testing::TestWithParam<size_t> {};

/// Replays need no work of the host, and are right whatever has become of the
/// heap since.
TEST_P(GpuTapeGraph, RunsManyLaunches) {
  constexpr int times = 100;
  Loops loop = loops()[GetParam()];
  Device device = openDevice();
  Step step(device, {70, 30});
  step.run(loop.kernel, 1);
  Graph graph = device.capture([&] { step.run(loop.kernel, times); });
  auto replay = [&](int longest) {
    SCOPED_TRACE(longest);
    step.setIterations(longest);
    device.synchronize();
    device.reset_statistics();
    graph.replay();
    Statistics done = device.statistics();
    if (device.name() != "cpu") {
      EXPECT_GE(done.launches, 2u * times);
      EXPECT_EQ(done.synchronizations, 0u);
      EXPECT_EQ(done.uploads + done.downloads + done.copies, 0u);
    }
    expectSame(step.result(), onCpu(loop.kernel, {70, longest}, times));
  };
  replay(30);
  replay(1000);
  for (int k = 0; k < 3; ++k)
    step.run(loop.kernel, 1); // grows the heap, if it is of use
  replay(1000);
  replay(3);
}

/// Arrays come first: tapes are made again, or iterations are run again.
TEST_P(GpuTapeGraph, OutlivesTheHeap) {
  constexpr size_t mebi = size_t(1) << 20;
  Loops loop = loops()[GetParam()];
  // A thread of the CPU makes its tape when it first gets some work.
  Device device = openDevice({.threads = isOnCpu() ? 1 : 0,
                              .memory_limit = 64 * mebi,
                              .tape_budget = 32 * mebi});
  Step step(device, {70, 500});
  for (int k = 0; k < 3; ++k)
    step.run(loop.kernel, 1);
  Graph graph = device.capture([&] { step.run(loop.kernel, 2); });
  std::vector<double> expected = onCpu(loop.kernel, {70, 500}, 2);
  size_t before = device.current_bytes();
  {
    Array<double> large = device.array<double>({60 * mebi / 8});
    graph.replay();
    expectSame(step.result(), expected);
  }
  graph.replay();
  expectSame(step.result(), expected);
  EXPECT_EQ(device.current_bytes(), before);
}

INSTANTIATE_TEST_SUITE_P(Loops, GpuTapeGraph, testing::Values(0, 1, 3),
                         [](const auto &info) {
                           return std::string(loops()[info.param].name);
                         });

/// What is queued on a stream of the caller is counted and reported as well.
TEST(GpuTapes, OnAStreamOfTheUser) {
  Device device = openDevice({.tape_budget = 0});
  if (kindOf(device) != "cuda")
    GTEST_SKIP() << "has no streams";
  Kernel k = loops()[3].kernel, tooDeep = uncut("uncut");
  Step step(device, {200, 20});
  for (int longest : {20, 3000, 100, 5000}) {
    device.use_stream(nullptr);
    step.setIterations(longest);
    step.run(k, 2);
    device.use_own_stream();
    step.run(k, 2);
    expectSame(step.result(), onCpu(k, {200, longest}, 2));
  }
  step.run(tooDeep, 1);
  device.use_stream(nullptr);
  step.setIterations(1 << 21);
  step.run(tooDeep, 1);
  device.use_own_stream();
  EXPECT_THROW(device.synchronize(), Error);
  device.synchronize();
}

} // namespace
} // namespace costate::test
