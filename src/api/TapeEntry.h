#pragma once
/// What a Tape holds: one object for each thing that happened.

#include "api/Launch.h"
#include "costate/custom_launch.h"
#include "runtime/VersionLog.h"

#include <map>

namespace costate::detail {

struct TapeImpl;

/// One array of an entry, or null for a scalar.
struct TapeArgument {
  std::shared_ptr<runtime::ArrayStorage> array;
  bool read = false;
  bool written = false;
  bool replaced = false; ///< all elements are written, without a derivative
  uint64_t before = 0, after = 0; ///< write counts
};

/// Elements that the gradient of an entry looks at.
struct Want {
  size_t argument;
  runtime::Box elements;
  uint64_t time;         ///< of the VersionLog
  bool inPlace = true;   ///< it looks at the array itself
  bool optional = false; ///< it may look at them, or not
};

/// What an entry is reversed with.
struct Reversing {
  runtime::VersionLog &log;
  /// By device; used by one entry at a time.
  std::map<const runtime::Device *, std::shared_ptr<runtime::CopyMemory>>
      &scratch;
  /// The arrays of the recording and their last uses by an entry.
  const std::map<const runtime::ArrayStorage *, TapeArgument *> &lastUse;
  /// ArrayStorage::lastWrite before `backward` of what code of the user has
  /// written in it, by identity.
  std::map<uint64_t, uint64_t> &lastWrites;
};

class TapeEntry {
public:
  virtual ~TapeEntry() = default;
  TapeEntry() = default;
  TapeEntry(const TapeEntry &) = delete;
  TapeEntry &operator=(const TapeEntry &) = delete;

  /// "kernel `square` (demo.cpp:7)"
  virtual std::string title() const = 0;
  /// "argument 2"
  virtual std::string argumentText(size_t argument) const;
  /// Throws if it has no gradient.
  virtual void requireGradient() const {}
  /// Whether it writes differentiable values to `argument`.
  virtual bool writesActive(size_t) const { return false; }
  /// What arrays held that the entry itself has overwritten.
  virtual const VersionArrays &overwritten() const;
  /// Whether what it writes depends on nothing.
  virtual bool isConstant() const { return false; }
  /// Whether code of the user runs in reverse().
  virtual bool isForeign() const { return false; }
  virtual void reverse(const Reversing &with) const = 0;

  /// To be called before what the entry stands for, and after it or after it
  /// has failed.
  void begin(runtime::VersionLog &log);
  void end(runtime::VersionLog &log);
  void abandon(runtime::VersionLog &log) const;

  /// reverse() changes the gradients of these.
  // One of each in one piece of memory: a pass that is long waits for memory.
  boost::container::small_vector<TapeArgument, 2> arguments;
  boost::container::small_vector<Want, 2> wants;
  uint64_t over = 0; ///< when it was, of the VersionLog
  /// The adjoints or tangents that a derivative has left in memory.
  std::vector<std::shared_ptr<runtime::ArrayStorage>> derivatives;

protected:
  virtual void wantBefore(runtime::VersionLog &) {}
  virtual void wantAfter(runtime::VersionLog &) {}
  void want(runtime::VersionLog &log, size_t argument, runtime::Box elements,
            bool inPlace = true, bool optional = false);

private:
  std::vector<runtime::Region> added; ///< by want, until the end
};

/// A primal launch, or the primal half of a tangent launch.
class LaunchEntry final : public TapeEntry {
public:
  /// Compiles the gradient, which says what it needs; a failure to
  /// differentiate is kept. Makes room for what is overwritten between the
  /// parts of the launch.
  LaunchEntry(std::shared_ptr<KernelImpl> kernel, Chain chain, const Call &call,
              Compiled &compiled, TapeImpl &tape);

  /// The launch; keeps the versions that its gradient needs.
  void run();

  std::string title() const override { return kernel->title(); }
  std::string argumentText(size_t argument) const override;
  void requireGradient() const override;
  bool writesActive(size_t argument) const override;
  const VersionArrays &overwritten() const override { return versions; }
  void reverse(const Reversing &with) const override;

private:
  void recordParts(const std::vector<bool> &active, TapeImpl &tape);
  void wantBefore(runtime::VersionLog &log) override;
  void wantAfter(runtime::VersionLog &log) override;
  VersionArrays versionsBefore(const Reversing &with) const;

  const std::shared_ptr<KernelImpl> kernel;
  Chain chain;
  const Call call;
  Compiled *compiled;
  Compiled *gradient = nullptr;   ///< null if no argument has a gradient
  std::optional<Failure> refusal; ///< why it cannot be differentiated
  VersionArrays versions;         ///< if it is a recording launch
  /// Else what the gradient reads as it was before the launch.
  struct Before {
    runtime::Parameter parameter;
    size_t want;
  };
  boost::container::small_vector<Before, 2> before;
};

/// The host sets elements of an array: to constants.
class HostWriteEntry final : public TapeEntry {
public:
  HostWriteEntry(std::shared_ptr<runtime::ArrayStorage> array,
                 runtime::Box elements, Loc loc);

  std::string title() const override;
  void reverse(const Reversing &with) const override;
  bool isConstant() const override { return true; }

private:
  const runtime::Box elements;
  const Loc loc;
};

/// A CustomLaunch.
class CustomEntry final : public TapeEntry {
public:
  explicit CustomEntry(CustomLaunch launch);

  std::string title() const override;
  std::string argumentText(size_t argument) const override;
  void requireGradient() const override;
  bool writesActive(size_t argument) const override;
  bool isForeign() const override { return launch.gradient != nullptr; }
  void reverse(const Reversing &with) const override;

  bool findsArrays() const { return launch.finds_arrays; }
  /// What `primal` was found to use.
  void setFound(std::vector<TapeArgument> found);
  /// runtime::writeCount() after `primal`.
  uint64_t endCount() const { return writesAfter; }
  /// The argument that is `array`, if it is named or found.
  std::optional<size_t> find(const runtime::ArrayStorage &array) const;
  /// Whether `gradient` may look at its values.
  bool isNeeded(size_t argument) const;

private:
  void wantBefore(runtime::VersionLog &log) override;
  void wantAfter(runtime::VersionLog &log) override;

  const CustomLaunch launch;
  std::map<uint64_t, size_t> positions; ///< of what is found, by identity
  uint64_t writesAfter = 0;
};

/// A gradient by hand: nothing to reverse, but what it leaves in `derivatives`
/// has a derivative that nobody knows.
class DerivativeEntry final : public TapeEntry {
public:
  explicit DerivativeEntry(std::string text) : text(std::move(text)) {}

  std::string title() const override { return text; }
  void reverse(const Reversing &) const override {}

private:
  const std::string text;
};

/// Who writes while a recording is reversed.
std::string reverserText();

/// Sets elements, or all, as `backward` of a Tape does.
void fillGradient(runtime::ArrayStorage &gradient, double value,
                  const runtime::Box &elements);
void fillGradient(runtime::ArrayStorage &gradient, double value);

/// "a write by the host (demo.cpp:7)"
std::string hostWriteText(Loc loc);

/// "custom launch `segment` (demo.cpp:7)"
std::string titleOf(const CustomLaunch &launch);

} // namespace costate::detail
