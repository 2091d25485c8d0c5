#include "bindings/Decompositions.h"

#include "costate/decompositions.h"
#include "costate/detail/recorded_at.h"
#include "costate/error.h"

#include <algorithm>

namespace costate::python {

template <class T, int N, class F>
static Parts decomposed(const Parts &matrix, Loc loc, const F &decompose) {
  detail::Handles<Shape<N, N>> all;
  std::copy(matrix.begin(), matrix.end(), all.begin());
  detail::RecordedAt here(loc);
  return decompose(MatExpr<T, N, N>(all));
}

template <class T, class F>
static Parts ofRows(const Parts &matrix, Loc loc, const F &decompose) {
  switch (matrix.size()) {
  case 4:
    return decomposed<T, 2>(matrix, loc, decompose);
  case 9:
    return decomposed<T, 3>(matrix, loc, decompose);
  }
  throw Error(ErrorCode::BadKernel,
              "a matrix that is decomposed has 2 or 3 rows and columns, not " +
                  std::to_string(matrix.size()) + " components");
}

template <class F>
static Parts ofType(DType type, const Parts &matrix, Loc loc,
                    const F &decompose) {
  switch (type) {
  case DType::F32:
    return ofRows<float>(matrix, loc, decompose);
  case DType::F64:
    return ofRows<double>(matrix, loc, decompose);
  default:
    throw Error(ErrorCode::BadKernel,
                std::string("matrices of f32 and f64 are decomposed, not of ") +
                    nameOf(type));
  }
}

/// The components of all `tensors`.
template <class... A> static Parts joined(const A &...tensors) {
  Parts all;
  auto append = [&](const auto &tensor) {
    auto some = tensor.components(Loc());
    all.insert(all.end(), some.begin(), some.end());
  };
  (append(tensors), ...);
  return all;
}

Parts traceSvd(DType type, const Parts &matrix, Loc loc) {
  return ofType(type, matrix, loc, [](const auto &a) {
    auto [u, sigma, v] = svd(a);
    return joined(u, sigma, v);
  });
}

Parts tracePolar(DType type, const Parts &matrix, Loc loc) {
  return ofType(type, matrix, loc, [](const auto &a) {
    auto [rotation, stretch] = polar_decompose(a);
    return joined(rotation, stretch);
  });
}

Parts traceSymEig(DType type, const Parts &matrix, Loc loc) {
  return ofType(type, matrix, loc, [](const auto &a) {
    auto [values, vectors] = sym_eig(a);
    return joined(values, vectors);
  });
}

} // namespace costate::python
