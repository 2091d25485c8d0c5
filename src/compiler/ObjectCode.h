#pragma once
/// Compiled code before it is part of this process.

#include "base/Result.h"
#include "cache/Archive.h"
#include "code/KernelCode.h"

#include <optional>
#include <string>

namespace costate::compiler {

struct ObjectCode {
  /// Without an entry. Its places point to `files`.
  runtime::KernelCode code;
  std::shared_ptr<cache::Names> files = std::make_shared<cache::Names>();
  std::string symbol; ///< of the entry
  std::string object; ///< for the host
  /// What runs on a device; null for a CPU. Without addresses.
  std::shared_ptr<runtime::gpu::DeviceCode> device;
};

/// `origin`: the place of the kernel. Where it has moved within its file, the
/// places of the code move with it.
std::string bytesOf(const ObjectCode &object, Loc origin);
/// None if `bytes` are of something else, or of code that cannot move.
std::optional<ObjectCode> objectCodeOf(std::string_view bytes, Loc origin);

/// Makes `object` part of this process.
Result<runtime::KernelCode> link(ObjectCode object);

} // namespace costate::compiler
