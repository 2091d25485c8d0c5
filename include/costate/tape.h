#pragma once
/// Gradients through several launches.

#include "costate/array.h"
#include "costate/check_gradient.h"
#include "costate/custom_launch.h"
#include "costate/detail/composite.h"
#include "costate/detail/shared.h"

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace costate {

namespace detail {
struct RecordingState;
struct TapeImpl;
} // namespace detail

struct TapeOptions {
  /// Keeps copies of values that a gradient needs and that are overwritten.
  /// Without, such an overwrite is Error(CannotReplay) of `backward`.
  bool snapshot = true;
};

struct BackwardOptions {
  /// Also clears the gradients of arrays that the recording only reads, which
  /// are added to otherwise.
  bool clear_inputs = false;
  /// With a loss: clears the gradients of arrays that the recording writes.
  /// Without, they are added to.
  bool clear_written = true;
  /// Copies the gradients beforehand, so that a failure leaves them as they
  /// were. Without, that is so if they have at most 1 MiB together and memory
  /// is not short.
  bool all_or_nothing = false;
};

/// What a recording holds.
struct TapeReport {
  struct Copy {
    std::string array;          ///< "f64 array of shape (64, 3)"
    std::string needed_by;      ///< the last entry whose gradient needs it
    std::string overwritten_by; ///< what has destroyed the original
    size_t bytes = 0;
  };
  size_t entries = 0;
  std::vector<Copy> copies;
  size_t bytes = 0;      ///< of all copies
  size_t peak_bytes = 0; ///< most since it was made or cleared
};

std::ostream &operator<<(std::ostream &out, const TapeReport &report);

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
/// Before anything overwrites a value that the gradient of a recorded launch
/// needs, that value is copied, and nothing else is: by a launch or by the
/// host, recorded or not, on any thread, as long as the recording holds the
/// entry. `backward` puts the copies in place and afterwards the newest values
/// back. Copies count against the memory of the device. If there is no room,
/// the overwriting call is Error(OutOfMemory) and has written nothing.
///
/// Not for use by two threads at once. While `backward` runs, arrays hold old
/// values: other threads that read those, or write what the recording needs,
/// get Error(BadArgument). Using one that has been moved from is
/// Error(BadArgument) too.
class Tape {
public:
  /// Records while it lives, and the `Tape` does. May be destroyed on another
  /// thread: nothing that its own thread begins after that is recorded.
  class Recording {
  public:
    Recording(Recording &&other) noexcept;
    Recording &operator=(Recording &&) = delete;
    ~Recording();

  private:
    friend class Tape;
    explicit Recording(const std::shared_ptr<detail::TapeImpl> &tape);
    std::shared_ptr<detail::RecordingState> state;
  };

  Tape(TapeOptions options = {});

  /// Starts to record what this thread does, after what is recorded
  /// already. Error(BadArgument) if this thread is recording already, or
  /// this `Tape` is on another thread.
  [[nodiscard]] Recording record();

  /// Sets `loss.grad()` to 1 everywhere, clears the gradients of all other
  /// arrays that the recording wrote, and reverses the recording: adds to the
  /// gradients of its inputs. May be called again. All other memory is as
  /// before when it returns or throws. If it throws, gradients are as before
  /// too, as BackwardOptions::all_or_nothing says, or else the text says that
  /// they are not usable.
  ///
  /// Error(BadArgument) if the recording does not write `loss`, or has not
  /// ended.
  /// Error(MissingGradient) if it has no gradient, or an array that carries
  /// a differentiable value from one launch to another has none.
  /// Error(NotDifferentiable) if a launch has no gradient.
  /// Error(CannotReplay) if a needed value has been overwritten and the
  /// recording may not copy it, or an array with gradient was written between
  /// two entries by something that is not recorded.
  void backward(const AnyArray &loss, BackwardOptions options = {});
  /// The same, from the gradients as they are; clears none of those that the
  /// recording wrote.
  void backward(BackwardOptions options = {});

  /// Keeps no copies of this array: an overwrite of a value that a gradient
  /// needs is Error(CannotReplay) of `backward`.
  void never_copy(const AnyArray &array);
  template <class C>
    requires detail::Mixed<C>
  void never_copy(const Array<C> &array) {
    array.costateEach([this](const AnyArray &part) { never_copy(part); });
  }

  /// Forgets everything, copies included. Error(BadArgument) while it records.
  void clear();
  /// The number of entries: recorded launches and host writes.
  size_t size() const;
  TapeReport report() const;

private:
  static constexpr char empty[] =
      "this `Tape` has been moved from; use the one that it was moved to, or "
      "assign another";
  detail::Shared<detail::TapeImpl, empty> impl;
};

} // namespace costate
