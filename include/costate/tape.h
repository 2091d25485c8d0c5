#pragma once
/// Gradients through several launches.

#include "costate/array.h"
#include "costate/check_gradient.h"
#include "costate/custom_launch.h"
#include "costate/detail/composite.h"
#include "costate/detail/shared.h"

#include <cstddef>
#include <cstdint>
#include <functional>
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
  /// With one of these, little is copied while the recording is made: at most
  /// so many snapshots of what it overwrites, or as many as fit. `backward`
  /// goes back to them and runs launches again. 0: as many as the other allows.
  size_t snapshots = 0;
  /// Bytes for all copies that the `Tape` makes. Error(OutOfMemory) where not
  /// even one snapshot fits; the text says what is needed.
  size_t budget = 0;
  /// Snapshots of arrays of a GPU are kept in memory of the host.
  bool on_host = false;
  /// Snapshots are kept in files in this folder, which nobody else sees.
  std::string folder = {};
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
  /// Called after each piece of the recording that has been reversed: how many
  /// steps are, and of how many.
  std::function<void(size_t done, size_t all)> progress = {};
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

  /// Of a `Tape` that runs launches again; otherwise `snapshots` is 0.
  size_t steps = 0;           ///< recorded, or more if so many are told
  size_t snapshots = 0;       ///< at most
  size_t snapshots_taken = 0; ///< that are held at present
  size_t snapshot_bytes = 0;  ///< of the largest
  size_t budget = 0;
  /// Steps that `backward` runs again, as far as that is known; after it, that
  /// it has run.
  size_t steps_again = 0;
  /// Entries that do not run again: what they wrote is kept instead.
  struct Kept {
    std::string entry;
    std::string why;
    size_t bytes = 0;
  };
  std::vector<Kept> kept = {};
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
/// With TapeOptions::snapshots or `budget` the recording is a sequence of
/// steps: each launch or host write is one, or what stands between two marks:
///
/// ```cpp
/// Tape tape({.snapshots = 16});
/// {
///   auto recording = tape.record();
///   for (int64_t t : tape.steps(1000)) {
///     collide(state);
///     stream(state, next);
///   }
///   measure(state, loss);
/// }
/// tape.backward(loss);
/// ```
///
/// As long as nothing is overwritten that a gradient looks at, nothing is kept.
/// Then, before steps that a schedule chooses, arrays are remembered as they
/// are: what is overwritten afterwards is copied once. `backward` takes the
/// steps from the last to the first: it goes back to the last snapshot before
/// the step, runs the steps in between again, and reverses the step as above.
/// Gradients are those of a `Tape` without these options, bit for bit if
/// launches are: where work items add floats to one element, in `deterministic`
/// kernels. At no time are there more copies than the snapshots, one of what
/// arrays hold at the end, and those that a `Tape` makes of one step.
///
/// Launches run again with the same arguments, and say nothing by `print`. What
/// host writes, custom launches, and atomics that return something have left is
/// kept and put back, and so is what was written outside of the recording to
/// arrays without gradient.
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

  /// What steps() returns: for (int64_t t : tape.steps(n)) counts from 0 and
  /// marks each step.
  class Steps {
  public:
    class Iterator {
    public:
      int64_t operator*() const { return step; }
      Iterator &operator++();
      bool operator==(const Iterator &other) const {
        return step == other.step;
      }

    private:
      friend class Steps;
      Iterator(const Steps *steps, int64_t step) : steps(steps), step(step) {}
      const Steps *steps;
      int64_t step;
    };
    Iterator begin() const;
    Iterator end() const { return {this, count}; }
    int64_t size() const { return count; }

  private:
    friend class Tape;
    Steps(std::weak_ptr<detail::TapeImpl> tape, int64_t count)
        : tape(std::move(tape)), count(count) {}
    void mark(int64_t step) const;

    std::weak_ptr<detail::TapeImpl> tape;
    int64_t count;
  };

  /// Error(BadArgument) for options that exclude each other.
  Tape(TapeOptions options = {});

  /// What comes from here on, up to the next mark, is one step. Nothing if the
  /// `Tape` takes no snapshots.
  void step();
  /// Tells that `count` steps follow, so that the best schedule can be followed
  /// from the begin. Without, steps are run at most 1.5 times as often.
  Steps steps(int64_t count);
  Steps range(int64_t count) { return steps(count); }

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
  /// needs is Error(CannotReplay) of `backward`. Error(BadArgument) if the
  /// `Tape` takes snapshots.
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
  /// Whether a recorded launch writes `array`, so that it can be a loss.
  bool computes(const AnyArray &array) const;
  TapeReport report() const;

private:
  static constexpr char empty[] =
      "this `Tape` has been moved from; use the one that it was moved to, or "
      "assign another";
  detail::Shared<detail::TapeImpl, empty> impl;
};

} // namespace costate
