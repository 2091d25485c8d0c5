#include "rigid/Cholesky.h"

#include "costate/syntax.h"

#include <cmath>
#include <random>

namespace costate::rigid {

static Kernel makeKernel() {
  return kernel("cholesky", [](ArrayRef<int32_t, 1> rows, ArrayRef<double, 3> a,
                               ArrayRef<double, 3> l) {
    parallel(rows.size(), [&](Index e) {
      FOR (i, 0, rows(e)) {
        FOR (j, 0, i + 1) {
          Var<double> rest = a(i, j, e);
          FOR (k, 0, j) {
            rest -= l(i, k, e) * l(j, k, e);
          }
          IF (i == j) {
            l(i, i, e) = sqrt(rest);
          }
          ELSE { l(i, j, e) = rest / l(j, j, e); }
        }
      }
    });
  });
}

Cholesky::Cholesky(const Device &device, const CholeskyInput &in)
    : kernel(makeKernel()), input(in), rows(device.array<int32_t>({in.count})),
      matrices(device.array<double>({in.most, in.most, in.count}, grad)),
      lower(device.array<double>({in.most, in.most, in.count}, grad)) {
  rows.from_host(in.rows);
  matrices.from_host(in.matrices);
  lower.fill(0);
}

void Cholesky::runFactors() {
  kernel(rows, matrices, lower);
  lower.device().synchronize();
}

/// Nothing that the launch finds in the factors counts.
void Cholesky::runGradient() {
  matrices.grad().fill(0);
  lower.grad().from_host(input.adjoint);
  kernel.grad(initial_state, rows, matrices, lower);
  lower.device().synchronize();
}

std::vector<double> Cholesky::factors() const { return lower.to_host(); }
std::vector<double> Cholesky::gradient() const {
  return matrices.grad().to_host();
}

CholeskyInput randomCholesky(int64_t count, int64_t most, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int32_t> size(3, static_cast<int32_t>(most));
  size_t entries = static_cast<size_t>(most * most * count);
  CholeskyInput in{count,
                   most,
                   {},
                   std::vector<double>(entries),
                   std::vector<double>(entries)};
  for (int64_t e = 0; e < count; ++e) {
    int32_t n = size(random);
    in.rows.push_back(n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        in.matrices[in.at(i, j, e)] =
            normal(random) / std::sqrt(n) + (i == j ? 4 : 0);
        in.adjoint[in.at(i, j, e)] = normal(random);
      }
  }
  return in;
}

std::vector<double> plainFactors(const CholeskyInput &in) {
  std::vector<double> l(in.matrices.size());
  for (int64_t e = 0; e < in.count; ++e)
    for (int64_t i = 0; i < in.rows[e]; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double rest = in.matrices[in.at(i, j, e)];
        for (int64_t k = 0; k < j; ++k)
          rest -= l[in.at(i, k, e)] * l[in.at(j, k, e)];
        l[in.at(i, j, e)] = i == j ? std::sqrt(rest) : rest / l[in.at(j, j, e)];
      }
  return l;
}

std::vector<double> plainGradient(const CholeskyInput &in,
                                  const std::vector<double> &l) {
  std::vector<double> g = in.adjoint;
  for (int64_t e = 0; e < in.count; ++e)
    for (int64_t i = in.rows[e]; i-- > 0;)
      for (int64_t j = i + 1; j-- > 0;) {
        double pivot = l[in.at(j, j, e)];
        double &own = g[in.at(i, j, e)];
        if (i == j) {
          own *= 0.5 / pivot;
        } else {
          own /= pivot;
          g[in.at(j, j, e)] -= l[in.at(i, j, e)] * own;
        }
        for (int64_t k = 0; k < j; ++k) {
          g[in.at(i, k, e)] -= l[in.at(j, k, e)] * own;
          g[in.at(j, k, e)] -= l[in.at(i, k, e)] * own;
        }
      }
  return g;
}

} // namespace costate::rigid
