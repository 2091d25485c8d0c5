#pragma once
/// GPUs by way of Vulkan: code is a SPIR-V module, of which
/// `deviceSymbol(symbol)` is an entry point. A push constant holds the address
/// of the words of a launch; the specialisation constants 0 and 1 are the
/// threads of a block, and the words of 4 bytes that they share.

#include "runtime/gpu/Driver.h"

#include <functional>
#include <string_view>

struct VolkDeviceTable;

namespace costate::runtime::vulkan {

struct Adapter;

/// Keeps what the driver has assembled from one process to the next. Nothing is
/// kept without. `find` gives what was put, whole, or nothing: drivers do not
/// survive other bytes.
struct CodeStore {
  std::function<std::optional<std::string>(std::string_view key)> find = {};
  std::function<void(std::string_view key, std::string_view code)> put = {};
};

struct Options {
  /// Vulkan's validation layers look on: what they find fails the next
  /// `synchronize` or `download`.
  bool validate = false;
  bool isGpu = false; ///< drivers for the CPU will not do
  CodeStore store = {};
  /// Of tests: other functions in the place of some, and a smaller device.
  void (*change)(VolkDeviceTable &) = nullptr;
  void (*changeAdapter)(Adapter &) = nullptr;
};

/// `which`: empty for the fastest device, its number as Vulkan counts them, or
/// a part of its name. NoDevice says what is missing and what to do.
Result<std::shared_ptr<gpu::Driver>> openVulkan(const std::string &which,
                                                Options options = {});

} // namespace costate::runtime::vulkan
