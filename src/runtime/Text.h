#pragma once
/// Pieces of messages.

#include "runtime/KernelCode.h"

#include <string>

namespace costate::runtime {

/// `512 bytes`, `1.5 MiB`.
std::string bytesText(size_t bytes);

/// ` at file.cpp:12`, or nothing if `site` is not known.
std::string siteText(const KernelCode &code, int64_t site);

} // namespace costate::runtime
