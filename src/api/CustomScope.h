#pragma once
/// What code of the user may touch while it runs as an entry of a tape.

#include "api/TapeEntry.h"

#include <set>

namespace costate::detail {

/// While it lives, uses of arrays by this thread are held against the lists of
/// a CustomLaunch, so that none is forgotten. Arrays that are made meanwhile
/// are free. Scopes nest: the innermost custom launch and all around it count.
class CustomScope {
public:
  enum class Part : uint8_t { Primal, Gradient, Tangent };

  CustomScope(const CustomEntry &entry, Part part);
  ~CustomScope();
  CustomScope(const CustomScope &) = delete;
  CustomScope &operator=(const CustomScope &) = delete;

  /// Whether this thread is in one.
  static bool isActive();

private:
  friend void noteRead(const runtime::ArrayStorage &,
                       const std::function<std::string()> &);
  friend void noteWrite(const runtime::ArrayStorage &,
                        const std::function<std::string()> &);
  using What = std::function<std::string()>;

  bool isFree(const runtime::ArrayStorage &array) const;
  void read(const runtime::ArrayStorage &array, const What &what) const;
  void write(const runtime::ArrayStorage &array, const What &what);
  [[noreturn]] void refuse(const std::string &use, const What &what,
                           const std::string &why) const;

  const CustomEntry &entry;
  const Part part;
  CustomScope *const around;
  const uint64_t newest;      ///< array when it began
  std::set<uint64_t> written; ///< identities
};

/// To be called before the user reads or writes `array`, which is `what`.
/// BadArgument if a custom launch of this thread does not name it.
void noteRead(const runtime::ArrayStorage &array,
              const std::function<std::string()> &what);
void noteWrite(const runtime::ArrayStorage &array,
               const std::function<std::string()> &what);

} // namespace costate::detail
