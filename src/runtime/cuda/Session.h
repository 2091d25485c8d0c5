#pragma once
/// One stream of one GPU, and what every call to CUDA needs.

#include "runtime/Counters.h"
#include "runtime/cuda/CudaApi.h"

#include <memory>

namespace costate::runtime::cuda {

/// Shared by a driver and its modules, whoever dies last.
class Session {
public:
  /// Takes `device` for good if it returns a session; NoDevice.
  static Result<std::shared_ptr<Session>> open(const Api &api,
                                               DeviceNumber device);
  ~Session();
  Session(const Session &) = delete;

  const Api &api() const { return functions; }

  /// Calls `function` of the API with the context of the GPU current, and puts
  /// the caller's own back.
  template <class... Params, class... Arguments>
  Status call(Status (*function)(Params...), Arguments... arguments) const {
    if (Status status = functions.pushContext(context))
      return status;
    Status status = function(arguments...);
    Context ours = nullptr;
    functions.popContext(&ours);
    return status;
  }

  /// As a failure, where `doing` completes "the GPU fails to".
  Result<> result(Status status, const std::string &doing) const;
  Failure failure(Status status, const std::string &doing) const;

  /// Calls `append(stream)`.
  template <class Append> Status withStream(const Append &append) {
    return append(queue);
  }

  /// Appends to the stream: calls `function(arguments..., stream)`.
  template <class... Params, class... Arguments>
  Status enqueue(Status (*function)(Params...), Arguments... arguments) {
    return withStream(
        [&](Stream stream) { return call(function, arguments..., stream); });
  }

  /// For all that is queued.
  Status wait() {
    ++counters.synchronizations;
    return call(functions.waitForStream, queue);
  }
  Status waitFor(Event event) {
    ++counters.synchronizations;
    return call(functions.waitForEvent, event);
  }

  Counters counters;

private:
  Session(const Api &api, DeviceNumber device, Context context)
      : functions(api), device(device), context(context) {}

  const Api &functions;
  DeviceNumber device;
  Context context;
  Stream queue = nullptr;
};

} // namespace costate::runtime::cuda
