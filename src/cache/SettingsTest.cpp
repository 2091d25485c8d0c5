#include "cache/Settings.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

namespace costate::cache {
namespace {

/// The environment as it was, when a test is over.
class CacheSettings : public testing::Test {
protected:
  CacheSettings() {
    for (const char *name : {"COSTATE_CACHE", "COSTATE_CACHE_DIR",
                             "COSTATE_CACHE_SIZE", "XDG_CACHE_HOME", "HOME"}) {
      const char *value = std::getenv(name);
      before[name] = value ? value : "";
      unsetenv(name);
    }
  }
  ~CacheSettings() {
    for (const auto &[name, value] : before)
      setenv(name.c_str(), value.c_str(), 1);
  }

  static std::string folder(const Settings &chosen = {}) {
    return settingsFor(chosen)->folder;
  }

private:
  std::map<std::string, std::string> before;
};

TEST_F(CacheSettings, TheFolderIsTheFirstThatSomebodyNames) {
  EXPECT_EQ(folder(), "");
  setenv("HOME", "/users/ada", 1);
  EXPECT_EQ(folder(), "/users/ada/.cache/costate");
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  EXPECT_EQ(folder(), "/users/ada/.cache/costate");
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(folder(), "/caches/costate");
  EXPECT_EQ(folder({.folder = "/chosen"}), "/chosen");
  setenv("COSTATE_CACHE_DIR", "/named", 1);
  EXPECT_EQ(folder({.folder = "/chosen"}), "/named");
  setenv("COSTATE_CACHE_DIR", "here", 1);
  EXPECT_EQ(folder(), std::filesystem::current_path() / "here");
}

TEST_F(CacheSettings, TheEnvironmentCanSwitchItOff) {
  EXPECT_TRUE(settingsFor({})->enabled);
  EXPECT_FALSE(settingsFor({.enabled = false})->enabled);
  setenv("COSTATE_CACHE", "1", 1);
  EXPECT_FALSE(settingsFor({.enabled = false})->enabled);
  EXPECT_TRUE(settingsFor({})->enabled);
  setenv("COSTATE_CACHE", "0", 1);
  EXPECT_FALSE(settingsFor({})->enabled);
}

TEST_F(CacheSettings, SizesHaveSuffixes) {
  EXPECT_EQ(settingsFor({})->limit, uint64_t(1) << 30);
  EXPECT_EQ(settingsFor({.limit = 5})->limit, 5u);
  setenv("COSTATE_CACHE_SIZE", "64m", 1);
  EXPECT_EQ(settingsFor({.limit = 5})->limit, uint64_t(64) << 20);
  setenv("COSTATE_CACHE_SIZE", "0", 1);
  EXPECT_FALSE(settingsFor({})->enabled);
  setenv("COSTATE_CACHE_SIZE", "much", 1);
  Result<Settings> none = settingsFor({});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::BadArgument);
  EXPECT_EQ(none.error().text,
            "COSTATE_CACHE_SIZE: `much` is no number of bytes; write one, with "
            "suffix k, m or g if you like, such as 512m");
}

} // namespace
} // namespace costate::cache
