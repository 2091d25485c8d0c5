#include "runtime/Region.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace costate::runtime;

static const std::vector<int64_t> extents = {5, 4, 6};

static IndexSet randomIndices(std::mt19937 &random, int64_t extent) {
  if (random() % 3 == 0)
    return IndexSet(0, extent);
  std::vector<int64_t> indices;
  for (size_t count = random() % 4; count-- > 0;)
    indices.push_back(static_cast<int64_t>(random() % 9) - 1);
  return IndexSet::of(indices, extent);
}

static Box randomBox(std::mt19937 &random) {
  Box box;
  for (int64_t extent : extents)
    box.dims.push_back(randomIndices(random, extent));
  return box;
}

static std::vector<int64_t> elementsOf(const Box &box) {
  std::vector<int64_t> elements;
  forEachRuns(box, extents, [&](const Runs &runs) {
    for (int64_t run = 0; run < runs.count; ++run)
      for (int64_t k = 0; k < runs.length; ++k)
        elements.push_back(runs.first + run * runs.pitch + k);
  });
  std::ranges::sort(elements);
  return elements;
}

/// Fails if an element is in two boxes.
static std::set<int64_t> elementsOf(const Region &region) {
  std::set<int64_t> elements;
  for (const Box &box : region.boxes())
    for (int64_t element : elementsOf(box))
      EXPECT_TRUE(elements.insert(element).second);
  EXPECT_EQ(static_cast<int64_t>(elements.size()), region.size());
  return elements;
}

TEST(Region, RunsVisitEachElementOfABoxOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Box box = randomBox(random);
    std::vector<int64_t> expected;
    auto contains = [](const IndexSet &set, int64_t index) {
      return std::ranges::any_of(set.intervals(), [&](auto part) {
        return part.begin <= index && index < part.end;
      });
    };
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 4; ++j)
        for (int64_t k = 0; k < 6; ++k)
          if (contains(box.dims[0], i) && contains(box.dims[1], j) &&
              contains(box.dims[2], k))
            expected.push_back((i * 4 + j) * 6 + k);
    EXPECT_EQ(elementsOf(box), expected) << boxText(box);
    EXPECT_EQ(box.size(), static_cast<int64_t>(expected.size()));
  }
}

TEST(Region, BoxesKnowWhatTheyContain) {
  std::mt19937 random(4);
  int contained = 0;
  for (int round = 0; round < 20000; ++round) {
    Box outer = randomBox(random), inner = randomBox(random);
    const bool expected =
        std::ranges::includes(elementsOf(outer), elementsOf(inner));
    EXPECT_EQ(contains(outer, inner), expected)
        << boxText(outer) << " " << boxText(inner);
    contained += expected && !inner.empty();
  }
  EXPECT_GT(contained, 100);
}

TEST(Region, IsASetOfElements) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    Region region;
    std::set<int64_t> model;
    for (int step = 0; step < 12; ++step) {
      Box box = randomBox(random);
      std::vector<int64_t> elements = elementsOf(box);
      std::set<int64_t> inBox;
      for (int64_t element : elements)
        if (model.contains(element))
          inBox.insert(element);
      EXPECT_EQ(region.meets(box), !inBox.empty());
      EXPECT_EQ(elementsOf(region.within(box)), inBox);
      if (random() % 2) {
        region.add(box);
        model.insert(elements.begin(), elements.end());
      } else {
        region.remove(box);
        for (int64_t element : elements)
          model.erase(element);
      }
      ASSERT_EQ(elementsOf(region), model);
      EXPECT_EQ(region.empty(), model.empty());
    }
  }
}

TEST(Region, StepsThroughTimeStayOneBox) {
  for (size_t dim : {0, 1}) {
    Region region;
    for (int64_t t = 0; t < 1000; ++t) {
      Box box = Box::whole({1000, 1000});
      box.dims[dim] = IndexSet(t, t + 1);
      region.add(box);
      EXPECT_EQ(region.boxes().size(), 1u);
    }
    EXPECT_EQ(region.size(), 1000000);
  }
}

/// Takes minutes if each step looks at all that is there.
TEST(Region, HoldsManyElementsThatAreApart) {
  std::mt19937 random(5);
  constexpr int64_t extent = 1000;
  auto element = [&](int64_t position) {
    Box box;
    box.dims.emplace_back(position / extent, position / extent + 1);
    box.dims.emplace_back(position % extent, position % extent + 1);
    return box;
  };
  std::set<int64_t> model;
  Region region;
  while (model.size() < 100000) {
    auto position = static_cast<int64_t>(random() % (extent * extent));
    EXPECT_EQ(region.meets(element(position)), model.contains(position));
    region.add(element(position));
    model.insert(position);
  }
  EXPECT_EQ(region.size(), 100000);
  for (int64_t position : model) {
    EXPECT_EQ(region.within(element(position)).size(), 1);
    region.remove(element(position));
  }
  EXPECT_TRUE(region.empty());
}

using Indices = std::vector<int64_t>;

/// All runs of the elements with these indices; none: all of a dimension.
static std::vector<Indices> runsOf(const Indices &extents,
                                   const std::vector<Indices> &indices) {
  Box box = Box::whole(extents);
  for (size_t dim = 0; dim < extents.size(); ++dim)
    if (!indices[dim].empty())
      box.dims[dim] = IndexSet::of(indices[dim], extents[dim]);
  std::vector<Indices> all;
  forEachRuns(box, extents, [&](const Runs &runs) {
    all.push_back({runs.first, runs.length, runs.count, runs.pitch});
  });
  return all;
}

TEST(Region, WholeSlicesAreOneRun) {
  std::vector<Indices> one = {{3 * 600, 2 * 600, 1, 2 * 600}};
  EXPECT_EQ(runsOf({10, 20, 30}, {{3, 4}, {}, {}}), one);
  Box box = Box::whole({10, 20, 30});
  box.dims[0] = IndexSet(3, 5);
  EXPECT_EQ(boxText(box), "[3:5, 0:20, 0:30]");
}

TEST(Region, RunsAtAConstantDistanceAreOneGroup) {
  using Groups = std::vector<Indices>;
  EXPECT_EQ(runsOf({1000, 2}, {{}, {1}}), (Groups{{1, 1, 1000, 2}}));
  EXPECT_EQ(runsOf({1000, 3}, {{}, {1, 2}}), (Groups{{1, 2, 1000, 3}}));
  EXPECT_EQ(runsOf({20, 30, 3}, {{}, {}, {1}}), (Groups{{1, 1, 600, 3}}));
  EXPECT_EQ(runsOf({20, 3, 2}, {{}, {2}, {1}}), (Groups{{5, 1, 20, 6}}));
  EXPECT_EQ(runsOf({20, 3, 2}, {{}, {2}, {}}), (Groups{{4, 2, 20, 6}}));
  EXPECT_EQ(runsOf({8}, {{1, 3, 5, 7}}), (Groups{{1, 1, 4, 2}}));
  EXPECT_EQ(runsOf({8, 5}, {{1, 4, 7}, {}}), (Groups{{5, 5, 3, 15}}));
  EXPECT_EQ(runsOf({9, 2}, {{1, 3, 5}, {0}}), (Groups{{2, 1, 3, 4}}));
  EXPECT_EQ(runsOf({50, 4}, {{}, {0, 2}}), (Groups{{0, 1, 100, 2}}));
}

TEST(Region, TheLongestDimensionIsTheOneThatIsCopiedAtOnce) {
  using Groups = std::vector<Indices>;
  EXPECT_EQ(runsOf({1000, 3}, {{}, {0, 2}}),
            (Groups{{0, 1, 1000, 3}, {2, 1, 1000, 3}}));
  EXPECT_EQ(runsOf({2, 1000, 2, 2}, {{}, {1, 2, 3, 4}, {}, {1}}),
            (Groups{{5, 1, 8, 2}, {4005, 1, 8, 2}}));
  EXPECT_EQ(runsOf({1000, 4}, {{}, {0, 1, 3}}),
            (Groups{{0, 2, 1000, 4}, {3, 1, 1000, 4}}));
}

TEST(Region, KnowsTheElementWithoutIndex) {
  Box box = Box::whole({});
  EXPECT_EQ(box.size(), 1);
  Region region(box);
  EXPECT_TRUE(region.meets(box));
  EXPECT_EQ(runsOf({}, {}), std::vector<Indices>({{0, 1, 1, 1}}));
  region.remove(box);
  EXPECT_TRUE(region.empty());
  EXPECT_TRUE(Region(Box::whole({3, 0})).empty());
}
