#include "code/KernelCode.h"

#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

using namespace costate::runtime;

namespace {

std::vector<uint16_t> ordered(const std::vector<int32_t> &lengths) {
  std::vector<uint16_t> places(lengths.size());
  costate_order_by_length(lengths.data(), static_cast<int64_t>(lengths.size()),
                          places.data());
  return places;
}

bool differ(const std::vector<int32_t> &lengths, int64_t lanes, int64_t idle) {
  return costate_lengths_differ(lengths.data(),
                                static_cast<int64_t>(lengths.size()), lanes,
                                idle) != 0;
}

} // namespace

TEST(Lengths, TheLongestComeFirstAndEachOnce) {
  std::mt19937 random(7);
  for (int32_t most : {0, 1, 200, 255, 256, 5000, 1 << 25}) {
    std::vector<int32_t> lengths(1024);
    for (int32_t &length : lengths)
      length =
          static_cast<int32_t>(random() % (static_cast<uint32_t>(most) + 1));
    std::vector<uint16_t> places = ordered(lengths);
    EXPECT_EQ(std::set<uint16_t>(places.begin(), places.end()).size(), 1024u);
    for (size_t k = 1; k < places.size(); ++k)
      EXPECT_LE(lengths[places[k]] - lengths[places[k - 1]], most / 128);
  }
}

TEST(Lengths, ThoseThatAreEqualStayAsTheyAre) {
  EXPECT_EQ(ordered({3, 9, 3, 9, 3}), (std::vector<uint16_t>{1, 3, 0, 2, 4}));
  EXPECT_TRUE(ordered({}).empty());
}

TEST(Lengths, DifferIfLanesWait) {
  std::vector<int32_t> lengths(64, 10);
  EXPECT_FALSE(differ(lengths, 8, 0));
  for (size_t k = 0; k < 64; k += 8)
    lengths[k] = 50; // 35 idle iterations each
  EXPECT_TRUE(differ(lengths, 8, 34));
  EXPECT_FALSE(differ(lengths, 8, 35));
  EXPECT_FALSE(differ(lengths, 64, 0)) << "one vector waits all the same";
}
