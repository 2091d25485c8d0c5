#pragma once
/// A program in Metal's language, compiled as C++ for this machine: for tests.

#include "base/Result.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace costate::runtime::metal {

class HostProgram {
public:
  /// Runs a C++ compiler: that of COSTATE_METAL_HOST_COMPILER, or clang++-22.
  static Result<std::shared_ptr<HostProgram>> compile(const std::string &text);
  ~HostProgram();
  HostProgram(const HostProgram &) = delete;

  /// What a thread of `kernel` calls, a simt::DeviceEntry; null: there is none.
  void *entry(const std::string &kernel) const;
  /// Of block memory, besides what launches ask for.
  size_t blockBytes() const { return ownBytes; }

private:
  HostProgram() = default;

  void *library = nullptr;
  std::map<std::string, void *> entries;
  size_t ownBytes = 0;
};

} // namespace costate::runtime::metal
