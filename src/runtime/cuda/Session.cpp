#include "runtime/cuda/Session.h"

#include <mutex>

namespace costate::runtime::cuda {

Result<std::shared_ptr<Session>> Session::open(const Api &api,
                                               DeviceNumber device) {
  Context context = nullptr;
  Status status = api.retainContext(&context, device);
  if (status == success) {
    std::shared_ptr<Session> session(new Session(api, device, context));
    status = session->call(api.createStream, &session->own, blockingStream);
    session->queue = session->own;
    if (status == success)
      return session;
  }
  return Failure{ErrorCode::NoDevice,
                 "the GPU cannot be opened: " + statusText(api, status) +
                     "; see nvidia-smi, or choose another device"};
}

Session::~Session() {
  if (switched)
    (void)call(functions.destroyEvent, switched);
  for (Stream stream : {own, captureQueue})
    if (stream)
      (void)call(functions.destroyStream, stream);
  functions.releaseContext(device);
}

Status Session::beginCapture() {
  if (!captureQueue)
    if (Status status =
            call(functions.createStream, &captureQueue, nonBlockingStream))
      return status;
  Status status =
      call(functions.beginCapture, captureQueue, CaptureMode::ThreadLocal);
  captured.reset();
  if (status == success)
    capturer = std::this_thread::get_id();
  return status;
}

Status Session::endCapture(GraphHandle &graph) {
  capturer = std::thread::id();
  return call(functions.endCapture, captureQueue, &graph);
}

Status Session::refuseCaptured(Stream stream) {
  CaptureStatus captured = CaptureStatus::None;
  if (Status status = call(functions.captureStatus, stream, &captured))
    return status;
  return captured == CaptureStatus::None ? success : captureUnsupported;
}

Status Session::order(Stream next) {
  if (next == queue)
    return success;
  for (Stream stream : {queue, next})
    if (stream != own)
      if (Status status = refuseCaptured(stream))
        return status;
  if (!switched)
    if (Status status =
            call(functions.createEvent, &switched, eventWithoutTime))
      return status;
  Status status = call(functions.recordEvent, switched, queue);
  return status ? status : call(functions.streamWaitsFor, next, switched, 0u);
}

Status Session::useStream(std::optional<Stream> stream) {
  std::unique_lock lock(switching);
  Stream next = stream.value_or(own);
  Status status = order(next);
  if (status == success)
    queue = next;
  return status;
}

Status Session::letWait(Stream stream) {
  std::unique_lock lock(switching);
  return order(stream);
}

Result<> Session::result(Status status, const std::string &doing) const {
  if (status == success)
    return {};
  return failure(status, doing);
}

static bool hasStopped(Status status) {
  return status == illegalAddress || status == launchTimeout ||
         status == deviceAssert ||
         (status >= firstOfLaunch && status <= lastOfLaunch);
}

Failure Session::failure(Status status, const std::string &doing) const {
  std::string text = statusText(functions, status);
  if (hasStopped(status))
    return {ErrorCode::KernelFailed,
            "a kernel has failed on the GPU: " + text +
                "; what its arrays hold is lost, and a restart of the program "
                "may be needed before the GPU can be used again (`debug` in "
                "KernelOptions finds indices out of range)"};
  if (status == captureUnsupported)
    return {ErrorCode::CannotCapture,
            "somebody captures the stream that the device works on, and would "
            "miss what the device does besides launching; let the device "
            "capture a graph of its own (Device::capture), or go back to its "
            "own stream before (use_own_stream)"};
  if (status == outOfMemory)
    return {ErrorCode::OutOfMemory,
            "the GPU has no memory left to " + doing + "; release arrays"};
  return {ErrorCode::Internal, "the GPU fails to " + doing + ": " + text};
}

} // namespace costate::runtime::cuda
