#pragma once
/// Which targets code is made for. What they are called stays in their folders.

#include "base/Result.h"

#include <memory>
#include <span>
#include <string>

namespace costate::compiler {

class TargetBackend;

/// All chips, or devices with other features, that one API runs.
struct TargetKind {
  const char *targets; ///< for messages: `NVIDIA chips as sm_90`
  /// Of its device code, as tools call it: `ptx`. Null: it has no text.
  const char *language = nullptr;
  /// The chip that tools show code for.
  std::string (*usual)() = nullptr;
  /// Code in that language. Null: an image is text, or SPIR-V.
  Result<std::string> (*text)(const std::string &image) = nullptr;
  /// Null: `target` is of another kind.
  std::unique_ptr<TargetBackend> (*make)(const std::string &target);
};

/// In the order of Targets.def.
std::span<const TargetKind *const> targetKinds();

/// The one whose device code is written in `language`; null: there is none.
const TargetKind *kindWith(const std::string &language);
/// Whether `target` is one of `kind`.
bool isOf(const std::string &target, const TargetKind &kind);

/// Of `DeviceInfo::target`; Internal if nothing makes code for it.
Result<std::unique_ptr<TargetBackend>> findTarget(const std::string &target);

/// Whether ranges of `target` run on a GPU, or on the host as one.
bool runsOnGpu(const std::string &target);

} // namespace costate::compiler
