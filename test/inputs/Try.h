#pragma once
/// Hands inputs to what reads them. A crash or a hang is the caller's matter.

#include <cstdint>
#include <string>

namespace costate::inputs {

enum class Input { Kernel, Npy, Argument };

/// What is wrong with how the input was taken; empty if it was understood, or
/// refused with an error that is meant for it.
std::string problemWith(Input kind, const std::string &input);

/// The input of a seed, and what kind it is.
Input kindOf(uint64_t seed);
std::string inputOf(uint64_t seed);

} // namespace costate::inputs
