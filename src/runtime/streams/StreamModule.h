#pragma once
/// Code that a driver has loaded.

#include "runtime/streams/Session.h"

#include <unordered_map>

namespace costate::runtime::streams {

class StreamModule final : public gpu::Module {
public:
  /// `image` is what `code` was loaded from, if the driver goes on reading it.
  StreamModule(std::shared_ptr<Session> session, Code code,
               std::shared_ptr<const std::string> image = nullptr)
      : code(code), image(std::move(image)), session(std::move(session)) {}
  ~StreamModule() override;

  /// A kernel that may ask for `sharedBytes`.
  Result<Function> find(const std::string &symbol, size_t sharedBytes);

  const Code code;

private:
  struct Found {
    Function function = nullptr;
    /// That it may ask for: of CUDA without a word 48 KiB, less what it has by
    /// itself.
    size_t sharedBytes = 0;
  };
  Result<> allowShared(const std::string &symbol, Found &kernel, size_t bytes);

  const std::shared_ptr<const std::string> image;
  std::shared_ptr<Session> session;
  std::mutex mutex;
  bool isUsed = false; ///< by what may be queued
  std::unordered_map<std::string, Found> found;
};

} // namespace costate::runtime::streams
