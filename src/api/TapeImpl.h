#pragma once
/// What a Tape holds, and the recording of this thread.

#include "api/Launch.h"

namespace costate::detail {

/// A launch, or a write of the host to one array (`kernel` is null).
struct TapeEntry {
  std::shared_ptr<KernelImpl> kernel;
  Call call;
  std::vector<runtime::Access> accesses; ///< by argument
  std::vector<uint64_t> versions;        ///< by argument, right after the entry
};

struct TapeImpl {
  std::vector<TapeEntry> entries;
};

/// Append to the recording of this thread, if there is one.
void recordLaunch(const std::shared_ptr<KernelImpl> &kernel, const Call &call,
                  const runtime::KernelCode &code);
void recordHostWrite(const std::shared_ptr<runtime::ArrayStorage> &array);

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
