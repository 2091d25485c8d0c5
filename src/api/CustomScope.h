#pragma once
/// What code of the user may touch while it runs as an entry of a recording.

#include "api/CustomEntry.h"
#include "api/ThisThread.h"

#include <set>

namespace costate::detail {

/// While it lives, what code of the user is about to write to arrays of the
/// recording is kept, and put back at the end.
class Guard {
public:
  explicit Guard(const Reversing &with) : with(with) {}
  ~Guard();
  Guard(const Guard &) = delete;
  Guard &operator=(const Guard &) = delete;

  void beforeWrite(const std::shared_ptr<runtime::ArrayStorage> &array);
  /// ArrayStorage::lastWrite as it was before `backward`.
  uint64_t lastWriteOf(const runtime::ArrayStorage &array) const;
  /// Whether `array` does not hold what it held at `time`.
  bool isLost(const runtime::ArrayStorage &array, uint64_t time) const;

private:
  struct Kept {
    std::shared_ptr<runtime::ArrayStorage> array;
    TapeArgument *lastUse;
    uint64_t version, lastWrite;
  };

  const Reversing &with;
  runtime::VersionLog log{runtime::VersionLog::Purpose::Undo};
  std::vector<Kept> all;
};

/// While it lives, uses of arrays by this thread are held against the lists of
/// a CustomLaunch, so that none is forgotten, or make up the list of what it
/// uses. Arrays that are made meanwhile are free. Scopes nest: the innermost
/// custom launch and all around it count.
class CustomScope {
public:
  enum class Part : uint8_t { Primal, Gradient, Tangent };
  using Array = std::shared_ptr<runtime::ArrayStorage>;
  using What = std::function<std::string()>;

  CustomScope(const CustomEntry &entry, Part part, Guard *guard = nullptr);
  ~CustomScope();
  CustomScope(const CustomScope &) = delete;
  CustomScope &operator=(const CustomScope &) = delete;

  /// Of this thread, or null.
  static CustomScope *innermost() { return thisThread().scope; }
  /// From the innermost outwards.
  template <class F> static void forEach(F &&use) {
    for (CustomScope *scope = innermost(); scope; scope = scope->around)
      use(*scope);
  }

  /// To be called before the user reads or writes `array`, which is `what`.
  /// BadArgument if the custom launch does not name it.
  void read(const Array &array, const What &what);
  void write(const Array &array, const What &what);
  /// The same of what is read or written first: for a gradient that has no
  /// lists.
  void update(const Array &array, const What &what);
  /// Others have written `array`, perhaps on behalf of a custom launch that
  /// finds its arrays; to be called before that is counted.
  void writeOutside(const Array &array);
  /// What has been used, if the entry does not name it.
  std::vector<TapeArgument> takeFound() { return std::move(found); }

private:
  bool isFree(const runtime::ArrayStorage &array) const;
  bool isGradient() const { return part == Part::Gradient; }
  void find(const Array &array, bool written);
  void requireOld(const runtime::ArrayStorage &array, const What &what) const;
  [[noreturn]] void refuse(const std::string &use, const What &what,
                           const std::string &why,
                           ErrorCode code = ErrorCode::BadArgument) const;

  const CustomEntry &entry;
  const Part part;
  Guard *const guard; ///< of a gradient
  CustomScope *const around;
  const uint64_t newest;      ///< array when it began
  std::set<uint64_t> written; ///< identities
  std::vector<TapeArgument> found;
  std::map<uint64_t, size_t> positions; ///< in `found`, by identity
};

} // namespace costate::detail
