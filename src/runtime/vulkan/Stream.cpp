#include "runtime/vulkan/Stream.h"

#include <algorithm>
#include <chrono>

namespace costate::runtime::vulkan {

/// Of one submission.
static constexpr size_t mostCommands = 256;
static constexpr size_t mostArgumentBytes = size_t(256) << 10;
/// Submissions that wait; more work waits for the first of them.
static constexpr size_t mostRunning = 16;
/// From one submission to the next, while the device is faster than the host.
static constexpr std::chrono::microseconds pause{20};
/// Before a thread is put to sleep.
static constexpr std::chrono::microseconds spinning{30};

Result<std::unique_ptr<Stream>> Stream::open(std::shared_ptr<Session> session,
                                             std::shared_ptr<Pool> arguments) {
  std::unique_ptr<Stream> stream(
      new Stream(std::move(session), std::move(arguments)));
  if (Status status = stream->createSemaphore())
    return stream->session->failure(status, "make a semaphore");
  stream->submitter = std::jthread([self = stream.get()](std::stop_token stop) {
    self->submitWhenIdle(stop);
  });
  return stream;
}

Status Stream::createSemaphore() {
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  return session->api().vkCreateSemaphore(session->device(), &info, nullptr,
                                          &semaphore);
}

Stream::~Stream() {
  ForeignWork work;
  (void)wait();
  submitter.request_stop();
  changed.notify_all();
  submitter.join();
  const Api &api = session->api();
  api.vkDeviceWaitIdle(session->device());
  recorded.reset();
  running.clear();
  spare.clear();
  api.vkDestroySemaphore(session->device(), semaphore, nullptr);
}

//===-- Recording ---------------------------------------------------------===//

Status Stream::beginWork() {
  if (!recorded) {
    if (Status status = recycle())
      return status;
    if (spare.empty())
      spare.push_back(std::make_unique<Commands>(session, arguments));
    if (Status status = spare.back()->begin())
      return status;
    recorded = std::move(spare.back());
    spare.pop_back();
  }
  recorded->wait();
  return VK_SUCCESS;
}

Status Stream::endWork() {
  bool isFull = recorded->count() >= mostCommands ||
                recorded->argumentBytes() >= mostArgumentBytes;
  bool isIdle = reached() == submitted &&
                std::chrono::steady_clock::now() > lastSubmit + pause;
  if (isFull || isIdle)
    return submit();
  changed.notify_one();
  return VK_SUCCESS;
}

Status Stream::submit() {
  if (!recorded)
    return VK_SUCCESS;
  if (Status status = recorded->end())
    return session->note(status);
  Moment end = submitted + 1;
  VkTimelineSemaphoreSubmitInfo values{
      VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &end;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  VkCommandBuffer buffer = recorded->handle();
  info.commandBufferCount = 1;
  info.pCommandBuffers = &buffer;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  Status status = session->withQueue([&](VkQueue queue) {
    return session->api().vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE);
  });
  if (status) {
    recorded.reset();
    return status;
  }
  running.push_back({std::move(recorded), end});
  submitted = end;
  lastSubmit = std::chrono::steady_clock::now();
  return VK_SUCCESS;
}

/// How far the device has come.
Moment Stream::reached() {
  if (done == submitted)
    return done;
  uint64_t value = 0;
  Status status = session->note(session->api().vkGetSemaphoreCounterValue(
      session->device(), semaphore, &value));
  return done = status ? done : value;
}

/// Commands that have run can be used again.
Status Stream::recycle() {
  if (running.size() >= mostRunning)
    if (Status status = waitUnlocked(running.front().end))
      return status;
  Moment here = reached();
  while (!running.empty() && running.front().end <= here) {
    running.front().commands->clear();
    spare.push_back(std::move(running.front().commands));
    running.pop_front();
  }
  return VK_SUCCESS;
}

//===-- Waiting -----------------------------------------------------------===//

// A child has what its parent knew. The submitter may have had the mutex at the
// fork, and nobody gives it back there.

Moment Stream::now() {
  if (isForked())
    return submitted;
  std::lock_guard lock(mutex);
  return submitted + (recorded ? 1 : 0);
}

bool Stream::isDone(Moment moment) {
  if (isForked())
    return moment <= done;
  std::lock_guard lock(mutex);
  return moment <= reached();
}

Status Stream::waitFor(Moment moment) {
  if (session->isLost())
    return VK_ERROR_DEVICE_LOST;
  {
    std::lock_guard lock(mutex);
    if (moment > submitted)
      if (Status status = submit())
        return status;
  }
  return waitUnlocked(moment);
}

/// What is submitted.
Status Stream::waitUnlocked(Moment moment) {
  const Api &api = session->api();
  auto until = std::chrono::steady_clock::now() + spinning;
  for (uint64_t value = 0; !session->adapter().isCpu;) {
    if (Status status = session->note(api.vkGetSemaphoreCounterValue(
            session->device(), semaphore, &value)))
      return status;
    if (value >= moment)
      return VK_SUCCESS;
    if (std::chrono::steady_clock::now() > until)
      break;
  }
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &moment;
  return session->note(
      api.vkWaitSemaphores(session->device(), &info, UINT64_MAX));
}

/// On a thread of its own.
void Stream::submitWhenIdle(std::stop_token stopped) {
  std::unique_lock lock(mutex);
  while (changed.wait(lock, stopped, [&] { return recorded != nullptr; })) {
    Moment before = submitted;
    lock.unlock();
    Status status = waitUnlocked(before);
    lock.lock();
    if (status || stopped.stop_requested())
      return; // whoever comes next will be told
    if (submitted == before && recorded)
      (void)submit();
  }
}

/// Nothing more is submitted behind the back of the thread that ends the
/// process. Drivers of GPUs end work that is under way; those for the CPU do it
/// with what is destroyed.
bool Stream::endsBefore(EndWait::Moment end) {
  if (isForked())
    return true;
  submitter.request_stop();
  std::lock_guard lock(mutex);
  if (!session->adapter().isCpu || session->isLost())
    return true;
  auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
      end - std::chrono::steady_clock::now());
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &submitted;
  return session->api().vkWaitSemaphores(
             session->device(), &info,
             static_cast<uint64_t>(std::max<int64_t>(left.count(), 0))) !=
         VK_TIMEOUT;
}

//===-- Capturing ---------------------------------------------------------===//

Status Stream::beginCapture() {
  auto kept = std::make_shared<Commands>(session, arguments, true);
  if (Status status = kept->begin())
    return session->note(status);
  captured = std::move(kept);
  capturedCount.reset();
  capturer = std::this_thread::get_id();
  return VK_SUCCESS;
}

Status Stream::endCapture(std::shared_ptr<Commands> &kept) {
  capturer = std::thread::id();
  kept = std::move(captured);
  return session->note(kept->end());
}

} // namespace costate::runtime::vulkan
