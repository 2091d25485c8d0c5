#pragma once
/// A pass backwards over a recording of which snapshots are kept.

#include "api/TapeImpl.h"

namespace costate::detail {

/// While it lives arrays hold old values; then everything but gradients is as
/// it was before.
class Replay {
public:
  /// `check` throws if the gradient of an entry lacks something.
  Replay(TapeImpl &tape, const Reversing &with,
         std::function<void(size_t)> check);
  ~Replay();
  Replay(const Replay &) = delete;
  Replay &operator=(const Replay &) = delete;

  using Progress = std::function<void(size_t done, size_t all)>;
  void run(const Progress &progress);

private:
  using Left = std::function<void(size_t entries)>;
  struct Before {
    std::shared_ptr<runtime::ArrayStorage> array;
    TapeArgument *lastUse; ///< null: not the last write
    uint64_t version, lastWrite;
  };

  void repeat(size_t begin, size_t end);
  bool reverse(size_t begin, size_t end);
  void reverseEntries(size_t first, size_t last, const Left &tell = {});
  void reverseIntact(const Left &tell);
  bool record(size_t begin, size_t end);
  bool recordStep(size_t first, size_t last, size_t notRun,
                  size_t room = SIZE_MAX);
  size_t costOf(const TapeEntry &entry) const;
  size_t lastToRun(size_t first, size_t last) const;
  void forget();

  TapeImpl &tape;
  Checkpoints &checkpoints;
  const Reversing with;
  const std::function<void(size_t)> check;
  std::vector<Before> before;
  runtime::VersionLog newest{runtime::VersionLog::Purpose::Undo};
};

} // namespace costate::detail
