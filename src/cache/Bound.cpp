#include "cache/Bound.h"

#include "cache/File.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <dirent.h>
#include <sys/file.h>

namespace costate::cache {
namespace {

/// Processes may end between their entry and their addition.
constexpr uint64_t mostAdditions = 4096;
/// What nobody finished within this time is left over.
constexpr time_t oldestTemporary = 3600;

struct Entry {
  timespec used;
  uint64_t bytes;
  std::string name;
  bool operator<(const Entry &other) const {
    return std::tie(used.tv_sec, used.tv_nsec) <
           std::tie(other.used.tv_sec, other.used.tv_nsec);
  }
};

struct Folder {
  explicit Folder(const std::string &path) : handle(opendir(path.c_str())) {}
  ~Folder() {
    if (handle)
      closedir(handle);
  }
  Folder(const Folder &) = delete;
  DIR *handle;
};

std::vector<Entry> entriesOf(const Folder &folder) {
  std::vector<Entry> entries;
  time_t now = time(nullptr);
  while (const dirent *file = readdir(folder.handle)) {
    std::string_view name = file->d_name;
    bool isTemporary = name.starts_with(temporaryPrefix);
    struct stat about;
    if ((!isTemporary && !name.ends_with(entrySuffix)) ||
        fstatat(dirfd(folder.handle), file->d_name, &about,
                AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (!isTemporary)
      entries.push_back({about.st_mtim,
                         bytesOnDisk(static_cast<uint64_t>(about.st_size)),
                         std::string(name)});
    else if (now - about.st_mtim.tv_sec > oldestTemporary)
      unlinkat(dirfd(folder.handle), file->d_name, 0);
  }
  return entries;
}

/// Waits for others, but not for one that has been stopped.
bool lock(const File &file) {
  for (int tries = 0; tries < 50; ++tries) {
    if (flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

} // namespace

struct Bound::Total {
  uint64_t bytes, additions, check;
  bool isWhole() const { return check == ~(bytes * 31 + additions); }
  void seal() { check = ~(bytes * 31 + additions); }
};

void Bound::add(uint64_t bytes) {
  File file(folder + "/size", O_RDWR | O_CREAT);
  if (!file || !lock(file))
    return;
  Total total{};
  bool isKnown = file.read(&total, sizeof total) && total.isWhole();
  total.bytes += bytes;
  ++total.additions;
  if (!isKnown || total.bytes > limit || total.additions > mostAdditions)
    total = {evict(), 0, 0};
  total.seal();
  if (pwrite(file.descriptor(), &total, sizeof total, 0) !=
      static_cast<ssize_t>(sizeof total))
    unlink((folder + "/size").c_str());
}

void Bound::enforce() {
  unlink((folder + "/size").c_str()); // not known any more
  evict();
}

static uint64_t sumOf(const std::vector<Entry> &entries) {
  uint64_t sum = 0;
  for (const Entry &entry : entries)
    sum += entry.bytes;
  return sum;
}

uint64_t Bound::bytes() const {
  Folder opened(folder);
  return opened.handle ? sumOf(entriesOf(opened)) : 0;
}

uint64_t Bound::evict() {
  Folder opened(folder);
  if (!opened.handle)
    return 0;
  std::vector<Entry> entries = entriesOf(opened);
  uint64_t sum = sumOf(entries);
  if (sum <= limit)
    return sum;
  std::sort(entries.begin(), entries.end());
  uint64_t enough = limit - limit / 4; // so that this is not done each time
  for (const Entry &entry : entries) {
    if (sum <= enough)
      break;
    if (unlinkat(dirfd(opened.handle), entry.name.c_str(), 0) == 0)
      sum -= entry.bytes;
  }
  return sum;
}

} // namespace costate::cache
