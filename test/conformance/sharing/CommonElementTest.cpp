/// Elements that all work items of a range read, or add to: their adjoints are
/// sums over the range.

#include "Labels.h"
#include "conformance/Gradients.h"

COSTATE_LABEL("*", waits);
COSTATE_LABEL("CommonElement.AreAddedTo", slow);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using Scalar = ArrayRef<double, 0>;

Array<double> one(double value) {
  Array<double> array = cpu().array<double>({}, grad | dual);
  array.fill(value);
  return array;
}

/// By w: of the sum of sin(w x_i + b_1) over i, b_1 another element that all
/// work items read.
TEST(CommonElement, AScalarAndAConstantIndex) {
  Kernel k = kernel("wave", [](Scalar w, X b, X x, X y) {
    parallel(x.size(), [&](Index i) { y(i) = sin(w() * x(i) + b(1)) * b(2); });
  });
  auto w = one(0.7);
  auto b = active<double>({3, -0.2, 1.5});
  auto x = active<double>(randomValues(300, -1, 1));
  auto y = active<double>(std::vector<double>(300));
  expectGradients({w, b}, {y}, k, w, b, x, y);
}

/// Some work items only, in both branches, and more than once.
TEST(CommonElement, Branches) {
  Kernel k = kernel("branches", [](Scalar w, X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = w() * x(i);
      IF (i % 3 == 0) {
        v = v * w();
      }
      ELSE {
        IF (i % 3 == 1) {
          v = exp(v * w());
        }
      }
      y(i) = v + w();
    });
  });
  auto w = one(0.8);
  auto x = active<double>(randomValues(200, -1, 1));
  auto y = active<double>(std::vector<double>(200));
  expectGradients({w, x}, {y}, k, w, x, y);
}

/// Iterations of loops of different length, one adjoint.
TEST(CommonElement, Loops) {
  Kernel k = kernel("loops", [](Scalar w, ArrayRef<int, 1> depth, X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (t, 0, depth(i)) {
        v = sin(v) * w() + 0.1;
      }
      Var<int> n = 0;
      WHILE (n *n < depth(i)) {
        v = v * 0.5 * w();
        n += 1;
      }
      y(i) = v;
    });
  });
  std::vector<int> depths(150);
  for (size_t i = 0; i < depths.size(); ++i)
    depths[i] = static_cast<int>(i * 7 % 23);
  auto depth = constant<int>(depths);
  auto w = one(0.9);
  auto x = active<double>(randomValues(150, 0.5, 1));
  auto y = active<double>(std::vector<double>(150));
  expectGradients({w, x}, {y}, k, w, depth, x, y);
}

/// A polynomial: the loop decides which coefficient all work items read.
TEST(CommonElement, ElementsThatALoopCounts) {
  Kernel k = kernel("polynomial", [](X c, X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = 0.0;
      FOR (t, 0, c.size()) {
        v = v * x(i) + c(t);
      }
      y(i) = v;
    });
  });
  auto c = active<double>({0.5, -1, 2, 0.25, 1});
  auto x = active<double>(randomValues(170, -1, 1));
  auto y = active<double>(std::vector<double>(170));
  expectGradients({c, x}, {y}, k, c, x, y);
}

/// As many elements as no range has registers for.
TEST(CommonElement, ManyElements) {
  constexpr int count = 40;
  Kernel k = kernel("many", [](X c, X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = 0.0;
      for (int j = 0; j < count; ++j)
        v = v * x(i) + c(j);
      y(i) = v;
    });
  });
  auto c = active<double>(randomValues(count, -1, 1));
  auto x = active<double>(randomValues(90, -1, 1));
  auto y = active<double>(std::vector<double>(90));
  expectGradients({c}, {y}, k, c, x, y);
}

/// Sums of the primal, of which the gradient reads one adjoint.
TEST(CommonElement, AreAddedTo) {
  Kernel k = kernel("total", [](X x, Scalar loss, X parts) {
    parallel(x.size(), [&](Index i) {
      loss() += x(i) * x(i);
      parts(1) += sin(x(i));
    });
  });
  auto x = active<double>(randomValues(500, -1, 1));
  auto loss = one(2);
  auto parts = active<double>({0, 5});
  expectGradients({x}, {loss, parts}, k, x, loss, parts);
  GradientCase c({x}, {loss, parts});
  k(x, loss, parts);
  double squares = 2, sines = 5;
  for (double v : x.to_host()) {
    squares += v * v;
    sines += std::sin(v);
  }
  EXPECT_NEAR(loss.to_host()[0], squares, 1e-12);
  EXPECT_NEAR(parts.to_host()[1], sines, 1e-12);
  EXPECT_EQ(parts.to_host()[0], 0);
}

/// An element that no work item reads is not touched, wherever it would be.
TEST(CommonElement, AnElementThatIsNotThereIsNotTouched) {
  Kernel k = kernel("guarded", [](X w, X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      IF (w.size() > 5) {
        v = v * w(5);
      }
      y(i) = v * w(0);
    });
  });
  auto w = active<double>({2, 3});
  auto x = active<double>({1, 2, 3});
  auto y = active<double>({0, 0, 0});
  expectClosedForm({w}, {y}, {{6, 0}}, k, w, x, y);
}

TEST(CommonElement, NoWorkItems) {
  Kernel k = kernel("none", [](Scalar w, ArrayRef<int, 1> n, X x, X y) {
    parallel(n.size(), [&](Index i) { y(i) = w() * x(i); });
  });
  auto w = one(2);
  auto n = cpu().array<int>({0});
  auto x = active<double>({1}), y = active<double>({0});
  y.grad().fill(1);
  w.grad().fill(7);
  k.grad(w, n, x, y);
  EXPECT_EQ(w.grad().to_host()[0], 7);
}

/// Gradients are added to what is there.
TEST(CommonElement, GradientsAddUpOverLaunches) {
  Kernel k = kernel("twice", [](Scalar w, X x, X y) {
    parallel(x.size(), [&](Index i) { y(i) = w() * x(i); });
  });
  auto w = one(2);
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0});
  y.grad().fill(1);
  w.grad().fill(100);
  k.grad(w, x, y);
  y.grad().fill(2);
  k.grad(w, x, y);
  EXPECT_EQ(w.grad().to_host()[0], 118);
}

/// One after another, the CPU loses a percent of a sum in f32; threads of GPUs
/// add up in f64.
TEST(CommonElement, GpusAddUpSinglePrecisionInDouble) {
  constexpr size_t count = 1 << 20;
  Device device = isOnCpu() ? Device::open("simt") : openDevice();
  Kernel k = kernel("single", [](ArrayRef<float, 0> w, ArrayRef<float, 1> x,
                                 ArrayRef<float, 1> y) {
    parallel(x.size(), [&](Index i) { y(i) = w() * x(i); });
  });
  Array<float> w = device.array<float>({}, grad);
  Array<float> x = device.array<float>({count}),
               y = device.array<float>({count}, grad);
  w.fill(1.0f);
  x.fill(0.1f);
  y.grad().fill(1.0f);
  k.grad(w, x, y);
  // What blocks add to the element is rounded; terms one by one: 3900.
  EXPECT_NEAR(w.grad().to_host()[0], double(0.1f) * count, 8);
}

/// In deterministic kernels too, the bits do not change.
TEST(CommonElement, DeterministicKernelsGiveTheSameBits) {
  Kernel k = kernel("bits",
                    [](Scalar w, X x, X y) {
                      parallel(x.size(), [&](Index i) {
                        Var<double> v = x(i);
                        FOR (t, 0, i % 9) {
                          v = sin(v) + w() * 0.3;
                        }
                        y(i) = v;
                      });
                    },
                    {.deterministic = true});
  auto w = one(0.3);
  auto x = active<double>(randomValues(10000, -1, 1));
  auto y = active<double>(std::vector<double>(10000));
  double first = 0;
  for (int run = 0; run < 4; ++run) {
    w.grad().fill(0);
    y.grad().fill(1);
    k.grad(w, x, y);
    double now = w.grad().to_host()[0];
    first = run ? first : now;
    EXPECT_NE(now, 0);
    EXPECT_EQ(now, first);
  }
}

} // namespace
