#pragma once
/// AMD's chips, as LLVM calls them: `gfx942`. Drivers add what a device is
/// set to, `gfx90a:sramecc+:xnack-`; code is made for either setting.

#include "base/GpuShape.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace costate {

/// Without settings.
inline std::string_view amdChip(std::string_view name) {
  return name.substr(0, name.find(':'));
}

/// None: `chip` is not called as AMD's from gfx900 on are. Up to gfx9.. warps
/// have 64 lanes.
inline std::optional<GpuShape> parseAmdChip(std::string_view chip) {
  constexpr std::string_view start = "gfx";
  if (!chip.starts_with(start))
    return std::nullopt;
  std::string_view number = chip.substr(start.size());
  bool isNumber = std::ranges::all_of(number, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  bool isOld = number.size() == 3 && number[0] == '9';
  bool isNew = number.size() == 4 && number[0] == '1';
  if (!isNumber || !(isOld || isNew))
    return std::nullopt;
  return GpuShape{.lanes = isOld ? 64 : 32, .addsInBlocks = true};
}

} // namespace costate
