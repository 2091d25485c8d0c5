#pragma once
/// Who wants to know what this thread does.

#include <memory>

namespace costate::detail {

class Capture;
class CustomScope;
struct RecordingState;

/// Kernels are launched and arrays used by calls that name none of these, so
/// each thread has them at hand. Whatever else a launch depends on is passed.
struct ThisThread {
  std::shared_ptr<RecordingState> recording; ///< perhaps ended meanwhile
  Capture *capture = nullptr;
  CustomScope *scope = nullptr; ///< the innermost
};
inline ThisThread &thisThread() {
  static thread_local ThisThread own;
  return own;
}

} // namespace costate::detail
