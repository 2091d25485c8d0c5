#pragma once
/// What is done to arrays, told to all who want to know.

#include "runtime/ArrayStorage.h"

namespace costate::detail {

struct ArrayUse {
  runtime::ArrayStorage *array = nullptr; ///< null: none after all
  bool read = false;                      ///< its values are looked at
  bool written = false;                   ///< they change
};

/// The arrays that somebody uses, and how. Who that is, and what of an array
/// is written, derived classes say: for messages, and if somebody asks.
class AccessSet {
public:
  using Uses = boost::container::small_vector<ArrayUse, 8>;
  const Uses &all() const { return uses; }

  enum class Part : uint8_t { All, Reads, Writes };
  /// Before the user does it: custom launches around it look whether they name
  /// the arrays. Throws if one refuses.
  void tellCustomLaunches(Part part = Part::All) const;
  /// Before it is done: recordings keep what they need of what is written.
  /// Throws if one refuses.
  void tellWatchers(Part part = Part::All) const;
  /// After it.
  void countWrites() const;
  /// From here on others may write what this writes.
  void noteOthersWriting() const;

protected:
  ~AccessSet() = default;
  void add(const ArrayUse &use);

  /// "argument 2 of kernel `relax`", "an array of f64 of shape (3)"
  virtual std::string useText(size_t use) const = 0;
  virtual std::string readerText() const = 0;
  virtual std::string writerText() const = 0;
  virtual runtime::Box writtenElements(size_t use) const = 0;

  Uses uses;

private:
  /// Those that read or write, which are few of many where a kernel gets all
  /// arrays of a simulation.
  boost::container::small_vector<uint32_t, 8> busy;
};

/// Of one array, by somebody who has no kernel.
class SingleUse final : public AccessSet {
public:
  using User = std::string (*)(Loc loc);
  /// It writes the elements `written`, or if that is null reads. Array and
  /// elements must outlive it.
  SingleUse(runtime::ArrayStorage &array, const runtime::Box *written,
            User user, Loc loc = {});

private:
  std::string useText(size_t use) const override;
  std::string readerText() const override { return user(loc); }
  std::string writerText() const override { return user(loc); }
  runtime::Box writtenElements(size_t) const override { return *written; }

  const runtime::Box *const written;
  const User user;
  const Loc loc;
};

/// Counts a write of somebody else that is over: all watchers lose what was
/// there.
void noteUnseenWrite(runtime::ArrayStorage &array,
                     std::function<std::string()> writer);
/// The same if there is anybody who may have written and would not say so.
void noteStrangers(runtime::ArrayStorage &array);
/// What watchers need of `array` is copied at once if there are such strangers,
/// for they may write at any time.
void keepFromStrangers(runtime::ArrayStorage &array);

} // namespace costate::detail
