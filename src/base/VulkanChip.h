#pragma once
/// What code for Vulkan may rely on, as the text that tells compiled code of
/// one device from that of another: `vulkan1.3;subgroup=32;f64;i64atomics`.

#include "base/GpuShape.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace costate {

// F(member, text), in the order of the texts. Numbers after names: bits.
// clang-format off
#define COSTATE_VULKAN_FEATURES(F)                                             \
  /* Subgroup operations. */                                                   \
  F(arithmetic, "arithmetic")                                                  \
  F(ballot, "ballot")                                                          \
  /* Denormals are kept, if an execution mode asks for it. */                  \
  F(denorm16, "denorm16") F(denorm32, "denorm32") F(denorm64, "denorm64")      \
  /* Division is rounded correctly. */                                         \
  F(div32, "div32") F(div64, "div64")                                          \
  /* Subgroup operations on integers of 8, 16 and 64 bits, and on f16. */      \
  F(extendedTypes, "extendedtypes")                                            \
  F(f16, "f16") F(f64, "f64")                                                  \
  /* Atomic additions in buffers. */                                           \
  F(fadd32, "fadd32") F(fadd64, "fadd64")                                      \
  /* Fma of GLSL rounds once. */                                               \
  F(fma32, "fma32") F(fma64, "fma64")                                          \
  F(fullSubgroups, "fullsubgroups")                                            \
  F(i16, "i16")                                                                \
  F(i64Atomics, "i64atomics")                                                  \
  F(i8, "i8")                                                                  \
  /* The Vulkan memory model, with the scope of the device. */                 \
  F(memoryModel, "memorymodel")                                                \
  /* Zeros have signs, inf and NaN count, if an execution mode asks for it. */ \
  F(nan16, "nan16") F(nan32, "nan32") F(nan64, "nan64")                        \
  /* Threads of a subgroup come together again where SPIR-V says that branches   \
     and loops end. */                                                         \
  F(reconvergence, "reconvergence")                                            \
  /* Rounding to nearest even can be asked for. */                             \
  F(rte16, "rte16") F(rte32, "rte32") F(rte64, "rte64")                        \
  /* Atomic operations in the memory of a block. */                            \
  F(sharedFadd32, "sharedfadd32") F(sharedFadd64, "sharedfadd64")              \
  F(sharedI64Atomics, "sharedi64atomics")                                      \
  F(shuffle, "shuffle")                                                        \
  F(shuffleRelative, "shufflerelative")                                        \
  F(sqrt32, "sqrt32") F(sqrt64, "sqrt64")                                      \
  /* Loads and stores of so many bits in buffers. */                           \
  F(storage16, "storage16") F(storage8, "storage8")                            \
  F(vote, "vote")                                                              \
  /* Subgroups are warps of 32 threads, of which a block may have several. */  \
  F(warps, "warps")

// What drivers do wrong, and code for them avoids.
#define COSTATE_VULKAN_DEFECTS(F)                                              \
  /* The bits of an f64 that has just been made are exchanged. */              \
  F(crashesOnExchangedF64, "crashesonexchangedf64")                            \
  /* All loops of a thread together make 65535 iterations at most. Then they   \
     end, whatever their conditions say. */                                    \
  F(endsLongLoops, "endslongloops")                                            \
  /* Integers of 64 bits are divided. */                                       \
  F(miscompilesI64Division, "miscompilesi64division")                          \
  /* A minimum of three numbers of 32 bits, one of them negated. */            \
  F(miscompilesNegatedMinimum, "miscompilesnegatedminimum")                    \
  /* Memory of a thread or a block is accessed at a sum of numbers. */         \
  F(miscompilesPlaceSums, "miscompilesplacesums")                              \
  /* Saturated sums and differences of 64 bits. */                             \
  F(miscompilesSaturation, "miscompilessaturation")                            \
  /* What is sign-extended from 32 to 64 bits is compared. */                  \
  F(miscompilesSignExtension, "miscompilessignextension")                      \
  /* An f32 that becomes an f16 and an f32 again is not rounded. */            \
  F(skipsHalfRounding, "skipshalfrounding")
// clang-format on

struct VulkanFeatures {
  int major = 1, minor = 2;
  int subgroup = 32; ///< lanes of every subgroup
#define COSTATE_VULKAN_MEMBER(member, text) bool member = false;
  COSTATE_VULKAN_FEATURES(COSTATE_VULKAN_MEMBER)
  COSTATE_VULKAN_DEFECTS(COSTATE_VULKAN_MEMBER)
#undef COSTATE_VULKAN_MEMBER

  bool operator==(const VulkanFeatures &) const = default;

  /// All features and no defect, with Vulkan 1.3.
  static VulkanFeatures everything() {
    VulkanFeatures features;
    features.minor = 3;
#define COSTATE_VULKAN_ON(member, text) features.member = true;
    COSTATE_VULKAN_FEATURES(COSTATE_VULKAN_ON)
#undef COSTATE_VULKAN_ON
    return features;
  }

  /// Threads of the largest block: without warps it is one, whose lanes wait
  /// for each other as a block.
  int largestBlock() const { return warps ? 1024 : 32; }
  /// Whether subgroups can be warps.
  bool canHaveWarps() const {
    return subgroup == 32 && arithmetic && shuffleRelative && fullSubgroups &&
           reconvergence;
  }
  /// Lanes that are together can add up what they add to one element.
  bool gathers() const {
    return reconvergence && arithmetic && vote && fadd32 && fadd64 &&
           !endsLongLoops;
  }
};

inline GpuShape shapeOf(const VulkanFeatures &features) {
  return {
      .hasWarps = features.warps, .waitsForEnded = true, .knowsPlaces = true};
}

/// Always the same for the same features.
inline std::string vulkanChip(const VulkanFeatures &features) {
  std::string text = "vulkan" + std::to_string(features.major) + "." +
                     std::to_string(features.minor) +
                     ";subgroup=" + std::to_string(features.subgroup);
#define COSTATE_VULKAN_PRINT(member, name)                                     \
  if (features.member)                                                         \
    text += ";" name;
  COSTATE_VULKAN_FEATURES(COSTATE_VULKAN_PRINT)
  COSTATE_VULKAN_DEFECTS(COSTATE_VULKAN_PRINT)
#undef COSTATE_VULKAN_PRINT
  return text;
}

namespace detail {

/// Takes `start` and the number after it off `text`.
inline bool takeNumber(std::string_view &text, std::string_view start,
                       int &number) {
  if (!text.starts_with(start))
    return false;
  text.remove_prefix(start.size());
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc();
}

/// Whether `name` is one of a feature, or of a defect, which is then there.
inline bool setFeature(VulkanFeatures &features, std::string_view name,
                       bool value) {
#define COSTATE_VULKAN_SET(member, text)                                       \
  if (name == text) {                                                          \
    features.member = value;                                                   \
    return true;                                                               \
  }
  COSTATE_VULKAN_FEATURES(COSTATE_VULKAN_SET)
#undef COSTATE_VULKAN_SET
#define COSTATE_VULKAN_SET(member, text)                                       \
  if (name == text)                                                            \
    return features.member = true;
  COSTATE_VULKAN_DEFECTS(COSTATE_VULKAN_SET)
#undef COSTATE_VULKAN_SET
  return false;
}

/// Sets all of `names`, as `warps;f16`; whether they are names of features.
inline bool setFeatures(VulkanFeatures &features, std::string_view names,
                        bool value) {
  while (true) {
    size_t end = std::min(names.find(';'), names.size());
    if (!setFeature(features, names.substr(0, end), value))
      return false;
    if (end == names.size())
      return true;
    names.remove_prefix(end + 1);
  }
}

} // namespace detail

/// What `vulkanChip` has printed; none for anything else. Features may come in
/// any order.
inline std::optional<VulkanFeatures> parseVulkanChip(std::string_view text) {
  VulkanFeatures features;
  if (!detail::takeNumber(text, "vulkan", features.major) ||
      !detail::takeNumber(text, ".", features.minor) ||
      !detail::takeNumber(text, ";subgroup=", features.subgroup))
    return std::nullopt;
  if (features.subgroup < 1)
    return std::nullopt;
  if (text.empty())
    return features;
  if (text.front() != ';' ||
      !detail::setFeatures(features, text.substr(1), true))
    return std::nullopt;
  return features;
}

/// What drivers for GPUs of Apple document, on GPUs with Metal 3: MoltenVK 1.4
/// (user guide, and the features and properties that it fills in) and Mesa's
/// KosmicKrisp. How they round quotients, roots and fma is measured.
struct VulkanProfile {
  std::string_view name, chip;
};
inline constexpr VulkanProfile vulkanProfiles[] = {
    {"kosmickrisp",
     "vulkan1.3;subgroup=32;ballot;div32;extendedtypes;fma32;fullsubgroups;i16;"
     "memorymodel;reconvergence;shuffle;shufflerelative;sqrt32;storage16;"
     "storage8;vote"},
    {"moltenvk",
     "vulkan1.3;subgroup=32;arithmetic;ballot;div32;extendedtypes;f16;fadd32;"
     "fma32;fullsubgroups;i16;i8;memorymodel;nan16;nan32;reconvergence;rte16;"
     "rte32;sharedfadd32;shuffle;shufflerelative;sqrt32;storage16;storage8;"
     "vote;warps"},
};

/// What a device would be if its driver had the features of a profile only,
/// and with `;f64` behind the name, f64 too, with the atomic operations of 64
/// bits that additions of it are made of; none if nothing has that name.
inline std::optional<VulkanFeatures> limitedTo(VulkanFeatures features,
                                               std::string_view name) {
  constexpr std::string_view ending = ";f64";
  bool hasF64 = name.ends_with(ending);
  if (hasF64)
    name.remove_suffix(ending.size());
  for (const VulkanProfile &profile : vulkanProfiles) {
    if (profile.name != name)
      continue;
    VulkanFeatures most = *parseVulkanChip(profile.chip);
    most.f64 = most.div64 = most.fma64 = most.sqrt64 = hasF64;
    most.i64Atomics = most.sharedI64Atomics = hasF64;
    features.minor = std::min(features.minor, most.minor);
#define COSTATE_VULKAN_LIMIT(member, text) features.member &= most.member;
    COSTATE_VULKAN_FEATURES(COSTATE_VULKAN_LIMIT)
#undef COSTATE_VULKAN_LIMIT
    features.warps &= features.canHaveWarps();
    return features;
  }
  return std::nullopt;
}

/// What is left without `names`, as `warps;f16`, and with the defects among
/// them; none if one of them is not the name of a feature or of such a defect.
inline std::optional<VulkanFeatures> without(VulkanFeatures features,
                                             std::string_view names) {
  bool endsLoops = features.endsLongLoops; // who counts loops has been decided
  if (!names.empty() && !detail::setFeatures(features, names, false))
    return std::nullopt;
  features.warps &= features.canHaveWarps();
  if (features.endsLongLoops != endsLoops)
    return std::nullopt;
  return features;
}

} // namespace costate
