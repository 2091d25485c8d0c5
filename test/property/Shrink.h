#pragma once
/// The smallest program that is found to fail.

#include "property/Program.h"

#include <functional>
#include <optional>
#include <vector>

namespace costate::property {

/// Removes and simplifies statements and expressions of `program` as long as
/// `fails` holds.
Node shrink(Node program, const std::function<bool(const Node &)> &fails);

/// The first of some programs that fails; none if all are right.
using FirstThatFails =
    std::function<std::optional<size_t>(const std::vector<Node> &)>;

/// The same program as from one by one, where so many are looked at together:
/// of each step those that come next if it fails to make it smaller.
Node shrink(Node program, const FirstThatFails &firstThatFails,
            size_t together);

} // namespace costate::property
