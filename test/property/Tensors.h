#pragma once
/// What random programs do with vectors of three f64 and matrices of 2 x 2:
///
///     (vec a v)  (vset a v)  (vadd a v)  (vput a index e)
///     (mat a m)  (mset a m)  (madd a m)  (mput a i j e)
///
/// where v, m and e are values; an index may be 3 or 2, where there is nothing.

#include <vector>

namespace costate::property {

/// An operation, and what it takes: `v` a vector, `m` a matrix, `e` a number,
/// `c` a condition, `i` an index.
struct TensorOperation {
  const char *head;
  const char *operands;
};

const std::vector<TensorOperation> &vectorOperations();
const std::vector<TensorOperation> &matrixOperations();
/// To a number.
const std::vector<TensorOperation> &tensorReductions();
/// After the name of the variable.
const std::vector<TensorOperation> &tensorStatements();

} // namespace costate::property
