#pragma once
/// How a launch fails: the place in the user's source, what happened there, and
/// a way out.

#include "base/DeviceWords.h"
#include "runtime/Device.h"

namespace costate::runtime {

/// The work item of a range in which something happened.
struct WorkItemPlace {
  int64_t number = -1; ///< counted row-major; -1: not known
  std::span<const int64_t> extents = {};

  /// `work item (2, 5)`
  std::string text() const;
};

Failure indexFailure(const LaunchRequest &request, int64_t site,
                     int64_t parameter, int64_t dim, int64_t index,
                     int64_t extent, WorkItemPlace workItem);
Failure stepFailure(const KernelCode &code, int64_t site);
/// More work items than can be counted.
Failure countFailure(const KernelCode &code, int64_t site);
/// `text` indexes KernelCode::texts, and is filled with the numbers.
Failure finiteFailure(const LaunchRequest &request, int64_t site, int64_t text,
                      std::span<const double> numbers, WorkItemPlace workItem);
Failure elementFailure(const LaunchRequest &request, int64_t site, int64_t text,
                       int64_t parameter, int64_t element,
                       std::span<const double> numbers, WorkItemPlace workItem);
/// `text` indexes KernelCode::texts, and is filled with the words.
Failure assertFailure(const KernelCode &code, int64_t site, int64_t text,
                      std::span<const int64_t> words, WorkItemPlace workItem);
/// `text` is filled with the words, or `@` of it stands for these sites.
Failure refusal(const LaunchRequest &request, int64_t site, int64_t text,
                std::span<const int64_t> words, WorkItemPlace workItem);
/// What threads of a GPU have reported; `extents` of the range that ran.
Failure deviceFailure(const LaunchRequest &request, const DeviceErrorCell &cell,
                      std::span<const int64_t> extents);

} // namespace costate::runtime
