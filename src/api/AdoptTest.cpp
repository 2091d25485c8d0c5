#include "costate/costate.h"
#include "costate/syntax.h"

#include <gmock/gmock.h>

using namespace costate;
using testing::ElementsAre;
using testing::HasSubstr;

static Kernel square() {
  return kernel("square", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) { y[i] = x[i] * x[i]; });
  });
}

/// Its gradient reads back what it has stored.
static Kernel reload() {
  return kernel("reload", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                             ArrayRef<double, 1> z) {
    parallel(x.size(), [&](Index i) { x[i] = sin(y[i]); });
    parallel(x.size(), [&](Index i) { z[i] = x[i] * x[i]; });
  });
}

static AnyArray adopt(std::vector<double> &memory, bool announced = false) {
  return Device::best().adopt(
      DType::F64, {memory.size()},
      {.address = memory.data(), .announced = announced}, grad);
}

static ErrorCode codeOf(const std::function<void()> &call) {
  try {
    call();
  } catch (const Error &error) {
    return error.code();
  }
  return ErrorCode::Internal;
}

namespace {
class Adopt : public testing::Test {
protected:
  void SetUp() override {
    std::string device = Device::best().name();
    if (device.starts_with("cuda") || device.starts_with("vulkan"))
      GTEST_SKIP() << "(needs memory of the GPU)";
  }
};
} // namespace

TEST_F(Adopt, UsesMemoryOfOthersAndLeavesItToThem) {
  std::vector<double> x = {1, 2, 3}, dx = {0, 0, 1}, y(3), dy = {1, 1, 1};
  int released = 0;
  {
    Device device = Device::best();
    auto outside = [&](std::vector<double> &memory) {
      return OutsideMemory{.address = memory.data(),
                           .release = [&] { ++released; }};
    };
    AnyArray a = device.adopt(DType::F64, {3}, outside(x), grad, outside(dx));
    AnyArray b = device.adopt(DType::F64, {3}, outside(y), none, outside(dy));
    Kernel k = square();
    k(a, b);
    k.grad(a, b);
    device.synchronize();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 4);
  EXPECT_THAT(y, ElementsAre(1, 4, 9));
  EXPECT_THAT(dx, ElementsAre(2, 4, 7));
  EXPECT_THAT(dy, ElementsAre(0, 0, 0));
}

TEST_F(Adopt, ReleasesAlsoWhatItRefuses) {
  std::vector<double> memory(4);
  int released = 0;
  auto refused = [&](void *address, const Extents &extents, DType type) {
    return codeOf([&] {
      Device::best().adopt(type, extents,
                           {.address = address, .release = [&] { ++released; }},
                           grad);
    });
  };
  EXPECT_EQ(refused(memory.data(), {-1}, DType::F64), ErrorCode::BadArgument);
  EXPECT_EQ(refused(memory.data(), {4}, DType::I32), ErrorCode::BadArgument);
  EXPECT_EQ(
      refused(reinterpret_cast<char *>(memory.data()) + 4, {2}, DType::F64),
      ErrorCode::BadArgument);
  EXPECT_EQ(refused(nullptr, {2}, DType::F64), ErrorCode::BadArgument);
  EXPECT_EQ(released, 4);
}

TEST_F(Adopt, PartsInCommonAreFound) {
  std::vector<double> memory(4);
  auto part = [&](size_t first) {
    return Device::best().adopt(DType::F64, {3},
                                {.address = memory.data() + first}, grad);
  };
  AnyArray low = part(0), high = part(1);
  try {
    square()(low, high);
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("have memory in common"));
  }
}

TEST_F(Adopt, PartsOfArraysOfTheDeviceAreFound) {
  Device cpu = Device::open("cpu");
  Array<double> whole = cpu.array<double>({4}, grad);
  AnyArray part =
      cpu.adopt(DType::F64, {3}, {.address = whole.mutable_data() + 1}, grad);
  EXPECT_THROW(square()(AnyArray(whole), part), Error);
}

TEST_F(Adopt, AGradientLooksAtWhatOthersMayHaveWritten) {
  std::vector<double> x(2), y = {1, 2}, z(2);
  AnyArray a = adopt(x), b = adopt(y), c = adopt(z);
  Kernel k = reload();
  k(a, b, c);
  EXPECT_NO_THROW(k.grad(a, b, c));
  x[0] = 9;
  EXPECT_EQ(codeOf([&] { k.grad(a, b, c); }), ErrorCode::CannotReplay);
  EXPECT_NO_THROW(k.grad(initial_state, a, b, c));
}

TEST_F(Adopt, AnnouncedWritesAreTrusted) {
  std::vector<double> x(2), y = {1, 2}, z(2);
  AnyArray a = adopt(x, true), b = adopt(y, true), c = adopt(z, true);
  Kernel k = reload();
  k(a, b, c);
  EXPECT_NO_THROW(k.grad(a, b, c));
  k(a, b, c);
  x[0] = 9;
  a.written_outside();
  EXPECT_EQ(codeOf([&] { k.grad(a, b, c); }), ErrorCode::CannotReplay);
}

TEST_F(Adopt, ATapeKnowsWhatItCannotHaveKept) {
  std::vector<double> x = {1, 2}, y(2);
  AnyArray a = adopt(x, true), b = adopt(y, true);
  Kernel k = square();
  Tape tape;
  {
    auto recording = tape.record();
    k(a, b);
  }
  tape.backward(b);
  EXPECT_THAT(Array<double>(a.grad()).to_host(), ElementsAre(2, 4));
  x[0] = 5;
  a.written_outside();
  EXPECT_EQ(codeOf([&] { tape.backward(b); }), ErrorCode::CannotReplay);
}

TEST_F(Adopt, ATapeCopiesWhatStrangersMayWrite) {
  std::vector<double> x = {1, 2}, y(2);
  AnyArray a = adopt(x), b = adopt(y, true);
  for (bool snapshot : {true, false}) {
    Tape tape({.snapshot = snapshot});
    {
      auto recording = tape.record();
      square()(a, b);
    }
    x[0] = 5;
    if (!snapshot) {
      EXPECT_EQ(codeOf([&] { tape.backward(b); }), ErrorCode::CannotReplay);
      continue;
    }
    tape.backward(b);
    EXPECT_THAT(Array<double>(a.grad()).to_host(), ElementsAre(2, 4));
    EXPECT_THAT(x, ElementsAre(5, 2));
  }
}

TEST_F(Adopt, LentMemoryIsTrustedAgainWhenItIsBack) {
  Device device = Device::best();
  Array<double> x = device.array<double>({2}, grad);
  Array<double> y = device.array<double>({2}, grad);
  Array<double> z = device.array<double>({2}, grad);
  Kernel k = reload();
  {
    LentMemory lent = x.lend(true);
    static_cast<double *>(lent.address)[0] = 7;
    EXPECT_THAT(x.to_host(), ElementsAre(7, 0));
    k(x, y, z);
    EXPECT_NO_THROW(k.grad(x, y, z)); // nobody has written it
    static_cast<double *>(lent.address)[0] = 5;
    EXPECT_EQ(codeOf([&] { k.grad(x, y, z); }), ErrorCode::CannotReplay);
  }
  EXPECT_EQ(codeOf([&] { k.grad(x, y, z); }), ErrorCode::CannotReplay);
  k(x, y, z);
  EXPECT_NO_THROW(k.grad(x, y, z));
  LentMemory lent = x.lend(false);
  k(x, y, z);
  EXPECT_NO_THROW(k.grad(x, y, z));
}

TEST_F(Adopt, NothingIsLentForWritingUnderATape) {
  Array<double> x = Device::best().array<double>({2}, grad);
  Tape tape;
  auto recording = tape.record();
  EXPECT_EQ(codeOf([&] { x.lend(true); }), ErrorCode::BadArgument);
  EXPECT_NO_THROW(x.lend(false));
}
