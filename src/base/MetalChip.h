#pragma once
/// What code for Metal may rely on, as the text that tells compiled code of one
/// device from that of another: `metal3.2`.

#include "base/GpuShape.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace costate {

/// Of the language that code is written in: the first one with fences.
inline constexpr std::string_view metalLanguage = "metal3.2";

struct MetalFeatures {
  /// Floats of 64 bits in kernels, by operations of integers. No GPU: for tests
  /// that need them, of everything else.
  bool f64 = false;

  bool operator==(const MetalFeatures &) const = default;
};

inline constexpr GpuShape metalShape{.waitsForEnded = true,
                                     .knowsPlaces = true};

inline std::string metalChip(const MetalFeatures &features) {
  return std::string(metalLanguage) + (features.f64 ? ";f64" : "");
}

/// What `metalChip` has printed; none for anything else.
inline std::optional<MetalFeatures> parseMetalChip(std::string_view text) {
  for (bool f64 : {false, true})
    if (MetalFeatures features{f64}; text == metalChip(features))
      return features;
  return std::nullopt;
}

/// Of the memory of a block, for what code needs besides what launches ask for.
inline constexpr size_t metalOwnBlockBytes = 2048;

/// What Metal calls the kernel `deviceSymbol(name)`: another name for each.
inline std::string metalName(std::string_view symbol) {
  std::string name = "f_";
  for (char c : symbol) {
    if (c == '_')
      name += "_u";
    else if (c == '$')
      name += "_s";
    else if (c == '.')
      name += "_d";
    else
      name += c;
  }
  return name;
}

/// What the text of a module says to who loads it: a line `MARK NUMBER`.
inline constexpr std::string_view metalBlockBytesMark =
    "// bytes of block memory: ";

/// Bytes of block memory that the code of `text` needs itself.
inline size_t metalBlockBytes(std::string_view text) {
  size_t bytes = 0, at = text.find(metalBlockBytesMark);
  if (at != text.npos)
    std::from_chars(text.data() + at + metalBlockBytesMark.size(),
                    text.data() + text.size(), bytes);
  return bytes;
}

} // namespace costate
