#pragma once
/// A second stream of a GPU, for copies that go on beside launches.

#include "base/Result.h"

#include <cstddef>

namespace costate::runtime::gpu {

/// Copies between memory of Driver::allocateHost and places in memory of the
/// device, which both streams use alternately. Not safe to use from several
/// threads.
class SideStream {
public:
  static constexpr size_t places = 4;

  /// Waits until all copies are done.
  virtual ~SideStream() = default;

  /// Copies of so many bytes are faster among launches.
  virtual size_t smallBytes() const { return size_t(64) << 10; }

  /// The stream of the driver goes on when no copy needs `place` any more.
  virtual Result<> enter(size_t place) = 0;
  /// Copies of `place` begin when the stream of the driver has come so far.
  virtual Result<> leave(size_t place) = 0;
  /// `from` is at `place`, and `to` of the host. Copies keep their order.
  virtual Result<> save(size_t place, std::byte *to, const std::byte *from,
                        size_t bytes) = 0;
  /// `to` is at `place`, and `from` of the host.
  virtual Result<> load(size_t place, std::byte *to, const std::byte *from,
                        size_t bytes) = 0;
};

} // namespace costate::runtime::gpu
