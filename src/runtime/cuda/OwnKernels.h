#pragma once
/// What the driver of CUDA launches for itself.

#include <string>

namespace costate::runtime::cuda {

struct OwnKernel {
  const char *symbol;
  std::string (*code)();
};

/// Words: address, number of elements of 8 bytes, value.
extern const OwnKernel fillKernel;
/// One block copies to memory of the host and then stores 1 in 8 bytes there.
/// Words: to, from, bytes, the address of the 1. One copies words of 4 bytes.
extern const OwnKernel tellBytesKernel, tellWordsKernel;

} // namespace costate::runtime::cuda
