#pragma once
/// Pieces of messages.

#include "runtime/Device.h"

#include <string>

namespace costate::runtime {

/// `512 bytes`, `1.5 MiB`.
std::string bytesText(size_t bytes);

/// ` at file.cpp:12`, or nothing if `site` is not known.
std::string siteText(const KernelCode &code, int64_t site);

/// What stands at `number`, counted row-major: `5`, `(5, 2)`; nothing for no
/// extents.
std::string indexText(int64_t number, std::span<const int64_t> extents);

/// The extents of the array `parameter` of a launch.
std::vector<int64_t> extentsOf(const LaunchRequest &request, size_t parameter);

/// `argument 3`, `the f64 members of argument 3`, ...
std::string argumentText(const KernelCode &code, size_t argument);

/// `argument 3`, `the tangent of the gradient of argument 3`, ...
std::string parameterText(const KernelCode &code, const Parameter &parameter);

/// Where the base address of the array `parameter` stands among the arguments.
size_t slotOf(const KernelCode &code, size_t parameter);

/// `element (5, 2) of argument 3`. In terms of the primal, or of the parameter
/// itself: `element (5, 2) of the gradient of argument 3`.
enum class Naming { OfPrimal, OfParameter };
std::string elementText(const LaunchRequest &request, size_t parameter,
                        int64_t element, Naming naming);

/// Why work cannot go to a stream of the user.
Failure noStreams(const std::string &device);

/// As many digits as tell it from others of its type; `nan` has no sign.
std::string numberText(double number);

} // namespace costate::runtime
