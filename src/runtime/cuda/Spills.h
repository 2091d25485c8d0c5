#pragma once
/// Kernels that leave registers for several blocks of a multiprocessor, and
/// keep in memory what they have no registers for.

#include <cstddef>
#include <string>
#include <vector>

namespace costate::runtime::cuda {

struct CrowdedKernel {
  std::string symbol;
  size_t place = 0;    ///< in the text: the digit that says how many blocks
  size_t ownBytes = 0; ///< of memory that a thread of it asks for
};

/// Those of PTX that leave room for more than two blocks.
std::vector<CrowdedKernel> crowdedKernels(const std::string &ptx);

/// The same code, where these leave room for two.
std::string roomier(std::string ptx, const std::vector<CrowdedKernel> &kernels);

} // namespace costate::runtime::cuda
