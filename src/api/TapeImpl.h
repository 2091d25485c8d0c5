#pragma once
/// What a Tape holds, and the recording of this thread.

#include "api/Launch.h"

namespace costate::detail {

/// A launch, or a write of the host to one array (`kernel` is null). A gradient
/// launch has no arguments here: there is nothing to reverse.
struct TapeEntry {
  std::shared_ptr<KernelImpl> kernel;
  Call call;
  std::vector<runtime::Access> accesses; ///< by argument
  std::vector<uint64_t> versions;        ///< by argument, right after the entry
  /// The adjoints or tangents that a derivative has left in memory.
  std::vector<std::shared_ptr<runtime::ArrayStorage>> derivatives = {};
};

struct TapeImpl {
  std::vector<TapeEntry> entries;
};

/// Append to the recording of this thread, if there is one.
void recordLaunch(const std::shared_ptr<KernelImpl> &kernel, const Call &call,
                  const runtime::KernelCode &code);
/// What a gradient or tangent launch has written besides.
void recordDerivatives(
    const std::shared_ptr<KernelImpl> &kernel, Mode mode,
    std::vector<std::shared_ptr<runtime::ArrayStorage>> arrays);
void recordHostWrite(const std::shared_ptr<runtime::ArrayStorage> &array);
bool isRecording();

/// While it lives, this thread records nothing.
class RecordingPause {
public:
  RecordingPause();
  ~RecordingPause();
  RecordingPause(const RecordingPause &) = delete;
  RecordingPause &operator=(const RecordingPause &) = delete;

private:
  TapeImpl *paused;
};

} // namespace costate::detail
