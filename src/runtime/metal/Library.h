#pragma once
/// Code that is loaded: text, and pipelines as they are needed.

#include "code/DeviceCode.h"
#include "runtime/gpu/Driver.h"
#include "runtime/metal/ObjectiveC.h"

#include <map>
#include <mutex>

namespace costate::runtime::metal {

class Library final : public gpu::Module {
public:
  /// Compiles the text of `code`.
  static Result<std::shared_ptr<Library>> load(const Api &api, Object device,
                                               const gpu::DeviceCode &code);

  /// Null together with the failure.
  Result<Object> pipeline(const std::string &symbol, int blockThreads);
  /// Of block memory, besides what launches ask for.
  size_t blockBytes() const { return ownBytes; }

private:
  Library(const Api &api, Object device) : api(api), device(device) {}
  Result<Owned> make(const std::string &symbol, int blockThreads);

  const Api &api;
  const Object device;
  Owned library;
  size_t ownBytes = 0;
  std::mutex mutex;
  std::map<std::pair<std::string, int>, Owned> pipelines;
};

} // namespace costate::runtime::metal
