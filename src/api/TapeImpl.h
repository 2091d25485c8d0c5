#pragma once
/// A Tape behind its handles.

#include "api/TapeEntry.h"
#include "costate/tape.h"

#include <atomic>

namespace costate::detail {

struct TapeImpl {
  std::vector<std::unique_ptr<TapeEntry>> entries;
  runtime::VersionLog log{runtime::VersionLog::Purpose::Versions};
  std::atomic<bool> isRecording = false;
  bool isReversing = false;

  void append(std::unique_ptr<TapeEntry> entry);
  /// "kernel `square` (demo.cpp:7) (entry 3 of the recording)"
  std::string entryText(size_t index) const;
  std::string writerText(const runtime::VersionLog::Copy &copy) const;
};

TapeReport reportOf(const TapeImpl &tape);

} // namespace costate::detail
