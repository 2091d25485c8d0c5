/// HIP by a library that is none (FakeHip.h), and by Debian's, which has the
/// names of version 5.2. What neither shows: that a GPU does what it is asked.

#include "runtime/hip/HipDriver.h"

#include "runtime/hip/FakeHip.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::hip;

namespace {

class HipRuntime : public testing::Test {
protected:
  std::shared_ptr<gpu::Driver> open() {
    auto driver = openHip(fake.api(), 0);
    EXPECT_TRUE(driver.ok()) << driver.error().text;
    return driver ? *driver : nullptr;
  }
  /// Why it cannot be opened.
  std::string refusal(int ordinal = 0) {
    auto driver = openHip(fake.api(), ordinal);
    if (driver)
      return "opened";
    EXPECT_EQ(driver.error().code, ErrorCode::NoDevice);
    return driver.error().text;
  }
  void expectRefusal(const std::string &words) {
    std::string text = refusal();
    EXPECT_NE(text.find(words), text.npos) << text;
  }
  std::shared_ptr<gpu::Module> load(gpu::Driver &driver) {
    fake.kernels["f$kernel"].body = [this](std::span<const uint64_t> words) {
      seen.assign(words.begin(), words.end());
    };
    auto module = driver.load({.image = ElfHead().text()});
    EXPECT_TRUE(module.ok()) << module.error().text;
    return module ? *module : nullptr;
  }
  static void expectFailure(const Result<> &result, ErrorCode code,
                            const std::string &words) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, code);
    EXPECT_NE(result.error().text.find(words), std::string::npos)
        << result.error().text;
  }

  FakeHip fake;
  std::vector<uint64_t> seen;
};

} // namespace

TEST_F(HipRuntime, TellsWhatTheGpuHas) {
  auto driver = open();
  const gpu::Properties &gpu = driver->properties();
  EXPECT_EQ(gpu.chip, "gfx942");
  EXPECT_EQ(gpu.shape.lanes, 64);
  EXPECT_EQ(gpu.memory, size_t(1) << 30);
  EXPECT_EQ(gpu.residentThreads, 64 * 64);
  EXPECT_EQ(gpu.sharedPerBlock, size_t(64) << 10);
  EXPECT_EQ(gpu.sharedPerMultiprocessor, size_t(64) << 10);
  EXPECT_EQ(gpu.mostBlocks, UINT32_MAX / 1024);
  EXPECT_EQ(gpu.blockThreads, 1024);
}

TEST_F(HipRuntime, FindsTheChipWhereverItStands) {
  for (size_t place : {396, 1160, 1161, 4000}) {
    fake.chipPlace = place;
    EXPECT_EQ(open()->properties().chip, "gfx942");
  }
  fake.chip = "gfx1100";
  fake.lanes = 32;
  fake.missing = {"hipGetDevicePropertiesR0600"};
  ASSERT_TRUE(fake.load().ok());
  EXPECT_EQ(open()->properties().chip, "gfx1100");
  EXPECT_EQ(open()->properties().shape.lanes, 32);
}

TEST(HipChips, AreWholeTexts) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(chipIn("gfx942"), "gfx942");
  EXPECT_EQ(chipIn("a gfx card\0..gfx90a:sramecc+:xnack-\0gfx9"sv),
            "gfx90a:sramecc+:xnack-");
  EXPECT_EQ(chipIn("gfx 1100\0x"sv), "");
  EXPECT_EQ(chipIn("gfx:\0gfx12g\0"sv), "");
  EXPECT_EQ(chipIn(""), "");
}

TEST_F(HipRuntime, DevicesThatCannotBeUsedSayWhy) {
  fake.lanes = 32;
  expectRefusal("has 64 lanes in a warp, the device says 32");
  fake.chip = "gfx803";
  expectRefusal("no code is made for its chip, gfx803");
  fake.chip = "";
  expectRefusal("HIP does not say which chip it is");
  fake.failing["properties"] = 999;
  expectRefusal("HIP does not say which chip it is");
  fake.failing = {{"deviceMemory", 999}};
  expectRefusal("the GPU does not answer: hipErrorFake (a fake error)");
  fake.failing = {{"deviceCount", 999}};
  expectRefusal("HIP lists no GPU: hipErrorFake");
  fake.failing.clear();
  EXPECT_NE(refusal(1).find("there is no AMD GPU number 1: this machine has 1"),
            std::string::npos);
}

TEST_F(HipRuntime, AMachineWithoutGpusIsToldWhatToLookAt) {
  for (Status said : {noDevice, invalidDevice}) { // the second one by HIP 5.2
    fake.failing["init"] = said;
    Result<> done = initialise(fake.api());
    expectFailure(done, ErrorCode::NoDevice,
                  "HIP finds no GPU that it may use");
    expectFailure(done, ErrorCode::NoDevice, "/dev/kfd");
  }
  fake.failing["init"] = 999;
  expectFailure(initialise(fake.api()), ErrorCode::NoDevice,
                "HIP does not start: hipErrorFake (a fake error); rocminfo");
}

TEST_F(HipRuntime, OldVersionsLackWhatIsNamed) {
  for (const Symbol &symbol : usedSymbols()) {
    fake.missing = {symbol.name};
    Result<> found = fake.load();
    EXPECT_EQ(found.ok(), symbol.isOptional) << symbol.name;
    if (!found)
      expectFailure(found, ErrorCode::NoDevice,
                    std::string("HIP is too old: it has no ") + symbol.name +
                        "; update ROCm");
  }
  fake.missing = {"hipGetDevicePropertiesR0600", "hipGetDeviceProperties"};
  expectFailure(fake.load(), ErrorCode::NoDevice, "hipGetDeviceProperties");
}

TEST_F(HipRuntime, OldVersionsAllocateWithoutPools) {
  for (const Symbol &symbol : usedSymbols())
    if (symbol.isOptional)
      fake.missing.insert(symbol.name);
  EXPECT_EQ(fake.missing.size(), 9u);
  ASSERT_TRUE(fake.load().ok());
  auto driver = open();
  std::byte *memory = *driver->allocate(80);
  EXPECT_EQ(fake.calls["allocate"], 1u);
  driver->release(memory);
  EXPECT_EQ(fake.calls["free"], 1u);
  EXPECT_EQ(fake.liveAllocations(), 0u);
  expectFailure(driver->giveToGraph(std::make_shared<int>(1)),
                ErrorCode::Internal, "keep memory for a graph: hipErrorFake");
  fake.failing["attribute"] = invalidValue;
  EXPECT_EQ(refusal().find("the GPU does not answer"), 0u);
}

TEST_F(HipRuntime, OtherDevicesOfTheUserStayCurrent) {
  fake.current = 3;
  {
    auto driver = open();
    auto module = load(*driver);
    std::byte *memory = *driver->allocate(80);
    double value = 1.5;
    EXPECT_TRUE(driver->fill(memory, 80, &value, 8).ok());
    EXPECT_TRUE(driver->launch(*module, "f", {1, 64}, {}).ok());
    EXPECT_TRUE(driver->synchronize().ok());
    driver->release(memory);
    EXPECT_FALSE(driver->launch(*module, "g", {1, 64}, {}).ok());
  }
  EXPECT_EQ(fake.current, 3);
  EXPECT_EQ(fake.onWrongDevice, 0u);
}

TEST_F(HipRuntime, ErrorsAreNotLeftToOthers) {
  fake.memory = 1 << 20;
  auto driver = open();
  auto module = load(*driver);
  EXPECT_FALSE(driver->allocate(fake.memory).ok() &&
               driver->allocate(1024).ok());
  EXPECT_EQ(fake.lastError, success);
  EXPECT_FALSE(driver->launch(*module, "g", {1, 64}, {}).ok());
  EXPECT_EQ(fake.lastError, success);
  std::vector<std::byte> data(size_t(40) << 20); // asks whether slots are free
  std::byte *memory = *driver->allocateHost(data.size());
  EXPECT_TRUE(driver->upload(memory, data.data(), data.size()).ok());
  EXPECT_GT(fake.calls["queryEvent"], 0u);
  EXPECT_EQ(fake.lastError, success);
  driver->releaseHost(memory);
}

TEST_F(HipRuntime, NothingIsOpenedHalf) {
  for (const char *function : {"createStream", "createPool", "setPool"}) {
    fake.failing = {{function, 999}};
    std::string text = refusal();
    EXPECT_NE(text.find("hipErrorFake"), text.npos) << text;
    EXPECT_EQ(fake.liveStreams(), 0u);
  }
}

TEST_F(HipRuntime, LaunchesPassWordsAsTheyAre) {
  auto driver = open();
  auto module = load(*driver);
  uint64_t words[] = {5, 7, 9};
  ASSERT_TRUE(driver->launch(*module, "f", {3, 256}, words, 100).ok());
  ASSERT_TRUE(driver->synchronize().ok());
  EXPECT_EQ(seen, (std::vector<uint64_t>{5, 7, 9}));
  EXPECT_EQ(fake.kernels["f$kernel"].shared, 100u);
  EXPECT_EQ(fake.kernels["f$kernel"].limitChanges, 0);
  const int64_t most = driver->properties().mostBlocks;
  EXPECT_TRUE(driver->launch(*module, "f", {most, 1024}, words).ok());
  expectFailure(driver->launch(*module, "f", {most + 1, 32}, words),
                ErrorCode::Internal, "run `f` in so many blocks");
  EXPECT_FALSE(driver->launch(*module, "f", {1, 64}, words, 65 << 10).ok());
}

TEST_F(HipRuntime, WordsOfEightBytesAreFilledByCopies) {
  auto driver = open();
  for (size_t count : {1, 2, 3, 1000}) {
    std::byte *memory = *driver->allocate(8 * count);
    double value = 1.1;
    size_t before = fake.copies;
    ASSERT_TRUE(driver->fill(memory, 8 * count, &value, 8).ok());
    EXPECT_EQ(fake.copies - before, size_t(std::bit_width(count - 1)));
    std::vector<double> back(count);
    ASSERT_TRUE(driver->download(back.data(), memory, 8 * count).ok());
    EXPECT_EQ(back, std::vector<double>(count, value));
    driver->release(memory);
  }
  EXPECT_EQ(driver->counters().copies, 0u);
}

TEST_F(HipRuntime, CodeThatIsNoneIsAnErrorByName) {
  auto driver = open();
  auto failed = [&](const std::string &image) {
    auto module = driver->load({.image = image});
    return module ? Result<>() : module.error();
  };
  expectFailure(failed(std::string(100, 'x')), ErrorCode::Internal,
                "load code for gfx942: hipErrorFake (a fake error)");
  ElfHead other;
  other.chip = 0x41; // gfx1100
  expectFailure(failed(other.text()), ErrorCode::Internal,
                "load code for gfx942: hipErrorNoBinaryForGpu");
  EXPECT_EQ(fake.lastError, success);
}

TEST_F(HipRuntime, ImagesStayWhileTheirCodeIsLoaded) {
  auto driver = open();
  auto module = load(*driver);
  std::string other(sizeof(ElfHead), 'x'); // in the place of what was let go of
  EXPECT_EQ(std::memcmp(fake.lastImage, ElfHead().magic, 4), 0);
}

TEST_F(HipRuntime, WhatStopsTheGpuIsTold) {
  auto driver = open();
  fake.failing["waitForStream"] = illegalAddress;
  expectFailure(driver->synchronize(), ErrorCode::KernelFailed,
                "a kernel has failed on the GPU: hipErrorFake");
  fake.failing.clear();
}

TEST_F(HipRuntime, MemoryThatIsNotThereIsOutOfMemory) {
  fake.memory = 1 << 20;
  auto driver = open();
  for (size_t bytes : {fake.memory + 1, SIZE_MAX}) {
    auto memory = driver->allocate(bytes);
    expectFailure(memory ? Result<>() : memory.error(), ErrorCode::OutOfMemory,
                  "do not fit");
  }
  fake.failing["allocateHost"] = outOfMemory;
  auto pinned = driver->allocateHost(80);
  expectFailure(pinned ? Result<>() : pinned.error(), ErrorCode::OutOfMemory,
                "allocate memory of the host");
  fake.failing.clear();
}

//===-- The library -------------------------------------------------------===//

TEST(HipLibrary, HasAllThatIsUsedOrItIsOptional) {
  void *library = nullptr;
  for (const char *name :
       {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"})
    if (!library)
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    GTEST_SKIP() << "this machine has no libamdhip64";
  for (const Symbol &symbol : usedSymbols())
    EXPECT_TRUE(symbol.isOptional || dlsym(library, symbol.name))
        << symbol.name;
  HipApi api;
  Result<> found =
      findAll([=](const char *name) { return dlsym(library, name); }, api);
  EXPECT_TRUE(found.ok()) << found.error().text;
}

TEST(HipLibrary, WithoutGpusThereIsNoDevice) {
  auto driver = openHip(0);
  if (driver)
    GTEST_SKIP() << "this machine has an AMD GPU";
  EXPECT_EQ(driver.error().code, ErrorCode::NoDevice);
  const std::string &text = driver.error().text;
  EXPECT_TRUE(text.starts_with("there is no HIP on this machine") ||
              text.starts_with("HIP finds no GPU that it may use"))
      << text;
  EXPECT_EQ(openHip(0).error().text, text);
}
