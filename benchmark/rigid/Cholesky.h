#pragma once
/// Cholesky factors of many matrices of different sizes, as rigid body solvers
/// factor the mass matrix of each scene (Banachiewicz: row by row, in loops
/// whose bounds are read from memory).

#include "costate/costate.h"

namespace costate::rigid {

struct CholeskyInput {
  int64_t count, most;          ///< matrices; rows of the largest
  std::vector<int32_t> rows;    ///< of each
  std::vector<double> matrices; ///< most x most x count: entry (i, j) of all of
                                ///< them stand side by side
  std::vector<double> adjoint;  ///< of the factors, like `matrices`
  size_t at(int64_t i, int64_t j, int64_t e) const {
    return static_cast<size_t>((i * most + j) * count + e);
  }
};

/// Positive definite ones of 3 to `most` rows; the rest is 0.
CholeskyInput randomCholesky(int64_t count, int64_t most, uint64_t seed = 1);

class Cholesky {
public:
  Cholesky(const Device &device, const CholeskyInput &input);

  void runFactors();
  /// From `adjoint` of the input to the matrices, of which the lower triangle
  /// is read.
  void runGradient();

  std::vector<double> factors() const;
  std::vector<double> gradient() const;

private:
  Kernel kernel;
  const CholeskyInput &input;
  Array<int32_t> rows;
  Array<double> matrices, lower;
};

/// The same in plain C++; the adjoint is that of I. Murray, "Differentiation of
/// the Cholesky decomposition", 2016, 3.1 (unblocked).
std::vector<double> plainFactors(const CholeskyInput &input);
std::vector<double> plainGradient(const CholeskyInput &input,
                                  const std::vector<double> &factors);

} // namespace costate::rigid
