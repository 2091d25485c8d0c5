/// Defects that validation must see, made on purpose.

#include "runtime/gpu/ValidatingDriver.h"

#include "runtime/simt/SimtDevice.h"

#include <gtest/gtest.h>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::gpu;

namespace {

void nothing(const uint64_t *, int64_t, int64_t, std::byte *) {}

class Validation : public testing::Test {
protected:
  void SetUp() override {
    driver = validating(simt::createDriver({}), [&](const std::string &text) {
      reports.push_back(text);
    });
    memory = *driver->allocate(64);
  }
  void TearDown() override {
    if (memory)
      driver->release(memory);
    driver = nullptr;
    EXPECT_EQ(reports, std::vector<std::string>());
  }

  static void expectDefect(const Result<> &result, const std::string &part) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::Internal);
    EXPECT_EQ(result.error().text.find("validation: "), 0u);
    EXPECT_NE(result.error().text.find(part), std::string::npos)
        << result.error().text;
  }
  static void expectFine(const Result<> &result) {
    EXPECT_TRUE(result.ok()) << result.error().text;
  }
  std::byte *released() {
    std::byte *address = *driver->allocate(64);
    driver->release(address);
    return address;
  }

  /// `nothing`, which is called with `count` words.
  std::shared_ptr<Module> load(int64_t count) {
    DeviceCode code;
    code.addresses["f"] = reinterpret_cast<void *>(nothing);
    code.functions.emplace_back().symbol = "f";
    code.functions[0].words = count;
    return *driver->load(code);
  }
  Result<> launch(const std::vector<uint64_t> &words, Grid grid = {1, 32},
                  size_t sharedBytes = 0) {
    auto module = load(firstOwnWord + 1);
    return driver->launch(*module, "f", grid, words, sharedBytes);
  }
  std::vector<uint64_t> words() {
    std::vector<uint64_t> words(firstOwnWord + 1);
    words[FrameWord] = reinterpret_cast<uint64_t>(memory);
    return words;
  }

  std::vector<std::string> reports;
  std::shared_ptr<Driver> driver;
  std::byte *memory = nullptr;
  uint64_t value = 0;
};

TEST_F(Validation, LetsPassWhatIsRight) {
  expectFine(driver->upload(memory + 56, &value, 8));
  expectFine(driver->download(&value, memory, 8));
  expectFine(driver->copy(memory, memory + 32, 32));
  expectFine(driver->copy(memory, memory + 4,
                          {{memory, 4, 8, 8}, {memory + 4, 4, 8, 8}}));
  expectFine(driver->fill(memory, 64, &value, 8));
  expectFine(driver->upload(nullptr, &value, 0));
  expectFine(launch(words()));
  driver->release(nullptr);
}

TEST_F(Validation, SeesRangesThatAreTooLarge) {
  expectDefect(driver->upload(memory + 60, &value, 8),
               "too near the end of the 64 bytes");
  expectDefect(driver->download(&value, memory + 64, 8), "not allocated");
  expectDefect(driver->copy(memory, memory + 32, 33), "a copy of 33 bytes");
  expectDefect(driver->copy(memory + 32, memory, 33), "a copy to 33 bytes");
  expectDefect(driver->copy(memory + 4, memory,
                            {{memory + 4, 8, 8, 8}, {memory, 8, 8, 7}}),
               "rows that overlap");
  expectDefect(driver->copy(memory + 5, memory,
                            {{memory + 5, 4, 8, 8}, {memory, 4, 8, 8}}),
               "a copy to 60 bytes");
  expectDefect(driver->copy(memory, memory + 5,
                            {{memory, 4, 8, 8}, {memory + 5, 4, 8, 8}}),
               "a copy of 60 bytes");
  expectDefect(driver->fill(memory, 72, &value, 8), "a fill of 72 bytes");
  expectDefect(driver->upload(memory - 8, &value, 8), "not allocated");
  expectDefect(driver->upload(memory, &value, SIZE_MAX), "too near the end");
}

TEST_F(Validation, SeesMemoryThatWasReleased) {
  std::byte *gone = released();
  expectDefect(driver->upload(gone + 8, &value, 8), "which were released");
  expectDefect(driver->download(&value, gone, 8), "which were released");
  expectDefect(driver->fill(gone, 8, &value, 8), "which were released");
  auto frame = words(), own = words();
  frame[FrameWord] = reinterpret_cast<uint64_t>(gone);
  expectDefect(launch(frame), "which were released");
  own[firstOwnWord] = reinterpret_cast<uint64_t>(gone + 63);
  expectDefect(launch(own), "which were released");
  own[firstOwnWord] = reinterpret_cast<uint64_t>(gone + 64);
  expectFine(launch(own));
}

TEST_F(Validation, SeesWrongReleases) {
  driver->release(memory + 8);
  expectDefect(driver->upload(memory, &value, 8), "in the middle of");
  expectFine(driver->upload(memory, &value, 8));
  driver->release(released());
  expectDefect(launch(words()), "which were released");
  EXPECT_EQ(reports.size(), 2u);
  reports.clear();
}

TEST_F(Validation, SeesLaunchesOfTheWrongForm) {
  std::vector<uint64_t> all = words();
  all.pop_back();
  expectDefect(launch(all), "words instead of");
  expectDefect(launch(words(), {1, 2000}), "blocks of 2000 threads");
  expectDefect(launch(words(), {1, 32}, size_t(1) << 30), "shared memory");
  auto module = load(0);
  expectDefect(driver->launch(*module, "g", {1, 32}, {}), "does not have");
  auto errors = words();
  errors[ErrorsWord] = 1234;
  expectDefect(launch(errors), "not allocated");
}

TEST_F(Validation, SeesPatternsThatDoNotFit) {
  expectDefect(driver->fill(memory + 4, 8, &value, 8), "8 bytes at a time");
  expectDefect(driver->fill(memory, 12, &value, 8), "8 bytes at a time");
}

TEST_F(Validation, SeesGraphsThatOutliveTheirMemory) {
  std::byte *other = *driver->allocate(64);
  auto all = words();
  all[firstOwnWord] = reinterpret_cast<uint64_t>(other);
  auto module = load(firstOwnWord + 1);
  expectFine(driver->beginCapture());
  expectFine(driver->launch(*module, "f", {1, 32}, all));
  Result<std::shared_ptr<Captured>> graph = driver->endCapture();
  ASSERT_TRUE(graph.ok());
  expectFine(driver->replay(**graph));
  driver->release(other);
  Result<> replayed = driver->replay(**graph);
  ASSERT_FALSE(replayed.ok());
  EXPECT_NE(replayed.error().text.find("which were released"),
            std::string::npos);
}

TEST_F(Validation, ReportsWhatIsNeverReleased) {
  (void)*driver->allocate(1000);
  driver->release(memory);
  memory = nullptr;
  driver = nullptr;
  EXPECT_EQ(reports, std::vector<std::string>{
                         "1 allocations of 1000 bytes were never released"});
  reports.clear();
}

TEST(ValidatedDevice, RefusesWhatWasReleasedAndReportsLeaks) {
  std::shared_ptr<Device> device = *openSimt(1, 1 << 20, {.validate = true});
  Buffer buffer = *device->allocate(64);
  device->release(buffer);
  uint64_t values[8] = {};
  Result<> done = device->upload(buffer, values);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Internal);
  (void)*device->allocate(100);
  testing::internal::CaptureStderr();
  device = nullptr;
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "costate: validation: 1 allocations of 100 bytes were never "
            "released\n");
}

} // namespace
