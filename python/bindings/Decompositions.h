#pragma once
/// include/costate/decompositions.h for a type and number of rows that are
/// known when a kernel is traced.

#include "costate/detail/record.h"

#include <vector>

namespace costate::python {

/// Components of matrices and vectors, row after row.
using Parts = std::vector<detail::Handle>;

// Of the components of a matrix of 2 or 3 rows of f32 or f64: those of all
// results, one after the other, in the order of the members of Svd, Polar and
// SymEig.
Parts traceSvd(DType type, const Parts &matrix, Loc loc);
Parts tracePolar(DType type, const Parts &matrix, Loc loc);
Parts traceSymEig(DType type, const Parts &matrix, Loc loc);

} // namespace costate::python
