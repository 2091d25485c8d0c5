#pragma once
/// A kernel with arguments that fit it.

#include "api/KernelImpl.h"
#include "runtime/ArrayStorage.h"

namespace costate::detail {

/// An argument that fits its declaration.
struct BoundArgument {
  std::shared_ptr<runtime::ArrayStorage> array; ///< null for a scalar
  uint64_t bits = 0; ///< a scalar in its declared type, zero extended
};

struct Call {
  std::shared_ptr<KernelImpl> kernel;
  boost::container::small_vector<BoundArgument, 2> arguments;
  std::shared_ptr<runtime::Device> device; ///< of all arrays
};

/// Checks number, kind, dtype, rank and device of the arguments and the range
/// of scalars; throws BadArgument.
Call bind(const std::shared_ptr<KernelImpl> &kernel,
          std::span<const ArgumentValue> values);

/// "kernel `relax` (demo.cpp:12): argument 2 (f64 array of rank 1)"
std::string argumentText(const KernelImpl &kernel, size_t index);
/// "argument 2"
std::string nameOf(const KernelImpl &kernel, size_t index);

} // namespace costate::detail
