#include "cache/Store.h"

#include "cache/Bound.h"
#include "cache/File.h"

#include "llvm/Support/xxhash.h"

#include <cerrno>
#include <cstring>

#include <sys/random.h>

namespace costate::cache {
namespace {

struct Header {
  char magic[8];
  uint32_t format, reserved;
  Key key;
  uint64_t length, checksum; ///< of the value
};

uint64_t checksumOf(std::string_view value) {
  return llvm::xxh3_64bits(llvm::StringRef(value.data(), value.size()));
}

Header headerOf(const Key &key, std::string_view value) {
  return {{'c', 'o', 's', 't', 'a', 't', 'e', '\n'},
          1,
          0,
          key,
          value.size(),
          checksumOf(value)};
}

/// A plain file of this user that nobody else may write.
bool isOwn(const struct stat &file) {
  return S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
         !(file.st_mode & (S_IWGRP | S_IWOTH));
}

std::optional<std::string> read(File &file, const Key &key, uint64_t limit) {
  struct stat about;
  Header header;
  if (fstat(file.descriptor(), &about) != 0 || !isOwn(about) ||
      !file.read(&header, sizeof header) ||
      header.length != static_cast<uint64_t>(about.st_size) - sizeof header ||
      header.length > limit)
    return std::nullopt;
  std::string value(header.length, '\0');
  if (!file.read(value.data(), value.size()))
    return std::nullopt;
  Header expected = headerOf(key, value);
  if (std::memcmp(&header, &expected, sizeof header) != 0)
    return std::nullopt;
  return value;
}

/// Makes `folder` and those above it, for this user alone.
bool makeFolder(const std::string &folder) {
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST)
    return true;
  size_t slash = folder.rfind('/');
  if (errno != ENOENT || slash == std::string::npos || slash == 0)
    return false;
  return makeFolder(folder.substr(0, slash)) &&
         (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST);
}

std::string temporaryName() {
  static std::atomic<uint64_t> number{0};
  uint64_t chance = 0;
  if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0)
    chance = reinterpret_cast<uintptr_t>(&chance);
  return temporaryPrefix + std::to_string(getpid()) + "-" +
         std::to_string(number++) + "-" + std::to_string(chance);
}

} // namespace

std::string Store::pathOf(const Key &key) const {
  return path + "/" + textOf(key) + entrySuffix;
}

std::optional<std::string> Store::find(const Key &key) {
  File file(pathOf(key), O_RDONLY);
  if (!file)
    return std::nullopt;
  std::optional<std::string> value = read(file, key, limit);
  if (value)
    futimens(file.descriptor(), nullptr);
  return value;
}

void Store::put(const Key &key, std::string_view value) {
  uint64_t size = bytesOnDisk(sizeof(Header) + value.size());
  if (size <= limit && write(key, value))
    Bound(path, limit).add(size);
}

void Store::clear() { Bound(path, 0).enforce(); }
uint64_t Store::bytes() const { return Bound(path, limit).bytes(); }

bool Store::write(const Key &key, std::string_view value) {
  if (!makeFolder(path))
    return fail("the folder cannot be made");
  std::string temporary = path + "/" + temporaryName();
  File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (!file)
    return fail("the folder cannot be written to");
  Header header = headerOf(key, value);
  std::string_view bytes(reinterpret_cast<const char *>(&header),
                         sizeof header);
  bool done = file.write(bytes) && file.write(value) && file.close() &&
              rename(temporary.c_str(), pathOf(key).c_str()) == 0;
  if (!done) {
    fail("a file cannot be written");
    unlink(temporary.c_str());
  }
  return done;
}

bool Store::fail(const char *what) {
  std::string reason = std::strerror(errno);
  std::lock_guard lock(mutex);
  trouble = path + ": " + what + ": " + reason;
  return false;
}

std::string Store::problem() const {
  std::lock_guard lock(mutex);
  return trouble;
}

} // namespace costate::cache
