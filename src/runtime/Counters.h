#pragma once
/// Counts what a device does.

#include "costate/statistics.h"

#include <atomic>

namespace costate::runtime {

/// Safe to use from several threads.
struct Counters {
  std::atomic<uint64_t> launches = 0, primalLaunches = 0, uploads = 0,
                        downloads = 0, copies = 0, fills = 0,
                        synchronizations = 0;

  Statistics read() const {
    return {launches, uploads,          downloads,     copies,
            fills,    synchronizations, primalLaunches};
  }
  void add(const Statistics &more) {
    launches += more.launches;
    primalLaunches += more.primal_launches;
    uploads += more.uploads;
    downloads += more.downloads;
    copies += more.copies;
    fills += more.fills;
    synchronizations += more.synchronizations;
  }
  void reset() {
    for (auto *count : {&launches, &primalLaunches, &uploads, &downloads,
                        &copies, &fills, &synchronizations})
      *count = 0;
  }
};

} // namespace costate::runtime
