#pragma once
/// A file descriptor that closes itself.

#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace costate::cache {

class File {
public:
  File(const std::string &path, int flags)
      : handle(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                      0600)) {}
  ~File() {
    if (handle >= 0)
      ::close(handle);
  }
  File(const File &) = delete;

  explicit operator bool() const { return handle >= 0; }
  int descriptor() const { return handle; }

  bool read(void *to, size_t size) {
    char *at = static_cast<char *>(to);
    while (size) {
      ssize_t done = ::read(handle, at, size);
      if (done <= 0)
        return false;
      at += done;
      size -= static_cast<size_t>(done);
    }
    return true;
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t done = ::write(handle, bytes.data(), bytes.size());
      if (done < 0)
        return false;
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return true;
  }
  /// Some systems only say here that the disk is full.
  bool close() { return ::close(std::exchange(handle, -1)) == 0; }

private:
  int handle;
};

} // namespace costate::cache
