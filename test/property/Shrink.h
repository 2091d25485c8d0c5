#pragma once
/// The smallest program that is found to fail.

#include "property/Program.h"

#include <functional>

namespace costate::property {

/// Removes and simplifies statements and expressions of `program` as long as
/// `fails` holds.
Node shrink(Node program, const std::function<bool(const Node &)> &fails);

} // namespace costate::property
