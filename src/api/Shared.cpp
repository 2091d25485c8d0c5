#include "costate/detail/shared.h"

#include "api/Checked.h"

void costate::detail::refuseEmpty(const char *why) {
  api::raise(ErrorCode::BadArgument, why);
}
