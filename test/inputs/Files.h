#pragma once
/// Files and arguments of the command line that are nearly right.

#include <cstdint>
#include <string>

namespace costate::inputs {

/// The bytes of an .npy file.
std::string damagedNpy(uint64_t seed);
/// An argument of costate-run: `f64[2]=1,2`.
std::string damagedArgument(uint64_t seed);

} // namespace costate::inputs
