#pragma once
/// Where statements stand that the library records for another front end.

#include "costate/types.h"

#include <optional>

namespace costate::detail {

/// While it lives, all that this thread records stands at `loc`: functions of
/// the library that another front end calls know no place of the user.
class RecordedAt {
public:
  explicit RecordedAt(Loc loc);
  RecordedAt(const RecordedAt &) = delete;
  ~RecordedAt();

private:
  std::optional<Loc> outer;
};

} // namespace costate::detail
