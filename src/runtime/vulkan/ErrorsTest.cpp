#include "runtime/vulkan/VulkanGpu.h"

#include "runtime/vulkan/Adapter.h"

#include <atomic>
#include <chrono>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::vulkan;

namespace {

TEST_F(VulkanGpu, WhatIsNoCodeIsAnError) {
  for (const std::string &text : {std::string(), std::string("nonsense"),
                                  image().substr(0, 401), "\n" + image()}) {
    Result<std::shared_ptr<gpu::Module>> module = driver->load({.image = text});
    ASSERT_FALSE(module.ok());
    EXPECT_EQ(module.error().code, ErrorCode::Internal);
  }
  expectWorking();
}

TEST_F(VulkanGpu, AKernelThatIsNotThereIsAnError) {
  Result<> launched = driver->launch(*load(), "other", {1, 32}, {});
  ASSERT_FALSE(launched.ok());
  EXPECT_NE(launched.error().text.find("`other`"), std::string::npos);
  expectWorking();
}

TEST_F(VulkanGpu, AGridThatIsTooLargeIsAnError) {
  std::shared_ptr<gpu::Module> module = load();
  uint64_t words[3] = {};
  auto threads = driver->properties().blockThreads;
  for (gpu::Grid grid :
       {gpu::Grid{1, 2 * threads}, gpu::Grid{int64_t(1) << 40, 32}}) {
    Result<> launched = driver->launch(*module, "add", grid, words);
    ASSERT_FALSE(launched.ok());
    EXPECT_EQ(launched.error().code, ErrorCode::Internal);
    EXPECT_NE(launched.error().text.find("`add`"), std::string::npos);
    expectWorking();
  }
}

TEST_F(VulkanGpu, ThereAreNoStreamsOfTheUser) {
  int stream = 0;
  EXPECT_EQ(driver->useStream(&stream).error().code, ErrorCode::BadArgument);
  check(driver->useStream(std::nullopt));
}

VkResult lose(VkQueue, uint32_t, const VkSubmitInfo *, VkFence) {
  return VK_ERROR_DEVICE_LOST;
}

TEST_F(VulkanGpu, ALostDeviceIsAnErrorAndNoCrash) {
  driver = nullptr;
  open({.change = [](Api &api) { api.vkQueueSubmit = lose; }});
  std::byte *memory = allocate(8);
  uint64_t zero = 0;
  (void)driver->upload(memory, &zero, 8);
  Result<> done = driver->synchronize();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::KernelFailed);
  EXPECT_NE(done.error().text.find("VK_ERROR_DEVICE_LOST"), std::string::npos);
  EXPECT_NE(done.error().text.find("opened again"), std::string::npos);
  for (const Result<> &again :
       {driver->fill(memory, 8, &zero, 8), driver->download(&zero, memory, 8),
        driver->copy(memory, memory, 8), driver->synchronize()})
    EXPECT_EQ(again.error().code, ErrorCode::KernelFailed);
  EXPECT_EQ(driver->allocate(8).error().code, ErrorCode::KernelFailed);
  EXPECT_EQ(driver->load({.image = image()}).error().code,
            ErrorCode::KernelFailed);
  driver = nullptr;
  open({});
  expectWorking();
}

/// Of a child that uses the driver of its parent: 0 if all fails as it should.
int statusOfChild(std::shared_ptr<gpu::Driver> &driver, std::byte *memory) {
  pid_t child = fork();
  if (child == 0) {
    alarm(30); // better killed than waited for
    uint64_t zero = 0;
    bool fine = openVulkan("").error().code == ErrorCode::NoDevice;
    for (const Result<> &refused :
         {driver->fill(memory, 8, &zero, 8), driver->synchronize(),
          driver->download(&zero, memory, 8)})
      fine &= !refused && refused.error().code == ErrorCode::NoDevice;
    driver = nullptr;
    _exit(fine ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_F(VulkanGpu, AChildOfTheProcessIsToldThatItHasNone) {
  std::byte *memory = allocate(8);
  uint64_t zero = 0;
  check(driver->upload(memory, &zero, 8));
  EXPECT_EQ(statusOfChild(driver, memory), 0);
  expectWorking();
}

std::atomic<bool> maySubmit = true, isSubmitting = false;
PFN_vkQueueSubmit realSubmit = nullptr;

VkResult submitLater(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                     VkFence fence) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  isSubmitting = !maySubmit;
  while (!maySubmit && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  return realSubmit(queue, count, infos, fence);
}

/// By a thread of the parent, which has locked what the child uses.
TEST_F(VulkanGpu, AChildIsToldSoWhileWorkIsBeingSubmitted) {
  driver = nullptr;
  open({.change = [](Api &api) {
    realSubmit = std::exchange(api.vkQueueSubmit, submitLater);
  }});
  std::byte *memory = allocate(8);
  uint64_t zero = 0;
  std::shared_ptr<gpu::Module> module = load();
  spin(*module, memory);
  maySubmit = false;
  check(driver->fill(memory, 8, &zero, 8)); // after a busy device
  while (!isSubmitting)
    std::this_thread::yield();
  EXPECT_EQ(statusOfChild(driver, memory), 0);
  maySubmit = true;
  expectWorking();
  driver->release(memory);
}

} // namespace
