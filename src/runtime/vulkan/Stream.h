#pragma once
/// All work of a device, in the order in which it is asked for.
///
/// Work is recorded, and handed to the device when somebody waits for it, when
/// enough of it is there, or when the device has nothing else to do.

#include "base/Fork.h"
#include "runtime/vulkan/Commands.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <thread>

namespace costate::runtime::vulkan {

/// So much work, counted from the beginning; a moment in the order of the work.
using Moment = uint64_t;

/// Safe to use from several threads.
class Stream {
public:
  static Result<std::unique_ptr<Stream>> open(std::shared_ptr<Session> session,
                                              std::shared_ptr<Pool> arguments);
  /// Waits for all work.
  ~Stream();
  Stream(const Stream &) = delete;

  /// Calls `append(commands)`, which may record several commands that do not
  /// wait for each other; they wait for all before.
  template <class Append> Status record(const Append &append) {
    if (isCapturing()) {
      captured->wait();
      return append(*captured);
    }
    if (session->isLost())
      return VK_ERROR_DEVICE_LOST;
    std::lock_guard lock(mutex);
    if (Status status = beginWork())
      return status;
    Status status = append(*recorded);
    return status ? status : endWork();
  }

  /// After all that is recorded so far.
  Moment now();
  bool isDone(Moment moment);
  Status waitFor(Moment moment);
  /// For all.
  Status wait() { return waitFor(now()); }

  /// From here to endCapture, what this thread records is kept.
  Status beginCapture();
  Status endCapture(std::shared_ptr<Commands> &kept);
  bool isCapturing() const { return capturer == std::this_thread::get_id(); }

  /// Of what is being captured, or of all the rest.
  Counters &counters() {
    return isCapturing() ? capturedCount : session->counters;
  }

private:
  struct Batch {
    std::unique_ptr<Commands> commands;
    Moment end;
  };

  Stream(std::shared_ptr<Session> session, std::shared_ptr<Pool> arguments)
      : session(std::move(session)), arguments(std::move(arguments)) {}
  Status createSemaphore();
  // With the mutex held.
  Status beginWork();
  Status endWork();
  Status submit();
  Status recycle();
  Moment reached();

  Status waitUnlocked(Moment moment);
  void submitWhenIdle(std::stop_token stopped);
  bool endsBefore(EndWait::Moment end);

  std::shared_ptr<Session> session;
  std::shared_ptr<Pool> arguments;
  VkSemaphore semaphore = VK_NULL_HANDLE; ///< counts moments
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_ptr<Commands> recorded; ///< and not submitted; may be null
  std::vector<std::unique_ptr<Commands>> spare;
  std::deque<Batch> running;
  Moment submitted = 0, done = 0;
  std::chrono::steady_clock::time_point lastSubmit = {};

  std::atomic<std::thread::id> capturer = {};
  std::shared_ptr<Commands> captured;
  Counters capturedCount;
  std::jthread submitter; ///< it uses all of these
  EndWait atEnd{[this](EndWait::Moment end) { return endsBefore(end); }};
};

} // namespace costate::runtime::vulkan
