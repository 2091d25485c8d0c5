/// Blocks of work items: shared arrays, barriers, and operations of warps.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/TestDevice.h"

#include "costate/block.h"

#include <numeric>

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

constexpr int size = 32; // of a block: on all devices

class GpuBlock : public testing::Test {
protected:
  GpuBlock() : device(openDevice()) {
    if (kindOf(device) == "cpu")
      blocksAreMissing = true;
  }
  void SetUp() override {
    if (blocksAreMissing)
      GTEST_SKIP() << "blocks are of GPUs";
  }

  bool hasWarps() const { return kindOf(device) != "vulkan"; }

  Device device;
  bool blocksAreMissing = false;
};

std::vector<float> numbers(int64_t count) {
  std::vector<float> values;
  for (int64_t k = 0; k < count; ++k)
    values.push_back(static_cast<float>(k * 7 % 23));
  return values;
}

TEST_F(GpuBlock, AddsUpInATree) {
  constexpr int64_t n = 4 * size;
  auto k = kernel("sums", [](ArrayRef<float, 1> x, ArrayRef<float, 1> y) {
    parallel(x.size(), block_dim(size), [&](Index i) {
      block::Shared<float, size> kept;
      Index t = block::thread_index();
      kept[t] = x(i);
      block::sync();
      for (int step = size / 2; step; step /= 2) {
        if_(t < step, [&] { kept[t] = kept[t] + kept[t + step]; });
        block::sync();
      }
      if_(t == 0, [&] { y(i / size) = kept[0]; });
    });
  });
  std::vector<float> given = numbers(n);
  Array<float> x = device.array<float>({n}),
               y = device.array<float>({n / size});
  x.from_host(given);
  k(x, y);
  for (int64_t b = 0; b < n / size; ++b)
    EXPECT_EQ(y.to_host()[size_t(b)],
              std::accumulate(given.begin() + b * size,
                              given.begin() + (b + 1) * size, 0.0f));
}

TEST_F(GpuBlock, UpdatesOfSharedElementsAreAtomic) {
  auto k = kernel("histogram", [](ArrayRef<int, 1> y) {
    parallel(size, block_dim(size), [&](Index i) {
      block::Shared<int, 3> counts;
      if_(i < 3, [&] { counts[i] = 0; });
      block::sync();
      counts[i % 2] += 1;
      Expr<int> before = atomic_max(counts[2], cast<int>(i));
      block::sync();
      if_(i < 3, [&] { y(i) = counts[i]; });
      if_(before < 0, [&] { y(0) = -1; });
    });
  });
  Array<int> y = device.array<int>({3});
  k(y);
  EXPECT_EQ(y.to_host(), (std::vector<int>{size / 2, size / 2, size - 1}));
}

template <class T> void expectShuffles(Device device) {
  auto k = kernel("shuffles", [](ArrayRef<T, 2> y) {
    parallel(size, block_dim(size), [&](Index i) {
      Expr<T> v = cast<T>(i) * T(3);
      y(0, i) = warp::shuffle(warp::all_lanes, v, 5);
      y(1, i) = warp::shuffle_up(warp::all_lanes, v, 2);
      y(2, i) = warp::shuffle_down(warp::all_lanes, v, 2);
      y(3, i) = warp::shuffle_xor(warp::all_lanes, v, 1);
    });
  });
  Array<T> y = device.array<T>({4, size});
  k(y);
  std::vector<T> found = y.to_host();
  for (int i = 0; i < size; ++i) {
    int from[] = {5, i < 2 ? i : i - 2, i > 29 ? i : i + 2, i ^ 1};
    for (int row = 0; row < 4; ++row)
      EXPECT_EQ(found[size_t(row * size + i)], T(3 * from[row]))
          << "row " << row << ", lane " << i;
  }
}

TEST_F(GpuBlock, LanesExchangeNumbersOfAllTypes) {
  if (!hasWarps())
    GTEST_SKIP() << "needs warps of 32 threads";
  expectShuffles<int>(device);
  expectShuffles<uint32_t>(device);
  expectShuffles<float>(device);
  expectShuffles<int64_t>(device);
  expectShuffles<uint64_t>(device);
  expectShuffles<double>(device);
}

TEST_F(GpuBlock, LanesVote) {
  if (!hasWarps())
    GTEST_SKIP() << "needs warps of 32 threads";
  auto k = kernel("votes", [](ArrayRef<uint32_t, 2> y) {
    parallel(size, block_dim(size), [&](Index i) {
      y(0, i) = warp::ballot(warp::all_lanes, i < 3);
      y(1, i) = warp::match_any(warp::all_lanes, cast<int>(i % 2));
      y(2, i) = select(warp::all(warp::all_lanes, i < size), 1u, 0u);
      y(3, i) = select(warp::any(warp::all_lanes, i > size), 1u, 0u);
      y(4, i) = select(warp::unique(warp::all_lanes, i < 3), 1u, 0u);
      warp::sync(warp::all_lanes);
      y(5, i) = warp::active_mask();
    });
  });
  Array<uint32_t> y = device.array<uint32_t>({6, size});
  k(y);
  std::vector<uint32_t> found = y.to_host();
  for (size_t i = 0; i < size; ++i) {
    EXPECT_EQ(found[i], 7u);
    EXPECT_EQ(found[size + i], i % 2 ? 0xaaaaaaaau : 0x55555555u);
    EXPECT_EQ(found[2 * size + i], 1u);
    EXPECT_EQ(found[3 * size + i], 0u);
    EXPECT_EQ(found[4 * size + i], 0u);
    EXPECT_EQ(found[5 * size + i], ~0u);
  }
}

TEST(Blocks, AreRefusedByNameInGradients) {
  Device device = openDevice();
  auto k = kernel("k", [](ArrayRef<float, 1> x) {
    parallel(x.size(), block_dim(size), [&](Index i) {
      block::Shared<float, size> kept;
      kept[block::thread_index()] = x(i);
      block::sync();
      x(i) = kept[0];
    });
  });
  int line = __LINE__ - 6;
  expectError(ErrorCode::NotDifferentiable,
              {"a shared array has no derivative", here(__FILE__, line)},
              [&] { k.grad(device.array<float>({size}, grad)); });
  expectError(ErrorCode::NotDifferentiable,
              {"a shared array has no derivative", here(__FILE__, line)},
              [&] { k.jvp(device.array<float>({size}, dual)); });
}

TEST(Blocks, AreRefusedByNameOnTheCpu) {
  auto k = kernel("k", [](ArrayRef<float, 1> x) {
    parallel(x.size(), [&](Index i) {
      block::sync();
      x(i) = 1;
    });
  });
  int line = __LINE__ - 4;
  Array<float> x = Device::open("cpu").array<float>({size});
  expectError(ErrorCode::BadKernel,
              {"`block.sync` is for GPUs", "simt", here(__FILE__, line)},
              [&] { k(x); });
}

TEST_F(GpuBlock, SerialCodeThatRunsHasNone) {
  auto k = kernel("k", [](ArrayRef<float, 1> x) {
    Var<int32_t> never = 0;
    if_(never > 0, [&] { x(block::thread_index()) = 1; });
    if_(x(0) > 0, [&] { block::sync(); });
  });
  int line = __LINE__ - 2;
  Array<float> x = device.array<float>({size});
  expectError(ErrorCode::BadKernel,
              {"`block.sync` outside of `parallel`", here(__FILE__, line)},
              [&] { k(x); });
}

TEST_F(GpuBlock, ABarrierThatSomeDoNotComeToIsRefused) {
  auto k = kernel("k", [](ArrayRef<float, 1> x) {
    parallel(x.size(), block_dim(size), [&](Index) {
      if_(block::thread_index() < 5, [&] { block::sync(); });
    });
  });
  Array<float> x = device.array<float>({size});
  expectError(ErrorCode::BadKernel,
              {"`block.sync` is reached by some work items of a block",
               here(__FILE__, __LINE__ - 6)},
              [&] { k(x); });
}

} // namespace
