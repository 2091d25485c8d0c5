#pragma once
/// How much memory a device may take, and how much it has.

#include "base/Bytes.h"

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>

namespace costate::runtime {

/// Memory that nobody uses, and that is not given back yet. Safe to use from
/// several threads.
class IdleMemory {
public:
  virtual size_t idleBytes() const = 0;
  /// Gives back all but `most` bytes.
  virtual void shrink(size_t most) = 0;

protected:
  ~IdleMemory() = default;
};

/// Counts bytes against a limit. Safe to use from several threads.
class MemoryBudget {
public:
  explicit MemoryBudget(size_t limit) : limitBytes(limit) {}
  /// False, and nothing is taken, if `bytes` more would exceed the limit.
  bool take(size_t bytes);
  void give(size_t bytes) { used.fetch_sub(bytes); }
  /// What is taken leaves no more of `memory` than fits beside it. To be called
  /// before anything is taken; `memory` lives as long.
  void watch(IdleMemory &memory) { idle = &memory; }
  size_t limit() const { return limitBytes; }
  size_t current() const { return used.load(); }
  size_t left() const;
  size_t peak() const { return most.load(); }
  void resetPeak() { most.store(used.load()); }

private:
  const size_t limitBytes;
  std::atomic<size_t> used = 0;
  std::atomic<size_t> most = 0;
  IdleMemory *idle = nullptr;
};

/// `3 KiB of the limit of 1 MiB are left`
std::string leftText(const MemoryBudget &budget);

inline constexpr const char *raiseLimit =
    "raise the limit (DeviceOptions::memory_limit, COSTATE_MEMORY_LIMIT)";

/// Why an array of `bytes` cannot be allocated.
Failure noRoomFailure(const MemoryBudget &budget, size_t bytes);

/// Why a gradient cannot run, where `need` says who needs how much:
/// `out of memory for the values that this loop saves ...`.
std::string tapeMemoryText(const MemoryBudget &budget, const std::string &need);

/// Likewise if tapes may have `budget` bytes together, in equal shares of the
/// threads if `isShared`.
std::string tapeBudgetText(size_t budget, const std::string &need,
                           bool isShared);

/// Bytes for tapes: `chosen`, else COSTATE_TAPE_BUDGET; none: that
/// is not set.
Result<std::optional<size_t>> tapeBudget(std::optional<size_t> chosen);

/// The limit for a device that asks for none: COSTATE_MEMORY_LIMIT, else the
/// least of physical memory, control groups and address space, minus a reserve
/// for the rest of the process.
Result<size_t> defaultMemoryLimit();

} // namespace costate::runtime
