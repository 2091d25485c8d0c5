#pragma once
/// Where compiled code is kept, and how much of it.

#include "base/Result.h"

#include <cstdint>
#include <string>

namespace costate::cache {

struct Settings {
  bool enabled = true;
  std::string folder = {};            ///< empty: there is none
  uint64_t limit = uint64_t(1) << 30; ///< bytes

  bool operator==(const Settings &) const = default;
};

/// What the environment says, where it does not what `chosen` says, and else
/// the usual place: COSTATE_CACHE, COSTATE_CACHE_DIR, COSTATE_CACHE_SIZE,
/// XDG_CACHE_HOME. BadArgument for a size that is none.
Result<Settings> settingsFor(Settings chosen);

} // namespace costate::cache
