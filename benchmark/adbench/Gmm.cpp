#include "adbench/Gmm.h"

#include "adbench/Plain.h"

#include "costate/syntax.h"

namespace costate::adbench {

using Real = Expr<double>;

/// log(sum of exp(value(i))) over i below `count`, shifted by the largest.
template <class Value> static Real logSumExp(Index count, Value &&value) {
  Var<double> most = value(Index(0));
  FOR (i, 1, count) {
    most = max(most, value(i));
  }
  Var<double> sum = 0.0;
  FOR (i, 0, count) {
    sum += exp(value(i) - most);
  }
  return most + log(sum);
}

/// |Q (x_i - mu_k)|^2 for Q = diag(diagonal_k) + the lower triangle of icf_k;
/// `centred(row)` is an entry of x_i - mu_k.
template <class Centred>
static Real squaredNorm(ArrayRef<double, 2> diagonal, ArrayRef<double, 2> icf,
                        Index d, Index k, Centred &&centred) {
  Var<double> squares = 0.0;
  FOR (row, 0, d) {
    Var<double> product = diagonal(k, row) * centred(row);
    FOR (column, 0, row) {
      // of entry (row, column): the strict triangle stands column by column
      Index at = ((column * (2 * d - column - 1)) >> 1) + d - 1 + row - column;
      product += icf(k, at) * centred(column);
    }
    squares += product * product;
  }
  return squares;
}

/// Component k owns a work item of the two large ranges, so no two work items
/// add to the adjoint of one parameter.
static Kernel makeKernel() {
  return kernel("gmm", [](ArrayRef<double, 1> alpha, ArrayRef<double, 2> mu,
                          ArrayRef<double, 2> icf, ArrayRef<double, 2> x,
                          ArrayRef<double, 2> diagonal,
                          ArrayRef<double, 1> sums, ArrayRef<double, 3>,
                          ArrayRef<double, 2> terms, ArrayRef<double, 0> value,
                          Scalar<double> gamma, Scalar<double> m,
                          Scalar<double> constant) {
    Index components = mu.size(0), points = x.size(0), d = x.size(1);
    value() = constant - cast<double>(points) *
                             logSumExp(components,
                                       [&](Index k) { return Real(alpha(k)); });

    parallel(components, [&](Index k) {
      Var<double> logarithms = 0.0, squares = 0.0;
      FOR (j, 0, d) {
        Real q = icf(k, j), e = exp(q);
        diagonal(k, j) = e;
        logarithms += q;
        squares += e * e;
      }
      FOR (j, d, icf.size(1)) {
        Real entry = icf(k, j);
        squares += entry * entry;
      }
      sums(k) = logarithms;
      value() += 0.5 * gamma * gamma * squares - m * logarithms;
    });

    parallel(components, [&](Index k) {
      Real level = alpha(k) + sums(k);
      FOR (i, 0, points) {
        auto centred = [&](Index row) -> Real {
          return x(i, row) - mu(k, row);
        };
        terms(k, i) = level - 0.5 * squaredNorm(diagonal, icf, d, k, centred);
      }
    });

    parallel(points, [&](Index i) {
      value() +=
          logSumExp(components, [&](Index k) { return Real(terms(k, i)); });
    });
  });
}

/// For thousands of threads: a work item for each entry of a component and for
/// each pair of a component and a point. Distances stand in an array, so that a
/// pair adds to the adjoint of each entry of a mean once, and neighbours have
/// neighbouring entries.
static Kernel makeWideKernel() {
  return kernel("gmm", [](ArrayRef<double, 1> alpha, ArrayRef<double, 2> mu,
                          ArrayRef<double, 2> icf, ArrayRef<double, 2> x,
                          ArrayRef<double, 2> diagonal,
                          ArrayRef<double, 1> sums,
                          ArrayRef<double, 3> distances,
                          ArrayRef<double, 2> terms, ArrayRef<double, 0> value,
                          Scalar<double> gamma, Scalar<double> m,
                          Scalar<double> constant) {
    Index components = mu.size(0), points = x.size(0), d = x.size(1);
    value() = constant - cast<double>(points) *
                             logSumExp(components,
                                       [&](Index k) { return Real(alpha(k)); });

    parallel(components, [&](Index k) { sums(k) = 0.0; });
    parallel({components, icf.size(1)}, [&](Index k, Index j) {
      Real entry = icf(k, j);
      IF (j < d) {
        Real e = exp(entry);
        diagonal(k, j) = e;
        sums(k) += entry;
        value() += 0.5 * gamma * gamma * e * e - m * entry;
      }
      ELSE { value() += 0.5 * gamma * gamma * entry * entry; }
    });

    parallel({components, d, points}, [&](Index k, Index row, Index i) {
      distances(k, row, i) = x(i, row) - mu(k, row);
    });
    parallel({components, points}, [&](Index k, Index i) {
      auto centred = [&](Index row) -> Real { return distances(k, row, i); };
      terms(k, i) =
          alpha(k) + sums(k) - 0.5 * squaredNorm(diagonal, icf, d, k, centred);
    });

    parallel(points, [&](Index i) {
      value() +=
          logSumExp(components, [&](Index k) { return Real(terms(k, i)); });
    });
  });
}

static std::vector<int64_t> shapeOfDistances(const GmmInput &in, bool isWide) {
  return isWide ? std::vector{in.k, in.d, in.n} : std::vector<int64_t>{0, 0, 0};
}

Gmm::Gmm(const Device &device, const GmmInput &in, Flags flags)
    : Gmm(device, in, flags, device.name() != "cpu") {}

Gmm::Gmm(const Device &device, const GmmInput &in, Flags flags, bool isWide)
    : kernel(isWide ? makeWideKernel() : makeKernel()),
      alpha(device.array<double>({in.k}, flags)),
      mu(device.array<double>({in.k, in.d}, flags)),
      icf(device.array<double>({in.k, in.icfSize()}, flags)),
      x(device.array<double>({in.n, in.d})),
      diagonal(device.array<double>({in.k, in.d}, flags)),
      sums(device.array<double>({in.k}, flags)),
      distances(device.array<double>(shapeOfDistances(in, isWide), flags)),
      terms(device.array<double>({in.k, in.n}, flags)),
      value(device.array<double>({}, flags)), gamma(in.gamma), m(double(in.m)),
      constant(gmmConstant(in)) {
  alpha.from_host(in.alpha);
  mu.from_host(in.mu);
  icf.from_host(in.icf);
  x.from_host(in.x);
}

template <class F> void Gmm::launch(F &&entry) {
  entry(alpha, mu, icf, x, diagonal, sums, distances, terms, value, gamma, m,
        constant);
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
