#include "cache/Archive.h"

#include <gtest/gtest.h>

namespace {

enum class Colour : uint8_t { Red, Green };

struct Leaf {
  std::string name;
  std::vector<bool> flags;
  const char *file = "";
};

struct Tree {
  Colour colour = Colour::Red;
  int64_t number = 0;
  bool flag = false;
  std::vector<Leaf> leaves;
  std::vector<std::vector<Tree>> blocks;
};

} // namespace

COSTATE_FIELDS(Leaf, name, flags, file);
COSTATE_FIELDS(Tree, colour, number, flag, leaves, blocks);

namespace costate::cache {
namespace {

Tree sample() {
  Tree leaf{Colour::Green, -7, true, {{"x", {true, false}, "a.cpp"}}, {}};
  Tree tree{
      Colour::Red, 1, false, {{"y", {}, "b.cpp"}, {"z", {}, "a.cpp"}}, {}};
  tree.blocks = {{leaf, leaf}, {}};
  return tree;
}

TEST(Archive, WhatIsReadIsWhatWasWritten) {
  std::string bytes = Writer()(sample(), 3, std::string("end")).take();
  Names names;
  Tree tree;
  int three = 0;
  std::string end;
  ASSERT_TRUE(Reader(bytes, &names)(tree, three, end).isComplete());
  EXPECT_EQ(three, 3);
  EXPECT_EQ(end, "end");
  ASSERT_EQ(tree.blocks.size(), 2u);
  EXPECT_EQ(tree.blocks[0][1].number, -7);
  EXPECT_EQ(tree.blocks[0][1].colour, Colour::Green);
  EXPECT_EQ(tree.blocks[0][1].leaves[0].flags, (std::vector{true, false}));
  EXPECT_STREQ(tree.leaves[0].file, "b.cpp");
  EXPECT_EQ(tree.leaves[1].file, tree.blocks[0][0].leaves[0].file);
  EXPECT_EQ(Writer()(tree, three, end).bytes(), bytes);
}

TEST(Archive, EqualNamesAtOtherAddressesGiveTheSameBytes) {
  std::string first = "a.cpp", second = "a.cpp";
  Leaf one{"x", {}, first.c_str()}, other{"x", {}, second.c_str()};
  EXPECT_EQ(Writer()(one, one).bytes(), Writer()(one, other).bytes());
}

TEST(Archive, LinesAreCountedFromAPlace) {
  auto places = [](uint32_t line) {
    return std::vector<Loc>{{"a.cpp", line + 3, 5},
                            {"b.cpp", 7, 1},
                            {"a.cpp", 0, 0},
                            {"a.cpp", line - 2, 1}};
  };
  auto bytes = [](const std::vector<Loc> &all, Loc origin) {
    return Writer(origin)(all).take();
  };
  Loc here("a.cpp", 10, 1), there("a.cpp", 90, 1), elsewhere("b.cpp", 10, 1);
  EXPECT_EQ(bytes(places(10), here), bytes(places(90), there));
  EXPECT_NE(bytes(places(10), here), bytes(places(90), here));
  EXPECT_NE(bytes(places(10), Loc()), bytes(places(90), Loc()));
  EXPECT_NE(bytes(places(10), elsewhere), bytes(places(90), elsewhere));
  std::string moved = bytes(places(10), here);
  std::vector<Loc> back;
  Names names;
  ASSERT_TRUE(Reader(moved, &names, there)(back).isComplete());
  ASSERT_EQ(back.size(), 4u);
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_STREQ(back[k].file, places(90)[k].file);
    EXPECT_EQ(back[k].line, places(90)[k].line);
    EXPECT_EQ(back[k].column, places(90)[k].column);
  }
}

TEST(Archive, EveryFieldCounts) {
  std::string bytes = Writer()(sample()).take();
  auto changed = [&](auto change) {
    Tree tree = sample();
    change(tree);
    return Writer()(tree).bytes() != bytes;
  };
  EXPECT_TRUE(changed([](Tree &t) { t.colour = Colour::Green; }));
  EXPECT_TRUE(changed([](Tree &t) { t.number = 2; }));
  EXPECT_TRUE(changed([](Tree &t) { t.flag = true; }));
  EXPECT_TRUE(changed([](Tree &t) { t.leaves[0].file = "c.cpp"; }));
  EXPECT_TRUE(changed([](Tree &t) { t.leaves[0].name = ""; }));
  EXPECT_TRUE(changed([](Tree &t) { std::swap(t.blocks[0], t.blocks[1]); }));
  EXPECT_TRUE(
      changed([](Tree &t) { t.blocks[0][0].leaves[0].flags[1] = true; }));
}

TEST(Archive, WhatEndsEarlyOrLateIsNotComplete) {
  std::string bytes = Writer()(sample()).take();
  for (size_t size = 0; size < bytes.size(); ++size) {
    Tree tree;
    EXPECT_FALSE(
        Reader(std::string_view(bytes).substr(0, size))(tree).isComplete());
  }
  Tree tree;
  EXPECT_FALSE(Reader(bytes + '\0')(tree).isComplete());
}

TEST(Archive, ChangedBytesDoNoHarm) {
  std::string bytes = Writer()(sample()).take();
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      Tree tree;
      (void)Reader(damaged)(tree).isComplete();
    }
}

} // namespace
} // namespace costate::cache
