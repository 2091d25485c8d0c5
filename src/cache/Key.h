#pragma once
/// What an entry is found by: a hash of everything that decides what it holds.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace costate::cache {

using Key = std::array<uint8_t, 32>;

/// SHA-256.
Key keyOf(std::string_view bytes);

/// 64 hexadecimal digits.
std::string textOf(const Key &key);

/// Tells the files that the code at these addresses has come from from all
/// others: their build ids, or sizes and times. Empty if that is not known.
std::string identityOf(std::span<const void *const> addresses);

} // namespace costate::cache
