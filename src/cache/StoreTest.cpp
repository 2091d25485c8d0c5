#include "cache/Store.h"

#include "TemporaryFolder.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace costate::cache {
namespace {

namespace fs = std::filesystem;

class CacheStore : public testing::Test {
protected:
  static constexpr uint64_t enough = 1 << 20;

  fs::path pathOf(const Key &key) const {
    return folder / (textOf(key) + ".code");
  }
  static void write(const fs::path &path, const std::string &bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  /// By the names of files.
  size_t count(const std::string &part) const {
    return std::count_if(fs::directory_iterator(folder),
                         fs::directory_iterator(),
                         [&](const fs::directory_entry &entry) {
                           return entry.path().filename().string().find(part) !=
                                  std::string::npos;
                         });
  }
  uint64_t blocks() const {
    uint64_t sum = 0;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".code")
        sum += (entry.file_size() + 4095) / 4096 * 4096;
    return sum;
  }
  /// When `key` was used last.
  void age(const Key &key, int seconds) {
    fs::last_write_time(pathOf(key), fs::file_time_type::clock::now() -
                                         std::chrono::seconds(seconds));
  }
  /// The exit status of a process that runs `body`.
  static int inProcess(const std::function<bool()> &body) {
    pid_t child = fork();
    if (child == 0)
      _exit(body() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  }

  test::TemporaryFolder temporary;
  fs::path folder = temporary.path / "a" / "b";
  Store store{folder, enough};
  const Key key = keyOf("key"), other = keyOf("other");
};

TEST_F(CacheStore, WhatWasPutIsFoundByAnybody) {
  EXPECT_EQ(store.find(key), std::nullopt);
  store.put(key, "value");
  store.put(other, "");
  EXPECT_EQ(store.find(key), "value");
  EXPECT_EQ(Store(folder, enough).find(key), "value");
  EXPECT_EQ(store.find(other), "");
  store.put(key, "new");
  EXPECT_EQ(store.find(key), "new");
  EXPECT_EQ(store.problem(), "");
}

TEST_F(CacheStore, KnowsTheBytesOfAllEntries) {
  EXPECT_EQ(Store(folder / "none", enough).bytes(), 0u);
  store.put(key, "value");
  Store(folder, enough).put(other, std::string(5000, 'x'));
  EXPECT_EQ(store.bytes(), 4096u + 8192u);
  store.clear();
  EXPECT_EQ(store.bytes(), 0u);
}

TEST_F(CacheStore, FilesAreForTheUserAlone) {
  store.put(key, "value");
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(pathOf(key)).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(count("tmp-"), 0u);
}

TEST_F(CacheStore, AFileThatEndsEarlyIsNotThere) {
  store.put(key, "some value");
  uint64_t whole = fs::file_size(pathOf(key));
  fs::resize_file(pathOf(key), whole + 1);
  EXPECT_EQ(store.find(key), std::nullopt);
  fs::resize_file(pathOf(key), whole);
  EXPECT_EQ(store.find(key), "some value");
  while (whole--) {
    fs::resize_file(pathOf(key), whole);
    EXPECT_EQ(store.find(key), std::nullopt) << whole;
  }
}

TEST_F(CacheStore, AFileWithAWrongBitIsNotThere) {
  store.put(key, "some value");
  std::fstream file(pathOf(key),
                    std::ios::in | std::ios::out | std::ios::binary);
  auto put = [&](uint64_t at, int byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte)).flush();
  };
  for (uint64_t at = 0; at < fs::file_size(pathOf(key)); ++at) {
    file.seekg(static_cast<std::streamoff>(at));
    int byte = file.get();
    for (int bit = 0; bit < 8; ++bit) {
      put(at, byte ^ (1 << bit));
      EXPECT_EQ(store.find(key), std::nullopt) << at << ":" << bit;
    }
    put(at, byte);
  }
  EXPECT_EQ(store.find(key), "some value");
  put(0, 'x');
  store.put(key, "replaced");
  EXPECT_EQ(store.find(key), "replaced");
}

TEST_F(CacheStore, AnEntryUnderAnotherNameIsNotThere) {
  store.put(key, "value");
  fs::copy_file(pathOf(key), pathOf(other));
  EXPECT_EQ(store.find(other), std::nullopt);
}

TEST_F(CacheStore, FilesOfOthersAreNotRead) {
  store.put(key, "value");
  chmod(pathOf(key).c_str(), 0620);
  EXPECT_EQ(store.find(key), std::nullopt);
  chmod(pathOf(key).c_str(), 0600);
  EXPECT_EQ(store.find(key), "value");
  if (chown(pathOf(key).c_str(), 12345, gid_t(-1)) == 0) { // as root may
    EXPECT_EQ(store.find(key), std::nullopt);
    store.put(key, "own");
    EXPECT_EQ(store.find(key), "own");
  }
}

TEST_F(CacheStore, WhatIsNoFileIsNotRead) {
  store.put(key, "value");
  fs::rename(pathOf(key), folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", pathOf(key));
  EXPECT_EQ(store.find(key), std::nullopt);
  fs::remove(pathOf(key));
  ASSERT_EQ(mkfifo(pathOf(key).c_str(), 0600), 0);
  EXPECT_EQ(store.find(key), std::nullopt);
  fs::remove(pathOf(key));
  fs::create_directory(pathOf(key));
  EXPECT_EQ(store.find(key), std::nullopt);
  store.put(key, "value");
  EXPECT_NE(store.problem(), "");
  EXPECT_EQ(count("tmp-"), 0u);
}

TEST_F(CacheStore, WhatWasUsedLastStays) {
  constexpr int all = 100, most = 16;
  Store small(folder, most * 4096);
  auto numbered = [](int k) { return keyOf(std::to_string(k)); };
  for (int k = 0; k < all; ++k) {
    small.put(numbered(k), std::string(3000, 'x'));
    EXPECT_LE(blocks(), uint64_t(most * 4096));
    age(numbered(k), all - k);
    EXPECT_TRUE(small.find(numbered(0))) << k; // is used all the time
  }
  EXPECT_TRUE(small.find(numbered(all - 1)));
  EXPECT_FALSE(small.find(numbered(1)));
  EXPECT_GE(count(".code"), size_t(most / 2));
}

TEST_F(CacheStore, WhatIsTooLargeIsNotKept) {
  Store small(folder, 8192);
  small.put(key, "value");
  small.put(other, std::string(9000, 'x'));
  EXPECT_FALSE(small.find(other));
  EXPECT_TRUE(small.find(key));
}

TEST_F(CacheStore, TheBoundHoldsWhateverTheSumSays) {
  Store small(folder, 8 * 4096);
  for (const char *sum : {"", "short", "twenty-four bytes of it"}) {
    small.put(keyOf(sum), "value");
    write(folder / "size", sum);
  }
  for (int k = 0; k < 20; ++k) {
    small.put(keyOf(std::to_string(k)), "value");
    EXPECT_LE(blocks(), uint64_t(8 * 4096));
  }
}

TEST_F(CacheStore, OnlyItsOwnFilesAreRemoved) {
  store.put(key, "value");
  write(folder / "notes.txt", "of the user");
  write(folder / "tmp-1-of-now", "being written");
  write(folder / "tmp-2-left-over", "by a process that has ended");
  fs::last_write_time(folder / "tmp-2-left-over",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  store.clear();
  EXPECT_FALSE(store.find(key));
  EXPECT_EQ(count("notes.txt"), 1u);
  EXPECT_EQ(count("tmp-1-of-now"), 1u);
  EXPECT_EQ(count("tmp-2-left-over"), 0u);
}

TEST_F(CacheStore, AFolderThatGoesComesBack) {
  store.put(key, "value");
  fs::remove_all(folder);
  EXPECT_FALSE(store.find(key));
  store.put(key, "value");
  EXPECT_EQ(store.find(key), "value");
}

TEST_F(CacheStore, AFolderThatCannotBeSaysWhy) {
  write(temporary.path / "file", "");
  Store none(temporary.path / "file" / "folder", enough);
  none.put(key, "value");
  EXPECT_FALSE(none.find(key));
  EXPECT_NE(none.problem().find("file/folder: the folder cannot be made: "),
            std::string::npos)
      << none.problem();
  none.clear();
}

TEST_F(CacheStore, AFolderThatIsReadOnlySaysWhy) {
  store.put(key, "value");
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  int status = inProcess([&] {
    if (geteuid() == 0 && setreuid(12345, 12345) != 0)
      return false;
    store.put(other, "value");
    return store.problem().find("cannot be") != std::string::npos;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(store.find(key), "value");
  fs::permissions(folder, fs::perms::owner_all);
}

TEST_F(CacheStore, AFullDiskLeavesNothingBehind) {
  store.put(other, "value");
  int status = inProcess([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    store.put(key, std::string(2000, 'x'));
    return !store.find(key) && !store.problem().empty();
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(count("tmp-"), 0u);
  EXPECT_EQ(store.find(other), "value");
}

/// The value that everybody gives to entry `k`.
std::string valueOf(int k) {
  return std::string(static_cast<size_t>(200 * k),
                     static_cast<char>('a' + k % 26));
}

TEST_F(CacheStore, ManyProcessesReadAndWriteTheSameEntries) {
  constexpr int processes = 6, rounds = 400, keys = 40;
  constexpr uint64_t limit = 100 * 1024; // half of all
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    pid_t child = fork();
    if (child == 0) {
      std::mt19937 random(static_cast<unsigned>(p));
      Store own(folder, limit);
      int wrong = 0, found = 0;
      for (int round = 0; round < rounds; ++round) {
        int k = static_cast<int>(random() % keys);
        Key wanted = keyOf(std::to_string(k));
        std::optional<std::string> value = own.find(wanted);
        found += value.has_value();
        wrong += value && *value != valueOf(k);
        if (!value || random() % 4 == 0)
          own.put(wanted, valueOf(k));
        if (random() % 200 == 0)
          own.clear();
      }
      _exit(wrong || !found || !own.problem().empty());
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(count("tmp-"), 0u);
  EXPECT_LE(blocks(), limit + processes * 8192);
}

TEST_F(CacheStore, AProcessThatIsKilledHarmsNobody) {
  for (int k = 0; k < 20; ++k) {
    pid_t child = fork();
    if (child == 0)
      for (int round = 0;; ++round)
        store.put(keyOf(std::to_string(round % 10)), valueOf(round % 10));
    usleep(static_cast<useconds_t>(500 * k));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (int entry = 0; entry < 10; ++entry)
      if (auto value = store.find(keyOf(std::to_string(entry))))
        EXPECT_EQ(*value, valueOf(entry));
  }
  store.put(key, "value");
  EXPECT_EQ(store.find(key), "value");
}

} // namespace
} // namespace costate::cache
