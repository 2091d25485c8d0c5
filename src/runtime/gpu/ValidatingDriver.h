#pragma once
/// Looks over the shoulder of the runtime, for tests and for the search for
/// defects.

#include "runtime/gpu/Driver.h"

#include <functional>

namespace costate::runtime::gpu {

/// Of what nobody waits for: by default, to standard error.
using ReportDefect = std::function<void(const std::string &)>;
void printDefect(const std::string &text);

/// `driver`, but whatever would touch memory that is not (or no longer)
/// allocated is Error(Internal) and does not happen: copies, fills, launches
/// with words that point there or are too few, replays of graphs. A release of
/// what is not allocated fails the next call. Reports what is still allocated
/// in the end.
std::shared_ptr<Driver> validating(std::shared_ptr<Driver> driver,
                                   ReportDefect report = printDefect);

} // namespace costate::runtime::gpu
