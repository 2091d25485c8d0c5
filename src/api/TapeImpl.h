#pragma once
/// A Tape behind its handles.

#include "api/Checkpoints.h"
#include "api/TapeEntry.h"
#include "costate/tape.h"

#include <atomic>
#include <unordered_map>

namespace costate::detail {

struct TapeImpl {
  /// An array that is an argument of an entry.
  struct Use {
    std::shared_ptr<runtime::ArrayStorage> array;
    bool written = false;
    bool computed = false; ///< by an entry that is no host write
    bool wanted = false;   ///< a gradient looks at it

    void count(bool isWritten, bool isComputed) {
      written |= isWritten;
      computed |= isWritten && isComputed;
    }
  };

  std::vector<std::unique_ptr<TapeEntry>> entries;
  std::vector<Use> uses; ///< in the order of the first

  bool computes(const runtime::ArrayStorage &array) const {
    return std::ranges::any_of(uses, [&](const Use &use) {
      return use.array.get() == &array && use.computed;
    });
  }

  bool isForeign = false; ///< some entry is
  runtime::VersionLog log{runtime::VersionLog::Purpose::Versions};
  std::unique_ptr<Checkpoints> checkpoints; ///< null: everything is kept
  std::atomic<bool> isRecording = false;
  bool isReversing = false;

  void append(std::unique_ptr<TapeEntry> entry);
  void clear();
  /// "kernel `square` (demo.cpp:7) (entry 3 of the recording)"
  std::string entryText(size_t index) const;
  std::string writerText(const runtime::VersionLog::Copy &copy) const;

private:
  Use &useOf(const std::shared_ptr<runtime::ArrayStorage> &array);
  std::unordered_map<const runtime::ArrayStorage *, size_t> positions;
};

TapeReport reportOf(const TapeImpl &tape);

} // namespace costate::detail
