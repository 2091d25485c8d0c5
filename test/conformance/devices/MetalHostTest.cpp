/// Text of Metal's language, compiled for the host: numbers that Apple's GPUs
/// have, and what is refused. All other tests of devices run there as well, by
/// COSTATE_DEVICE.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/TestDevice.h"

#include "costate/block.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>

COSTATE_LABEL("*", host);
COSTATE_LABEL("*", slow);

using namespace costate;

namespace {

using X = ArrayRef<float, 1>;

class MetalHost : public testing::Test {
protected:
  MetalHost() {
    bool hasCompiler =
        std::system("clang++-22 --version > /dev/null 2>&1") == 0;
    if (hasCompiler)
      device = Device::open("metal-host", {.validate = true});
  }
  void SetUp() override {
    if (!device)
      GTEST_SKIP() << "there is no clang++-22";
  }
  Array<float> array(std::vector<float> values, Flags flags = none) {
    Array<float> made =
        device->array<float>({static_cast<int64_t>(values.size())}, flags);
    made.from_host(values);
    return made;
  }

  std::optional<Device> device;
};

TEST_F(MetalHost, OtherDevicesOfMetalAreNotThere) {
  try {
    Device::open("metal");
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::NoDevice);
  }
}

TEST_F(MetalHost, FloatsOf64BitsAreRefusedWithTheirLine) {
  Kernel k = kernel("wide", [](ArrayRef<double, 1> x) {
    parallel(x.size(), [&](Index i) { x(i) = x(i) * 2; });
  });
  Array<double> x = device->array<double>({4});
  try {
    k(x);
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::BadKernel);
    std::string text = error.what();
    EXPECT_NE(text.find("f64"), text.npos) << text;
    EXPECT_NE(text.find("MetalHostTest.cpp"), text.npos) << text;
  }
}

/// y = x^(n+1), of a loop of n iterations that saves what it overwrites.
TEST_F(MetalHost, GradientsOfRaggedLoopsAreExact) {
  constexpr int n = 300;
  Kernel k = kernel("power", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<float> v = x(i);
      FOR (j, 0, i % 7) {
        v = v * x(i);
      }
      y(i) = v;
    });
  });
  std::vector<float> start(n);
  for (int i = 0; i < n; ++i)
    start[static_cast<size_t>(i)] = 0.5f + static_cast<float>(i) / n;
  Array<float> x = array(start, grad), y = array(start, grad);
  y.grad().fill(1);
  k(x, y);
  k.grad(x, y);
  std::vector<float> slopes = x.grad().to_host();
  for (size_t i = 0; i < n; ++i) {
    double power = double(i % 7) + 1;
    double exact = power * std::pow(double(start[i]), power - 1);
    EXPECT_NEAR(slopes[i], exact, 1e-5 * exact) << i;
  }
}

TEST_F(MetalHost, WhileLoopsHaveGradients) {
  Kernel k = kernel("halve", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<float> v = x(i);
      WHILE (v > 1.0f) {
        v = v * 0.5f;
      }
      y(i) = v * v;
    });
  });
  std::vector<float> start(100);
  std::iota(start.begin(), start.end(), 1.0f);
  Array<float> x = array(start, grad), y = array(start, grad);
  y.grad().fill(1);
  k(x, y);
  k.grad(x, y);
  std::vector<float> slopes = x.grad().to_host();
  for (size_t i = 0; i < start.size(); ++i) {
    double factor = 1;
    while (start[i] * factor > 1)
      factor /= 2;
    EXPECT_FLOAT_EQ(slopes[i],
                    static_cast<float>(2 * start[i] * factor * factor));
  }
}

/// Its blocks add up in f64, which is computed of integers.
TEST_F(MetalHost, SumsOverARangeAreThoseOfOtherDevices) {
  Kernel k = kernel("norm", [](X x, ArrayRef<float, 0> s) {
    s() = sum(x.size(), [&](Index i) { return x(i) * x(i); });
  });
  std::vector<float> start(1000);
  for (size_t i = 0; i < start.size(); ++i)
    start[i] = std::sin(static_cast<float>(i));
  Device cpu = Device::open("cpu");
  Array<float> x = array(start, grad), of = cpu.array<float>({1000}, grad);
  Array<float> s = device->array<float>({}, grad),
               t = cpu.array<float>({}, grad);
  of.from_host(start);
  k(x, s);
  k(of, t);
  EXPECT_EQ(s.to_host(), t.to_host());
  s.grad().fill(1);
  k.grad(x, s);
  std::vector<float> slopes = x.grad().to_host();
  for (size_t i = 0; i < start.size(); ++i)
    EXPECT_EQ(slopes[i], 2 * start[i]);
}

TEST_F(MetalHost, AtomicsOf64BitsCountAll) {
  Kernel k =
      kernel("count", [](ArrayRef<int64_t, 1> n, ArrayRef<int64_t, 1> m) {
        parallel(1000, [&](Index i) {
          n(i % 3) += int64_t(1) << 33;
          atomic_max(m(0), i * i);
        });
      });
  Array<int64_t> n = device->array<int64_t>({3}),
                 m = device->array<int64_t>({1});
  k(n, m);
  EXPECT_EQ(n.to_host(),
            (std::vector<int64_t>{334ll << 33, 333ll << 33, 333ll << 33}));
  EXPECT_EQ(m.to_host(), (std::vector<int64_t>{999 * 999}));
}

/// By exchanges, of which some fail for no reason.
TEST_F(MetalHost, ExtremaAreNotLost) {
  Kernel k = kernel("most", [](X x, ArrayRef<float, 0> most) {
    parallel(x.size(), [&](Index i) { atomic_max(most(), x(i)); });
  });
  std::vector<float> rising(500);
  std::iota(rising.begin(), rising.end(), 1.0f);
  Array<float> most = device->array<float>({});
  k(array(rising), most);
  EXPECT_EQ(most.to_host(), std::vector<float>{500});
}

TEST_F(MetalHost, SignsOfNarrowNumbersCount) {
  Kernel k = kernel("narrow", [](ArrayRef<int8_t, 1> a, ArrayRef<int, 1> b) {
    parallel(a.size(), [&](Index i) {
      Expr<int> v = cast<int>(a(i));
      b(i) = v / 3 + v % 5 * 100 + (v >> 1) * 10000;
    });
  });
  std::vector<int8_t> start = {-128, -7, -1, 0, 1, 7, 127};
  Array<int8_t> a = device->array<int8_t>({7});
  Array<int> b = device->array<int>({7});
  a.from_host(start);
  k(a, b);
  std::vector<int> made = b.to_host();
  Device cpu = Device::open("cpu");
  Array<int8_t> c = cpu.array<int8_t>({7});
  Array<int> d = cpu.array<int>({7});
  c.from_host(start);
  k(c, d);
  EXPECT_EQ(made, d.to_host());
}

} // namespace
