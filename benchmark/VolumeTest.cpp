#include "Volume.h"

#include "Labels.h"
#include "conformance/ComplexStep.h"
#include "conformance/Gradients.h"

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

constexpr int size = 5, pixels = 6;

/// What the renderer computes, in plain C++; also counts the rays that ended
/// early. The last element of `x` is sigma.
Complex sumOfImage(const std::vector<Complex> &x, int *ended = nullptr) {
  auto at = [&](int i, int j, int k) { return x[(i * size + j) * size + k]; };
  auto sample = [&](double px, double py, double pz) {
    int i = std::min(int(px), size - 2), j = std::min(int(py), size - 2),
        k = std::min(int(pz), size - 2);
    Complex sum = 0;
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b)
        for (int c = 0; c < 2; ++c)
          sum += at(i + a, j + b, k + c) * (1 - std::abs(px - i - a)) *
                 (1 - std::abs(py - j - b)) * (1 - std::abs(pz - k - c));
    return sum;
  };
  Complex sum = 0;
  constexpr double depth = size - 1;
  for (int i = 0; i < pixels; ++i)
    for (int j = 0; j < pixels; ++j) {
      Complex light = 1;
      for (double z = 0.25; z < depth; z += 0.5) {
        double wide = 0.5 * (depth + z);
        Complex d = sample(depth / 2 + ((i + 0.5) / pixels - 0.5) * wide,
                           depth / 2 + ((j + 0.5) / pixels - 0.5) * wide, z);
        Complex through = std::exp(-0.5 * x.back() * d);
        sum += light * (1.0 - through) * (1 - z / depth);
        light *= through;
        if (light.real() < 0.01) {
          if (ended)
            ++*ended;
          break;
        }
      }
    }
  return sum;
}

TEST(Volume, RaysThatEndEarlyHaveExactGradients) {
  std::vector<double> values = randomValues(size * size * size + 1, 0, 2);
  values.back() = 1.1;
  int ended = 0;
  Complex sum = sumOfImage({values.begin(), values.end()}, &ended);
  EXPECT_GT(ended, 5);
  EXPECT_LT(ended, pixels * pixels - 5);
  std::vector<double> expected =
      complexStep([](auto &x) { return sumOfImage(x); }, values);
  std::vector<double> toSigma{expected.back()};
  expected.pop_back();
  values.pop_back();

  auto density = active(values, {size, size, size});
  Array<double> sigma = cpu().array<double>({}, grad | dual);
  sigma.fill(1.1);
  auto image =
      active(std::vector<double>(pixels * pixels, 0.0), {pixels, pixels});
  Kernel render = bench::volumeRenderer();
  expectClosedForm({density, sigma}, {image}, {expected, toSigma}, render,
                   density, sigma, image);
  double got = 0;
  for (double value : image.to_host())
    got += value;
  EXPECT_NEAR(got, sum.real(), 1e-12);
}

} // namespace
