/// Gradients of kernels that overwrite what their gradient needs.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

class Overwrites : public testing::Test {
protected:
  Array<double> array(std::vector<double> values) {
    Array<double> result =
        device.array<double>({int64_t(values.size())}, grad | dual);
    result.from_host(values);
    return result;
  }
  static void expectNear(const Array<double> &array,
                         const std::vector<double> &expected) {
    test::expectNear(array.to_host(), expected);
  }

  Device device = openDevice();
  Array<double> x = array({0.5, 1.5, -0.8});
};

TEST_F(Overwrites, InALoopOnOneElement) {
  Kernel power = kernel("power", [](ArrayRef<double, 1> x) {
    parallel(x.size(0), [&](Index i) {
      FOR (k, 0, 3) {
        x(i) = x(i) * x(i);
      }
    });
  });
  x.grad().fill(1);
  power.grad(initial_state, x);
  expectNear(x.grad(), {0.0625, 136.6875, -1.677721600000});
  expectNear(x, {0.5, 1.5, -0.8});
}

TEST_F(Overwrites, ByOneRangeAfterTheOther) {
  Kernel chain = kernel("chain", [](ArrayRef<double, 1> x) {
    parallel(x.size(0), [&](Index i) { x(i) = x(i) * x(i); });
    parallel(x.size(0), [&](Index i) { x(i) = sin(x(i)); });
  });
  x.grad().fill(1);
  chain.grad(initial_state, x);
  expectNear(x.grad(), {std::cos(0.25) * 2 * 0.5, std::cos(2.25) * 2 * 1.5,
                        std::cos(0.64) * 2 * -0.8});
}

TEST_F(Overwrites, AroundASerialValue) {
  Kernel scaled =
      kernel("scaled", [](ArrayRef<double, 1> x, ArrayRef<double, 0> s) {
        parallel(x.size(0), [&](Index i) { s() += x(i); });
        Var<double> t = s();
        parallel(x.size(0), [&](Index i) { x(i) = t * x(i) * x(i); });
      });
  Array<double> s = device.array<double>({}, grad);
  x.grad().fill(1);
  s.grad().fill(1);
  scaled.grad(initial_state, x, s);
  expectNear(x.grad(), {5.34, 7.74, 2.22});
}

TEST_F(Overwrites, InAWhileOnTheElementItself) {
  Kernel halve =
      kernel("halve", [](ArrayRef<double, 1> r, ArrayRef<double, 1> product) {
        parallel(r.size(0), [&](Index i) {
          Var<double> p = 1.0;
          WHILE (r(i) > 0.1) {
            p = p * r(i);
            r(i) = 0.5 * r(i);
          }
          product(i) = p;
        });
      });
  Array<double> product = array({0, 0, 0});
  product.grad().fill(1);
  halve.grad(initial_state, x, product);
  // x = 0.5 is halved 3 times, 1.5 four times, -0.8 never.
  double three = 3 * 0.25 / 8, four = 4 * 1.5 * 1.5 * 1.5 / 64;
  expectNear(x.grad(), {three, four, 0});
}

TEST_F(Overwrites, InSerialCode) {
  Kernel prefix = kernel("prefix", [](ArrayRef<double, 1> x) {
    FOR (k, 1, x.size(0)) {
      x(k) = x(k) * x(k - 1);
    }
    FOR (k, 0, x.size(0)) {
      x(k) = x(k) * x(k);
    }
  });
  x.grad().fill(1);
  prefix.grad(initial_state, x);
  // a^2 + (a b)^2 + (a b c)^2
  double a = 0.5, b = 1.5, c = -0.8;
  expectNear(x.grad(), {2 * a * (1 + b * b + b * b * c * c),
                        2 * b * a * a * (1 + c * c), 2 * c * a * a * b * b});
}

TEST_F(Overwrites, OfIndicesAndBounds) {
  Kernel walk = kernel("walk", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                  ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (k, 0, n(i)) {
        v = v * v;
      }
      n(i) = 0;
      y(i) = v;
    });
  });
  Array<int> n = device.array<int>({3});
  n.from_host({0, 1, 2});
  Array<double> y = array({0, 0, 0});
  y.grad().fill(1);
  walk.grad(initial_state, x, n, y);
  expectNear(x.grad(), {1, 3, 4 * -0.8 * 0.64});
  EXPECT_EQ(n.to_host(), (std::vector<int>{0, 1, 2}));
}

// RULE: by-hand
TEST_F(Overwrites, AreAnErrorOfTheBareGradient) {
  Kernel square = kernel("square", [](ArrayRef<double, 1> x) {
    parallel(x.size(0), [&](Index i) { x(i) = x(i) * x(i); });
  });
  square(x);
  expectError(ErrorCode::CannotReplay,
              {"OverwriteTest.cpp", "argument 1", "overwritten",
               "grad(initial_state", "Tape"},
              [&] { square.grad(x); });
}

TEST_F(Overwrites, ThatRunOutOfMemoryChangeNothing) {
  DeviceOptions options;
  options.memory_limit = 64 << 20;
  Device small = openDevice(options);
  Kernel square = kernel("square", [](ArrayRef<double, 1> x) {
    parallel(x.size(0), [&](Index i) {
      FOR (k, 0, 3) {
        x(i) = x(i) * x(i);
      }
    });
  });
  Array<double> big = small.array<double>({1 << 20}, grad);
  big.fill(0.5);
  big.grad().fill(1);
  Array<double> filler = small.array<double>({(40 << 20) / 8});
  expectError(ErrorCode::OutOfMemory, {},
              [&] { square.grad(initial_state, big); });
  EXPECT_EQ(big.to_host()[7], 0.5);
  EXPECT_EQ(big.grad().to_host()[7], 1);
}

} // namespace
