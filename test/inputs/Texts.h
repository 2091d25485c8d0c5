#pragma once
/// Texts of kernel IR that are nearly right.

#include <cstdint>
#include <string>
#include <vector>

namespace costate::inputs {

/// Every kernel of the text tests.
const std::vector<std::string> &corpus();

/// A kernel of the corpus, damaged in a few ways that `seed` chooses.
std::string damagedText(uint64_t seed);

/// Names, numbers, strings and signs, and what stands between them.
std::vector<std::string> tokensOf(const std::string &text);

} // namespace costate::inputs
