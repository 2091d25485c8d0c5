#include "Labels.h"
#include "conformance/Errors.h"
#include "costate/device.h"

#include <cstdlib>

COSTATE_LABEL("ArrayApi.*", host);

using namespace costate;
using costate::test::expectError;

template <class T> class Arrays : public testing::Test {};
using ElementTypes = testing::Types<bool, int, long, long long, unsigned,
                                    unsigned long, float, double>;
TYPED_TEST_SUITE(Arrays, ElementTypes);

TYPED_TEST(Arrays, KeepWhatTheyAreGiven) {
  Device device = Device::open("cpu", {.threads = 1});
  Array<TypeParam> array = device.array<TypeParam>({2, 3});
  EXPECT_EQ(array.to_host(), std::vector<TypeParam>(6, TypeParam(0)));
  std::vector<TypeParam> values = {1, 0, 1, 1, 0, 1};
  array.from_host(values);
  EXPECT_EQ(array.to_host(), values);
  array.fill(TypeParam(1));
  EXPECT_EQ(array.to_host(), std::vector<TypeParam>(6, TypeParam(1)));
  EXPECT_EQ(array.dtype(), dtypeOf<TypeParam>);
  EXPECT_EQ(array.bytes(), 6 * sizeOf(array.dtype()));
}

class ArrayApi : public testing::Test {
protected:
  Device device = Device::open("cpu", {.threads = 2, .memory_limit = 8u << 20});
};

TEST_F(ArrayApi, ShapesComeInManySpellings) {
  size_t n = 4;
  short m = 2;
  EXPECT_EQ(device.array<double>({}).size(), 1);
  EXPECT_EQ(device.array<double>({n}).rank(), 1);
  EXPECT_EQ(device.array<double>({n, m, 0}).size(), 0);
  EXPECT_EQ(device.array<double>(std::vector<int64_t>{5, 6}).size(1), 6);
  Array<double> array = device.array<double>({n, m});
  EXPECT_EQ(array.shape(), (std::vector<int64_t>{4, 2}));
  expectError(ErrorCode::BadArgument, {"(4, 2)", "dimension 2"},
              [&] { array.size(2); });
}

TEST_F(ArrayApi, ImpossibleArraysAreErrors) {
  expectError(ErrorCode::BadArgument, {"(-1)"},
              [&] { device.array<int>({-1}); });
  expectError(ErrorCode::BadArgument, {"address"},
              [&] { device.array<int>({UINT64_MAX}); });
  expectError(ErrorCode::OutOfMemory, {"(1000000000)", "8 MiB"},
              [&] { device.array<float>({1000000000}); });
  expectError(ErrorCode::BadArgument, {"integer array cannot have a gradient"},
              [&] { device.array<int>({3}, grad); });
  expectError(ErrorCode::BadArgument, {"bool array"},
              [&] { device.array<bool>({3}, dual); });
  EXPECT_EQ(device.current_bytes(), 0u);
}

TEST_F(ArrayApi, WrongNumbersOfValuesAreErrors) {
  Array<float> array = device.array<float>({2, 2});
  expectError(ErrorCode::BadArgument,
              {"(2, 2)", "has 4 elements", "host has 3"},
              [&] { array.from_host({1, 2, 3}); });
}

TEST_F(ArrayApi, GradientsAreSharedAndOutliveTheirArray) {
  Array<double> gradient;
  {
    Array<double> array = device.array<double>({2}, grad | dual), copy = array;
    EXPECT_TRUE(array.has_grad() && array.has_dual());
    copy.grad().fill(3);
    array.dual().fill(4);
    gradient = array.grad();
  }
  EXPECT_EQ(gradient.to_host(), (std::vector<double>{3, 3}));
  Array<double> plain = device.array<double>({2});
  expectError(ErrorCode::MissingGradient, {"has no gradient", "grad)"},
              [&] { plain.grad(); });
  expectError(ErrorCode::MissingGradient, {"has no tangent", "dual)"},
              [&] { plain.dual(); });
}

TEST_F(ArrayApi, HostWritesCountAsVersions) {
  Array<double> array = device.array<double>({2});
  uint64_t start = array.version();
  array.fill(1);
  array.from_host({1, 2});
  array.mutable_data()[1] = 5;
  EXPECT_EQ(array.version(), start + 3);
  EXPECT_EQ(array.data()[1], 5);
  EXPECT_EQ(array.version(), start + 3);
}

TEST_F(ArrayApi, HandlesKeepTheirType) {
  AnyArray any = device.array<float>({2});
  expectError(ErrorCode::BadArgument,
              {"array of f32", "(2)", "cannot be used as an array of f64"},
              [&] { Array<double> wrong(any); });
}

TEST_F(ArrayApi, ElementsAreCopiedByIndex) {
  Array<float> x = device.array<float>({2, 3, 2});
  auto put = [&](std::vector<int64_t> index, std::vector<float> values) {
    x.write_at(index, values.data(), values.size() * sizeof(float));
  };
  auto get = [&](std::vector<int64_t> index, size_t count) {
    std::vector<float> values(count);
    x.read_at(index, values.data(), count * sizeof(float));
    return values;
  };
  put({1}, {1, 2, 3, 4, 5, 6});
  put({1, 2, 0}, {7});
  EXPECT_EQ(get({1, 1}, 2), (std::vector<float>{3, 4}));
  EXPECT_EQ(get({1, 2, 0}, 1), std::vector<float>{7});
  EXPECT_EQ(get({0}, 6), std::vector<float>(6));
  EXPECT_EQ(get({}, 12)[10], 7);
  expectError(ErrorCode::BadArgument, {"the index", "is outside of"},
              [&] { get({1, 3}, 2); });
  expectError(ErrorCode::BadArgument, {"leads to 2 numbers", "has 3"},
              [&] { get({1, 1}, 3); });
}

TEST_F(ArrayApi, EmptyHandlesAreErrors) {
  Array<double> array;
  EXPECT_FALSE(array);
  expectError(ErrorCode::BadArgument, {"no storage"}, [&] { array.fill(1); });
}

TEST(Devices, OfVulkanAreChosenByNumberAndName) {
  expectError(ErrorCode::NoDevice, {"`vulkane`"},
              [] { Device::open("vulkane"); });
  try {
    Device device = Device::open("vulkan:0", {.memory_limit = 1 << 20});
    EXPECT_EQ(device.name(), "vulkan:0");
    expectError(ErrorCode::NoDevice, {"99999"},
                [] { Device::open("vulkan:99999"); });
    Array<double> x = device.array<double>({3});
    x.fill(2);
    EXPECT_EQ(x.to_host(), std::vector<double>(3, 2.0));
    double memory[3] = {};
    expectError(ErrorCode::BadArgument, {"`vulkan`", "copy it"},
                [&] { device.adopt(DType::F64, {3}, {.address = memory}); });
  } catch (const Error &error) {
    if (error.code() != ErrorCode::NoDevice)
      throw;
    GTEST_SKIP() << error.what();
  }
}

TEST(Devices, AGpuIsNoDriverForTheCpu) {
  auto kindOf = [](const std::string &name) -> std::string {
    try {
      return Device::open(name, {.memory_limit = 1 << 20}).name();
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ErrorCode::NoDevice);
      return error.what();
    }
  };
  std::string any = kindOf("gpu"), cuda = kindOf("cuda");
  if (cuda == "cuda")
    EXPECT_EQ(any, "cuda");
  else if (any != "vulkan")
    EXPECT_TRUE(any.starts_with(cuda)) << any;
  if (kindOf("vulkan:llvmpipe") == "vulkan:llvmpipe" && any != "vulkan" &&
      any != "cuda")
    EXPECT_NE(any.find("is the CPU"), std::string::npos) << any;
}

TEST(Devices, AreNamedAndCounted) {
  for (std::string name : {"cpu:1", "simt2", "cud", ""})
    expectError(ErrorCode::NoDevice, {"`" + name + "`"},
                [&] { Device::open(name); });
  expectError(ErrorCode::NoDevice,
              {"`opencl`", "cpu, cuda, hip, amd (the same), vulkan, gpu"},
              [] { Device::open("opencl"); });
  const char *chosen = std::getenv("COSTATE_DEVICE");
  std::string before = chosen ? chosen : "";
  setenv("COSTATE_DEVICE", "opencl", 1);
  expectError(ErrorCode::NoDevice, {"`opencl`"}, [] { Device::best(); });
  if (before.empty())
    unsetenv("COSTATE_DEVICE");
  else
    setenv("COSTATE_DEVICE", before.c_str(), 1);
  EXPECT_EQ(Device::best(), Device::best());
  setenv("COSTATE_THREADS", "3", 1);
  setenv("COSTATE_MEMORY_LIMIT", "5m", 1);
  Device device = Device::open("cpu");
  unsetenv("COSTATE_THREADS");
  unsetenv("COSTATE_MEMORY_LIMIT");
  EXPECT_EQ(device.threads(), 3);
  EXPECT_EQ(device.memory_limit(), 5u << 20);
  EXPECT_EQ(device.name(), "cpu");
  expectError(ErrorCode::BadArgument, {"-1"},
              [] { Device::open("cpu", {.threads = -1}); });
  setenv("COSTATE_MEMORY_LIMIT", "much", 1);
  expectError(ErrorCode::BadArgument, {"`much` is no number of bytes", "512m"},
              [] { Device::open("cpu"); });
  unsetenv("COSTATE_MEMORY_LIMIT");
}

TEST(Devices, CountTheirMemory) {
  Device device = Device::open("cpu", {.threads = 1});
  {
    Array<double> array = device.array<double>({1000}, grad);
    EXPECT_GE(device.current_bytes(), 16000u);
  }
  EXPECT_EQ(device.current_bytes(), 0u);
  EXPECT_GE(device.peak_bytes(), 16000u);
  device.reset_peak_bytes();
  EXPECT_EQ(device.peak_bytes(), 0u);
}
