#pragma once
/// The recording of this thread.

#include "api/TapeImpl.h"
#include "api/ThisThread.h"

namespace costate::detail {

/// Shared by the thread that records and by the handle that ends it.
struct RecordingState {
  explicit RecordingState(const std::shared_ptr<TapeImpl> &tape);
  void end();

  /// What nobody can reverse any more is not recorded.
  const std::weak_ptr<TapeImpl> tape;
  std::atomic<bool> hasEnded = false;
};

/// The Tape that records this thread, or null.
std::shared_ptr<TapeImpl> recordingTape();

/// Makes this thread record. BadArgument if it does already.
void startRecording(const std::shared_ptr<RecordingState> &state);

/// Runs `body` as `entry` of the recording; if it throws, it was none.
void recordEntry(TapeImpl &tape, std::unique_ptr<TapeEntry> entry,
                 const std::function<void()> &body);

/// Runs `body`, which announces and counts a write of `values` (packed, or one
/// number for all; none if they are not known), and appends it to the recording
/// of this thread, if there is one.
void recordHostWrite(const std::shared_ptr<runtime::ArrayStorage> &array,
                     const runtime::Box &elements, Loc loc,
                     std::span<const std::byte> values,
                     const std::function<void()> &body);
/// A derivative by hand, which has left `arrays` in memory.
void recordDerivatives(
    const std::string &title,
    std::vector<std::shared_ptr<runtime::ArrayStorage>> arrays);

/// While it lives, this thread records nothing.
class RecordingPause {
public:
  RecordingPause();
  ~RecordingPause();
  RecordingPause(const RecordingPause &) = delete;
  RecordingPause &operator=(const RecordingPause &) = delete;

private:
  std::shared_ptr<RecordingState> paused;
};

} // namespace costate::detail
