#pragma once
/// The .npy format of NumPy, versions 1 to 3: little endian, C order.

#include "run/Tensor.h"

namespace costate::run {

/// BadFile, with the reason, for anything that is not such a file or holds
/// another dtype.
Result<Tensor> readNpy(const std::string &path);

Result<> writeNpy(const std::string &path, const Tensor &tensor);

/// The same on the bytes of a file; `name` is for messages.
Result<Tensor> decodeNpy(const std::string &bytes, const std::string &name);
std::string encodeNpy(const Tensor &tensor);

} // namespace costate::run
