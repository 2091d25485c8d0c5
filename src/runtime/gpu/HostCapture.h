#pragma once
/// Captures of drivers that do all work by calls of the host.

#include "runtime/gpu/Driver.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace costate::runtime::gpu {

/// One thread captures at a time; work of others is done at once.
class HostCapture {
public:
  using Work = std::function<Result<>()>;

  void begin() {
    kept = std::make_shared<Kept>();
    capturer = std::this_thread::get_id();
  }
  std::shared_ptr<Captured> end() {
    capturer = std::thread::id();
    return std::move(kept);
  }
  /// Now, or when what is captured is replayed.
  Result<> perform(Work work) {
    if (capturer != std::this_thread::get_id())
      return work();
    kept->work.push_back(std::move(work));
    return {};
  }
  static Result<> replay(Captured &captured) {
    for (const Work &work : static_cast<Kept &>(captured).work)
      if (Result<> done = work(); !done)
        return done;
    return {};
  }

private:
  struct Kept final : Captured {
    std::vector<Work> work;
  };

  std::atomic<std::thread::id> capturer = {};
  std::shared_ptr<Kept> kept;
};

} // namespace costate::runtime::gpu
