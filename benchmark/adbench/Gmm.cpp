#include "adbench/Gmm.h"

#include "adbench/Plain.h"

#include "costate/syntax.h"

namespace costate::adbench {

using Real = Expr<double>;

/// log(sum of exp(value(i))) over i below `count`, shifted by the largest. What
/// is less by more than 100 changes no bit of the sum and gets an adjoint of 0:
/// subnormal adjoints would take most of the time.
template <class Value> static Real logSumExp(Index count, Value &&value) {
  Var<double> most = value(Index(0));
  FOR (i, 1, count) {
    most = max(most, value(i));
  }
  Var<double> sum = 0.0;
  FOR (i, 0, count) {
    sum += exp(max(value(i) - most, -100.0));
  }
  return most + log(sum);
}

/// A work item for each pair of a component and a point, whose neighbours are
/// those of the next points: points stand last, and a row of the triangle is
/// contiguous. Centred points stand in an array, so that a pair adds to the
/// adjoint of each entry of a mean once.
static Kernel makeKernel() {
  return kernel("gmm", [](ArrayRef<double, 1> alpha, ArrayRef<double, 2> mu,
                          ArrayRef<double, 2> icf, ArrayRef<double, 2> x,
                          ArrayRef<double, 2> diagonal,
                          ArrayRef<double, 3> lower, ArrayRef<double, 1> sums,
                          ArrayRef<double, 3> centred,
                          ArrayRef<double, 2> terms, ArrayRef<double, 0> value,
                          Scalar<double> gamma, Scalar<double> m,
                          Scalar<double> constant) {
    Index components = mu.size(0), d = x.size(0), points = x.size(1);
    value() = constant - cast<double>(points) *
                             logSumExp(components,
                                       [&](Index k) { return Real(alpha(k)); });

    parallel(components, [&](Index k) { sums(k) = 0.0; });
    parallel({components, d}, [&](Index k, Index row) {
      Real q = icf(k, row), e = exp(q);
      Var<double> squares = e * e;
      FOR (column, 0, row) {
        // icf has the strict triangle column by column
        Index before = (column * (2 * d - column - 1)) >> 1;
        Real entry = icf(k, before + d - 1 + row - column);
        squares += entry * entry;
        lower(k, row, column) = entry;
      }
      diagonal(k, row) = e;
      sums(k) += q;
      value() += 0.5 * gamma * gamma * squares - m * q;
    });

    parallel({components, d, points}, [&](Index k, Index row, Index i) {
      centred(k, row, i) = x(row, i) - mu(k, row);
    });
    parallel({components, points}, [&](Index k, Index i) {
      Var<double> squares = 0.0;
      FOR (row, 0, d) {
        Var<double> product = diagonal(k, row) * centred(k, row, i);
        FOR (column, 0, row) {
          product += lower(k, row, column) * centred(k, column, i);
        }
        squares += product * product;
      }
      terms(k, i) = alpha(k) + sums(k) - 0.5 * squares;
    });

    parallel(points, [&](Index i) {
      value() +=
          logSumExp(components, [&](Index k) { return Real(terms(k, i)); });
    });
  });
}

static std::vector<double> pointsLast(const GmmInput &in) {
  std::vector<double> x(in.x.size());
  for (int64_t i = 0; i < in.n; ++i)
    for (int64_t row = 0; row < in.d; ++row)
      x[row * in.n + i] = in.x[i * in.d + row];
  return x;
}

Gmm::Gmm(const Device &device, const GmmInput &in, Flags flags)
    : kernel(makeKernel()), alpha(device.array<double>({in.k}, flags)),
      mu(device.array<double>({in.k, in.d}, flags)),
      icf(device.array<double>({in.k, in.icfSize()}, flags)),
      x(device.array<double>({in.d, in.n})),
      diagonal(device.array<double>({in.k, in.d}, flags)),
      lower(device.array<double>({in.k, in.d, in.d}, flags)),
      sums(device.array<double>({in.k}, flags)),
      centred(device.array<double>({in.k, in.d, in.n}, flags)),
      terms(device.array<double>({in.k, in.n}, flags)),
      value(device.array<double>({}, flags)), gamma(in.gamma), m(double(in.m)),
      constant(gmmConstant(in)) {
  alpha.from_host(in.alpha);
  mu.from_host(in.mu);
  icf.from_host(in.icf);
  x.from_host(pointsLast(in));
}

template <class F> void Gmm::launch(F &&entry) {
  entry(alpha, mu, icf, x, diagonal, lower, sums, centred, terms, value, gamma,
        m, constant);
}

void Gmm::runObjective() {
  launch([&](auto &...arguments) { kernel(arguments...); });
  value.device().synchronize();
}

void Gmm::runGradient() {
  for (Array<double> *parameter : {&alpha, &mu, &icf})
    parameter->grad().fill(0);
  value.grad().fill(1);
  launch([&](auto &...arguments) { kernel.grad(arguments...); });
  value.device().synchronize();
}

/// The gradient reads back what the kernel has stored, so the tangents have to
/// be there too.
void Gmm::runHessianProduct(const std::vector<double> &direction) {
  const double *next = direction.data();
  for (Array<double> *parameter : {&alpha, &mu, &icf}) {
    parameter->dual().from_host(next, size_t(parameter->size()));
    next += parameter->size();
    parameter->grad().fill(0);
    parameter->grad().dual().fill(0);
  }
  launch([&](auto &...arguments) { kernel.jvp(arguments...); });
  value.grad().fill(1);
  launch([&](auto &...arguments) { kernel.gradient().jvp(arguments...); });
  value.device().synchronize();
}

double Gmm::objective() const { return value.to_host()[0]; }

std::vector<double> Gmm::gradient() const {
  std::vector<double> all;
  for (const Array<double> *parameter : {&alpha, &mu, &icf})
    for (double entry : parameter->grad().to_host())
      all.push_back(entry);
  return all;
}

std::vector<double> Gmm::hessianProduct() const {
  std::vector<double> all;
  for (const Array<double> *parameter : {&alpha, &mu, &icf})
    for (double entry : parameter->grad().dual().to_host())
      all.push_back(entry);
  return all;
}

} // namespace costate::adbench
