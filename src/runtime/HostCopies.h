#pragma once
/// Copies of memory of a device that the host keeps.

#include "base/Result.h"
#include "runtime/Buffer.h"

#include <span>

namespace costate::runtime {

/// Safe to use from several threads. Not to be used after its device.
class HostCopies {
public:
  virtual ~HostCopies() = default;

  /// Memory of the host, of any contents. OutOfMemory.
  virtual Result<Buffer> borrow(size_t bytes) = 0;
  virtual void giveBack(Buffer buffer) = 0;

  /// `to`, which is borrowed, will hold what `from` holds after all that has
  /// been queued so far. Nobody waits for it, and launches that are queued
  /// afterwards may run at the same time.
  virtual Result<> save(Buffer to, std::span<const Rows> from) = 0;
  /// The other way; what is queued afterwards sees it.
  virtual Result<> load(std::span<const Rows> to, Buffer from) = 0;

  /// Gives most of what is not borrowed back to the system.
  virtual void trim() = 0;
};

} // namespace costate::runtime
