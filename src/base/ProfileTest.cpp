#include "base/Profile.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

namespace costate::profile {
namespace {

/// A moment that is known.
class At final : public Moment {
public:
  explicit At(int64_t at) : at(at) {}
  int64_t nanoseconds() override { return at; }

private:
  const int64_t at;
};

class Profiles : public testing::Test {
protected:
  std::shared_ptr<Keeper> start(const std::string &name = "") {
    auto keeper = Keeper::start(name.empty() ? "" : file(name));
    EXPECT_TRUE(keeper.ok()) << keeper.error().text;
    return *keeper;
  }
  std::string file(const std::string &name) const {
    return (folder.path / name).string();
  }
  std::string textOf(const std::string &name) const {
    std::stringstream text;
    text << std::ifstream(file(name)).rdbuf();
    return text.str();
  }
  static bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  }

  test::TemporaryFolder folder;
};

TEST_F(Profiles, DescribeNothingWhileNobodyKeepsOne) {
  bool isDescribed = false;
  Timed timed([&] {
    isDescribed = true;
    return Span{Kind::Work, "unseen"};
  });
  EXPECT_FALSE(isOn());
  EXPECT_FALSE(isDescribed);
}

TEST_F(Profiles, AddUpSpansOfOneNameAndPlace) {
  auto keeper = start();
  int64_t begin = now();
  add({Kind::Launch, "swing", "a.cpp:3"}, begin, begin + 10);
  add({Kind::Launch, "swing", "a.cpp:3"}, begin + 20, begin + 50);
  add({Kind::Copy, "upload", "", 8}, begin, begin + 5);
  std::vector<Total> totals = keeper->totals();
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].span.name, "swing");
  EXPECT_EQ(totals[0].count, 2u);
  EXPECT_EQ(totals[0].all, 40);
  EXPECT_EQ(totals[0].least, 10);
  EXPECT_EQ(totals[0].most, 30);
}

TEST_F(Profiles, EndWithTheirKeeper) {
  {
    auto keeper = start();
    auto other = start();
    EXPECT_TRUE(keeper->end().ok());
    EXPECT_TRUE(isOn());
    add({Kind::Work, "late"}, now(), now());
    EXPECT_TRUE(keeper->totals().empty());
    EXPECT_EQ(other->totals().size(), 1u);
  }
  EXPECT_FALSE(isOn());
}

TEST_F(Profiles, WriteOneEventForEachSpan) {
  auto keeper = start("spans.json");
  int64_t begin = now() + 1000;
  add({Kind::Copy, "up \"to\" C:\\\n", "", 8}, begin, begin + 1234567);
  std::thread([&] { add({Kind::Work, "other"}, begin, begin); }).join();
  EXPECT_TRUE(keeper->end().ok());
  std::string text = textOf("spans.json");
  EXPECT_TRUE(
      contains(text, R"("name":"up \"to\" C:\\\u000a","cat":"copy","ph":"X")"))
      << text;
  EXPECT_TRUE(
      contains(text, R"("dur":1234.567,"pid":1,"tid":1,"args":{"bytes":8}})"))
      << text;
  EXPECT_TRUE(contains(text, R"("dur":0.000,"pid":1,"tid":2,"args":{}})"))
      << text;
  EXPECT_EQ(text.front(), '[');
  EXPECT_EQ(text.substr(text.size() - 3), "\n]\n");
}

TEST_F(Profiles, GiveEachDeviceARowOfItsOwn) {
  auto keeper = start("devices.json");
  int64_t begin = now();
  add({Kind::Device, "swing"}, "GPU", std::make_shared<At>(begin),
      std::make_shared<At>(begin + 5));
  EXPECT_EQ(keeper->totals().size(), 1u);
  EXPECT_TRUE(keeper->end().ok());
  std::string text = textOf("devices.json");
  EXPECT_TRUE(contains(
      text,
      R"("name":"process_name","ph":"M","pid":2,"tid":1,"args":{"name":"GPU"})"))
      << text;
  EXPECT_TRUE(contains(text, R"("dur":0.005,"pid":2)")) << text;
}

TEST_F(Profiles, WriteAsTheyGo) {
  auto keeper = start("long.json");
  for (int k = 0; k < 2000; ++k)
    add({Kind::Work, "step"}, now(), now());
  EXPECT_GT(textOf("long.json").size(), size_t(1) << 16);
}

TEST_F(Profiles, NameTheFileThatCannotBeWritten) {
  auto keeper = Keeper::start(file("nowhere/spans.json"));
  ASSERT_FALSE(keeper.ok());
  EXPECT_EQ(keeper.error().code, ErrorCode::BadFile);
  EXPECT_TRUE(contains(keeper.error().text, "nowhere/spans.json"));
  EXPECT_FALSE(isOn());
}

} // namespace
} // namespace costate::profile
