#pragma once
/// Arrays of the command line: written as text or kept in .npy files.

#include "base/Result.h"
#include "costate/types.h"

#include <string>
#include <vector>

namespace costate::run {

/// A row-major array, or a scalar (`isScalar`, one element).
struct Tensor {
  DType type = DType::F64;
  bool isScalar = false;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  int64_t size() const; ///< elements
};

/// A zeroed array.
Tensor zeros(DType type, std::vector<int64_t> shape);

/// Reads one argument of the command line:
///
///     f64=0.1            a scalar
///     f64[]=0            an array of rank 0
///     i32[2,3]=1,2,3,4,5,6
///     f64[4]:3.5         every element is 3.5
///     x.npy              a file
Result<Tensor> parseTensor(const std::string &text);

/// `f64[2,3]=1,2,3,4,5,6`: what parseTensor reads back exactly.
std::string print(const Tensor &tensor);

/// `f64[2,3]`
std::string describe(const Tensor &tensor);

} // namespace costate::run
