#pragma once
/// Vectors and matrices written out: an oracle for what the headers make of
/// them.

#include "property/Program.h"

namespace costate::property {

/// The same program with a variable for each component: the same operations on
/// numbers in the same order, so that results have the same bits.
Node withoutTensors(const Node &program);

} // namespace costate::property
