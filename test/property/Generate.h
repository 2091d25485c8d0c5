#pragma once
/// Random programs: tame values, no races, and mostly legal to differentiate.

#include "property/Program.h"

namespace costate::property {

Node generate(unsigned seed);

} // namespace costate::property
