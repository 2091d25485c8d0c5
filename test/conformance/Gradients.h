#pragma once
/// Derivatives of a kernel, entry by entry, in three ways.

#include "conformance/TestDevice.h"

#include <costate/costate.h>
#include <costate/syntax.h>

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace costate::test {

inline Device &cpu() {
  static Device device = openDevice();
  return device;
}

/// A float array with adjoint and tangent, holding `values`.
template <class T = double>
Array<T> active(const std::vector<T> &values, std::vector<int64_t> shape = {}) {
  if (shape.empty())
    shape = {static_cast<int64_t>(values.size())};
  Array<T> array = cpu().array<T>(shape, grad | dual);
  array.from_host(values);
  return array;
}

/// An array without derivatives.
template <class T>
Array<T> constant(const std::vector<T> &values,
                  std::vector<int64_t> shape = {}) {
  if (shape.empty())
    shape = {static_cast<int64_t>(values.size())};
  Array<T> array = cpu().array<T>(shape);
  array.from_host(values);
  return array;
}

/// Of rank 0.
inline Array<double> zeroScalar(bool isActive) {
  return cpu().array<double>({}, isActive ? grad | dual : none);
}

inline Array<double> scalarResult() { return active<double>({0}, {1}); }

inline std::vector<double> randomValues(size_t count, double lo, double hi,
                                        unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> distribution(lo, hi);
  std::vector<double> values(count);
  for (double &value : values)
    value = distribution(engine);
  return values;
}

/// Relative to each element of `want`, or to 1.
inline void expectNear(const std::vector<double> &got,
                       const std::vector<double> &want,
                       double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i])))
        << "element " << i;
}

/// The arrays of one comparison. `loss` is the inner product of the outputs
/// with fixed random weights.
class GradientCase {
public:
  GradientCase(std::vector<Array<double>> inputs,
               std::vector<Array<double>> outputs)
      : inputs(std::move(inputs)), outputs(std::move(outputs)) {
    for (Array<double> &array : this->inputs)
      start.push_back(array.to_host());
    for (Array<double> &array : this->outputs)
      startOfOutputs.push_back(array.to_host());
  }

  void reset() {
    for (size_t a = 0; a < inputs.size(); ++a)
      inputs[a].from_host(start[a]);
    for (size_t a = 0; a < outputs.size(); ++a)
      outputs[a].from_host(startOfOutputs[a]);
  }

  std::vector<double> weights(size_t output) const {
    return randomValues(startOfOutputs[output].size(), 0.5, 1.5,
                        static_cast<unsigned>(output + 7));
  }

  double loss() const {
    double sum = 0;
    for (size_t a = 0; a < outputs.size(); ++a)
      sum += dot(weights(a), outputs[a].to_host());
    return sum;
  }

  double tangentOfLoss() const {
    double sum = 0;
    for (size_t a = 0; a < outputs.size(); ++a)
      sum += dot(weights(a), outputs[a].dual().to_host());
    return sum;
  }

  static double dot(const std::vector<double> &a,
                    const std::vector<double> &b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i)
      sum += a[i] * b[i];
    return sum;
  }

  std::vector<Array<double>> inputs, outputs;
  std::vector<std::vector<double>> start, startOfOutputs;
};

/// The gradient of the loss by reverse mode, one vector for each input.
template <class... A>
std::vector<std::vector<double>>
reverseGradient(GradientCase &c, const Kernel &kernel, const A &...arguments) {
  c.reset();
  kernel(arguments...);
  for (Array<double> &array : c.inputs)
    array.grad().fill(0);
  for (size_t a = 0; a < c.outputs.size(); ++a)
    c.outputs[a].grad().from_host(c.weights(a));
  kernel.grad(arguments...);
  std::vector<std::vector<double>> gradient;
  for (Array<double> &array : c.inputs)
    gradient.push_back(array.grad().to_host());
  return gradient;
}

/// One entry by forward mode.
template <class... A>
double forwardEntry(GradientCase &c, size_t input, size_t entry,
                    const Kernel &kernel, const A &...arguments) {
  c.reset();
  for (Array<double> &array : c.inputs)
    array.dual().fill(0);
  for (Array<double> &array : c.outputs)
    array.dual().fill(0);
  std::vector<double> direction(c.start[input].size(), 0.0);
  direction[entry] = 1;
  c.inputs[input].dual().from_host(direction);
  kernel.jvp(arguments...);
  return c.tangentOfLoss();
}

/// One entry by central differences, extrapolated over three steps.
template <class... A>
double differenceEntry(GradientCase &c, size_t input, size_t entry,
                       const Kernel &kernel, const A &...arguments) {
  auto lossAt = [&](double shift) {
    c.reset();
    std::vector<double> values = c.start[input];
    values[entry] += shift;
    c.inputs[input].from_host(values);
    kernel(arguments...);
    return c.loss();
  };
  auto slope = [&](double h) { return (lossAt(h) - lossAt(-h)) / (2 * h); };
  double h = 2e-3;
  double d1 = slope(h), d2 = slope(h / 2), d3 = slope(h / 4);
  double e1 = (4 * d2 - d1) / 3, e2 = (4 * d3 - d2) / 3;
  return (16 * e2 - e1) / 15;
}

/// Expects reverse, forward and differences to agree to 1e-8 in every entry.
template <class... A>
void expectGradients(std::vector<Array<double>> inputs,
                     std::vector<Array<double>> outputs, const Kernel &kernel,
                     const A &...arguments) {
  GradientCase c(std::move(inputs), std::move(outputs));
  auto gradient = reverseGradient(c, kernel, arguments...);
  for (size_t input = 0; input < c.inputs.size(); ++input)
    for (size_t entry = 0; entry < gradient[input].size(); ++entry) {
      SCOPED_TRACE(kernel.name() + ", input " + std::to_string(input) +
                   ", entry " + std::to_string(entry));
      double reverse = gradient[input][entry];
      double forward = forwardEntry(c, input, entry, kernel, arguments...);
      double difference =
          differenceEntry(c, input, entry, kernel, arguments...);
      double scale = std::max(1.0, std::abs(difference));
      EXPECT_NEAR(reverse, forward, 1e-11 * scale);
      EXPECT_NEAR(reverse, difference, 1e-8 * scale);
    }
  c.reset();
}

/// Expects reverse mode, and forward mode along a random direction, to give
/// `expected`, one vector for each input: the derivatives of the sum of all
/// elements of the outputs. An array may be both.
template <class... A>
void expectClosedForm(std::vector<Array<double>> inputs,
                      std::vector<Array<double>> outputs,
                      const std::vector<std::vector<double>> &expected,
                      const Kernel &kernel, const A &...arguments) {
  SCOPED_TRACE(kernel.name());
  GradientCase c(std::move(inputs), std::move(outputs));
  kernel(arguments...);
  for (Array<double> &array : c.inputs)
    array.grad().fill(0);
  for (Array<double> &array : c.outputs)
    array.grad().fill(1);
  kernel.grad(arguments...);
  for (Array<double> &array : c.outputs)
    array.dual().fill(0);
  double slope = 0, scale = 1;
  for (size_t input = 0; input < c.inputs.size(); ++input) {
    std::vector<double> gradient = c.inputs[input].grad().to_host();
    std::vector<double> direction =
        randomValues(gradient.size(), -1, 1, static_cast<unsigned>(input + 3));
    ASSERT_EQ(gradient.size(), expected[input].size());
    for (size_t entry = 0; entry < gradient.size(); ++entry) {
      double want = expected[input][entry];
      EXPECT_NEAR(gradient[entry], want, 1e-12 * std::max(1.0, std::abs(want)))
          << "input " << input << ", entry " << entry;
      slope += want * direction[entry];
      scale += std::abs(want * direction[entry]);
    }
    c.inputs[input].dual().from_host(direction);
  }
  c.reset();
  kernel.jvp(arguments...);
  double tangent = 0;
  for (Array<double> &array : c.outputs)
    for (double value : array.dual().to_host())
      tangent += value;
  EXPECT_NEAR(tangent, slope, 1e-12 * scale);
}

} // namespace costate::test
