/// What the host keeps of memory of a device.

#include "runtime/HostCopies.h"
#include "runtime/conformance/OnDevice.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace costate;
using namespace costate::runtime;

namespace {

using Words = std::vector<uint64_t>;

void check(const Result<> &result) {
  ASSERT_TRUE(result.ok()) << result.error().text;
}

class HostCopiesOf : public conformance::OnDevice {
protected:
  void SetUp() override { open(size_t(256) << 20); }
  void TearDown() override {
    for (Buffer buffer : buffers)
      device->release(buffer);
  }
  void open(size_t limit) {
    OnDevice::open(limit);
    if (IsSkipped() || HasFatalFailure())
      return;
    copies = device->hostCopies();
    if (!copies)
      GTEST_SKIP() << "its memory is that of the host";
  }
  Buffer make(size_t words) {
    buffers.push_back(*device->allocate(8 * words));
    return buffers.back();
  }
  Words read(Buffer buffer) {
    Words words(buffer.bytes / 8);
    check(device->download(words.data(), buffer));
    return words;
  }
  void fill(Buffer buffer, uint64_t value) {
    check(device->fill(buffer, &value, 8));
  }
  /// Counts up by launches, so that these are under way.
  void add(Buffer buffer, uint64_t value) {
    std::vector<uint64_t> slots =
        conformance::affineArguments(buffer, 1, value);
    ASSERT_TRUE(
        device->launch({&conformance::affine(GetParam()), slots, {}}).ok());
  }

  HostCopies *copies = nullptr;
  std::vector<Buffer> buffers;
};

/// In words; the last ones are divided.
constexpr size_t sizes[] = {1, 100, 8192, 8193, 50'000, 300'000, 5'000'000};

} // namespace

TEST_P(HostCopiesOf, HoldWhatWasThere) {
  for (size_t words : sizes) {
    Buffer array = make(words);
    fill(array, 3);
    Buffer kept = *copies->borrow(array.bytes);
    const Rows all(array);
    check(copies->save(kept, {&all, 1}));
    add(array, 4);
    ASSERT_EQ(read(array), Words(words, 7)) << words;
    check(copies->load({&all, 1}, kept));
    add(array, 10);
    ASSERT_EQ(read(array), Words(words, 13)) << words;
    copies->giveBack(kept);
  }
}

/// Rows of two parts of an array, the second one of a single row.
TEST_P(HostCopiesOf, TakeRows) {
  for (size_t width : {3, 700, 100'000}) {
    const size_t count = 40, pitch = width + 5;
    Buffer array = make(count * pitch + width);
    Words first(array.bytes / 8);
    std::iota(first.begin(), first.end(), 1);
    check(device->upload(array, first.data()));
    const Rows rows[] = {
        Rows(array.address, 8 * width, count, 8 * pitch),
        Rows(array.address + 8 * count * pitch, 8 * width, 1, 8 * width)};
    Buffer kept = *copies->borrow(8 * width * (count + 1));
    check(copies->save(kept, rows));
    fill(array, 0);
    check(copies->load(rows, kept));
    Words expected = first;
    for (size_t row = 0; row < count; ++row)
      std::fill_n(expected.begin() + static_cast<long>(row * pitch + width), 5,
                  0);
    ASSERT_EQ(read(array), expected) << width;
    copies->giveBack(kept);
  }
}

/// What is given back is borrowed again while copies of it are under way.
TEST_P(HostCopiesOf, KeepTheirOrder) {
  std::mt19937 random(3);
  std::vector<Buffer> arrays;
  std::vector<uint64_t> now;
  for (size_t words : sizes)
    if (words < 1'000'000)
      arrays.push_back(make(words)), now.push_back(0);
  struct Kept {
    Buffer buffer;
    size_t array;
    uint64_t value;
  };
  std::vector<Kept> kept;
  for (int step = 0; step < 600; ++step) {
    size_t k = random() % arrays.size();
    const Rows all(arrays[k]);
    size_t which = kept.empty() ? 0 : random() % kept.size();
    switch (random() % 5) {
    case 0:
      add(arrays[k], 5), now[k] += 5;
      break;
    case 1:
      fill(arrays[k], now[k] = random() % 1000);
      break;
    case 2:
      kept.push_back({*copies->borrow(arrays[k].bytes), k, now[k]});
      check(copies->save(kept.back().buffer, {&all, 1}));
      break;
    case 3:
      if (!kept.empty()) {
        const Rows back(arrays[kept[which].array]);
        check(copies->load({&back, 1}, kept[which].buffer));
        now[kept[which].array] = kept[which].value;
      }
      break;
    default:
      if (kept.size() > 4) {
        copies->giveBack(kept[which].buffer);
        kept.erase(kept.begin() + static_cast<long>(which));
      }
    }
    if (step % 97 == 0)
      copies->trim();
    if (step % 29 == 0) {
      ASSERT_EQ(read(arrays[k]), Words(arrays[k].bytes / 8, now[k])) << step;
    }
  }
  for (size_t k = 0; k < arrays.size(); ++k)
    ASSERT_EQ(read(arrays[k]), Words(arrays[k].bytes / 8, now[k])) << k;
  for (const Kept &one : kept)
    copies->giveBack(one.buffer);
}

/// Then copies wait among launches.
TEST_P(HostCopiesOf, NeedNoMemoryOfTheDevice) {
  open(size_t(2) << 20);
  constexpr size_t words = 200'000;
  Buffer array = make(words);
  const Rows all(array);
  std::vector<Buffer> kept;
  for (uint64_t k = 0; k < 6; ++k) {
    fill(array, k);
    kept.push_back(*copies->borrow(array.bytes));
    check(copies->save(kept.back(), {&all, 1}));
    EXPECT_LE(device->memory().current, size_t(2) << 20);
  }
  for (uint64_t k = 0; k < 6; ++k) {
    check(copies->load({&all, 1}, kept[k]));
    ASSERT_EQ(read(array), Words(words, k));
    copies->giveBack(kept[k]);
  }
}

/// Some copies go beside launches, and some among them.
TEST_P(HostCopiesOf, TakeTheMemoryThatIsThere) {
  open(size_t(5) << 20);
  constexpr size_t words = 200'000;
  Buffer array = make(words);
  const Rows all(array);
  for (uint64_t k = 0; k < 40; ++k) {
    fill(array, k);
    Buffer kept = *copies->borrow(array.bytes);
    check(copies->save(kept, {&all, 1}));
    if (k % 3) {
      fill(array, 99);
      check(copies->load({&all, 1}, kept));
      ASSERT_EQ(read(array), Words(words, k));
    }
    copies->giveBack(kept);
  }
}

TEST_P(HostCopiesOf, LeaveNoMemoryOfTheDeviceInUse) {
  Buffer array = make(100'000);
  const size_t before = device->memory().current;
  const Rows all(array);
  Buffer kept = *copies->borrow(array.bytes);
  check(copies->save(kept, {&all, 1}));
  copies->giveBack(kept);
  copies->trim();
  EXPECT_EQ(device->memory().current, before);
}

/// Nobody waits for them.
TEST_P(HostCopiesOf, DoNotMakeTheHostWait) {
  Buffer array = make(100'000);
  const Rows all(array);
  Buffer kept = *copies->borrow(array.bytes);
  fill(array, 1);
  const uint64_t before = device->statistics().synchronizations;
  check(copies->save(kept, {&all, 1}));
  fill(array, 2);
  check(copies->load({&all, 1}, kept));
  EXPECT_EQ(device->statistics().synchronizations, before);
  ASSERT_EQ(read(array), Words(100'000, 1));
  copies->giveBack(kept);
}

INSTANTIATE_TEST_SUITE_P(Devices, HostCopiesOf,
                         testing::ValuesIn(conformance::names()),
                         [](const auto &info) { return info.param; });
