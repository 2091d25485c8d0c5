#pragma once
/// Random programs: tame values, no races, and mostly legal to differentiate.

#include "property/Program.h"

namespace costate::property {

/// Programs of seeds from here on have at most 5 statements or so.
inline constexpr unsigned firstShort = 1U << 31;

Node generate(unsigned seed);

} // namespace costate::property
