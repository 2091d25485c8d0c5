#pragma once
/// Gradients through several launches.

#include "costate/array.h"
#include "costate/check_gradient.h"

#include <cstddef>
#include <memory>

namespace costate {

namespace detail {
struct TapeImpl;
}

/// Records the launches and host writes of one thread, and reverses them.
///
/// ```cpp
/// Tape tape;
/// {
///   auto recording = tape.record();
///   step(state, force);
///   measure(state, loss);
/// }
/// tape.backward(loss);
/// ```
///
/// Values that a derivative needs must still be in memory when `backward` runs:
/// an array that a later launch or host write has overwritten is
/// Error(CannotReplay); give such arrays a time index. Not for use by two
/// threads at once.
class Tape {
public:
  /// Records while it lives.
  class Recording {
  public:
    Recording(Recording &&other) noexcept;
    Recording &operator=(Recording &&) = delete;
    ~Recording();

  private:
    friend class Tape;
    explicit Recording(std::shared_ptr<detail::TapeImpl> tape);
    std::shared_ptr<detail::TapeImpl> tape;
  };

  Tape();

  /// Starts to record what this thread does, behind what the tape holds
  /// already. Error(BadArgument) if this thread is recording already.
  [[nodiscard]] Recording record();

  /// Sets `loss.grad()` to 1 everywhere, clears the gradients of all other
  /// arrays that the recording wrote, and reverses the recording: adds to the
  /// gradients of its inputs. May be called again.
  ///
  /// Error(BadArgument) if the recording does not write `loss`.
  /// Error(MissingGradient) if it has no gradient, or an array that carries
  /// a differentiable value from one launch to another has none.
  /// Error(CannotReplay) if a needed value has been overwritten, or an array
  /// with gradient was written between two entries by something that is not
  /// recorded.
  void backward(const AnyArray &loss);
  /// The same, from the gradients as they are; clears nothing beforehand.
  void backward();

  /// Forgets everything.
  void clear();
  /// The number of recorded launches and host writes.
  size_t size() const;

private:
  std::shared_ptr<detail::TapeImpl> impl;
};

} // namespace costate
