#include "runtime/KeptMemory.h"

#include "runtime/ArrayRows.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace costate::runtime {
namespace {

class DeviceMemory final : public KeptMemory {
public:
  /// `owner` keeps or gives it back.
  DeviceMemory(Buffer buffer, std::shared_ptr<void> owner)
      : KeptMemory(buffer), owner(std::move(owner)) {}

  Result<> fill(const ArrayStorage &array,
                std::span<const Box> boxes) const override {
    return forEachPiece(array, boxes, buffer.address, array.buffer.address,
                        [&](Rows original, Rows packed) {
                          return array.device->copy(packed, original);
                        });
  }
  Result<> putBack(const ArrayStorage &array,
                   std::span<const Box> boxes) const override {
    array.noteChange();
    return forEachPiece(array, boxes, buffer.address, array.buffer.address,
                        [&](Rows original, Rows packed) {
                          return array.device->copy(original, packed);
                        });
  }

private:
  const std::shared_ptr<void> owner;
};

/// Of the host, which its device fills and reads in the order of its work.
class HostMemory final : public KeptMemory {
public:
  HostMemory(std::shared_ptr<Device> device, Buffer buffer)
      : KeptMemory(buffer), device(std::move(device)) {}
  ~HostMemory() override { device->hostCopies()->giveBack(buffer); }

  Result<> fill(const ArrayStorage &array,
                std::span<const Box> boxes) const override {
    return device->hostCopies()->save(buffer, rows(array, boxes));
  }
  Result<> putBack(const ArrayStorage &array,
                   std::span<const Box> boxes) const override {
    array.noteChange();
    return device->hostCopies()->load(rows(array, boxes), buffer);
  }

private:
  std::vector<Rows> rows(const ArrayStorage &array,
                         std::span<const Box> boxes) const {
    std::vector<Rows> all;
    (void)forEachPiece(array, boxes, buffer.address, array.buffer.address,
                       [&](Rows original, Rows) {
                         all.push_back(original);
                         return Result<>();
                       });
    return all;
  }

  const std::shared_ptr<Device> device;
};

class FileMemory final : public KeptMemory {
public:
  explicit FileMemory(Buffer mapped) : KeptMemory(mapped) {}
  ~FileMemory() override { munmap(buffer.address, buffer.bytes); }

  Result<> fill(const ArrayStorage &array,
                std::span<const Box> boxes) const override {
    return forEachRow(array, boxes, [&](Buffer row, void *to) {
      return array.device->download(to, row);
    });
  }
  Result<> putBack(const ArrayStorage &array,
                   std::span<const Box> boxes) const override {
    array.noteChange();
    return forEachRow(array, boxes, [&](Buffer row, void *from) {
      return array.device->upload(row, from);
    });
  }

private:
  template <class Visit>
  Result<> forEachRow(const ArrayStorage &array, std::span<const Box> boxes,
                      Visit visit) const {
    return forEachPiece(array, boxes, buffer.address, array.buffer.address,
                        [&](Rows original, Rows packed) {
                          Result<> done;
                          for (size_t k = 0; done && k < original.count; ++k)
                            done = visit({original.address + k * original.pitch,
                                          original.bytes},
                                         packed.address + k * packed.pitch);
                          return done;
                        });
  }
};

} // namespace

/// A file of `folder` without name, or -1.
static int openFile(const std::string &folder, size_t bytes) {
  std::string name = folder + "/costate-XXXXXX";
  int file = mkstemp(name.data());
  if (file < 0)
    return file;
  unlink(name.c_str());
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0)
    return file;
  close(file);
  return -1;
}

/// A file of `folder`, in memory.
static Result<Buffer> mapFile(size_t bytes, const std::string &folder) {
  const int file = openFile(folder, bytes);
  void *address = file < 0 ? MAP_FAILED
                           : mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED, file, 0);
  const int error = errno;
  if (file >= 0)
    close(file);
  if (address == MAP_FAILED)
    return Failure{ErrorCode::OutOfMemory,
                   "a file of " + std::to_string(bytes) + " bytes in `" +
                       folder + "`: " + std::strerror(error) +
                       "; give a folder that can be written and has room"};
  return Buffer{static_cast<std::byte *>(address), bytes};
}

bool KeptMemory::isElsewhere(const Place &place, Device &device) {
  return !place.folder.empty() || (place.onHost && device.hostCopies());
}

void KeptMemory::trim(const Place &place, Device &device) {
  if (HostCopies *host = place.onHost ? device.hostCopies() : nullptr)
    host->trim();
}

using Made = std::shared_ptr<KeptMemory>;

Result<Made> KeptMemory::make(const Place &place, const ArrayStorage &array,
                              size_t bytes) {
  const std::shared_ptr<Device> &device = array.device;
  HostCopies *host = place.onHost ? device->hostCopies() : nullptr;
  const bool isFile = !place.folder.empty();
  Result<Buffer> buffer = isFile ? mapFile(bytes, place.folder)
                          : host ? host->borrow(bytes)
                                 : device->borrow(bytes);
  if (!buffer)
    return buffer.error();
  if (isFile)
    return Made(std::make_shared<FileMemory>(*buffer));
  if (host)
    return Made(std::make_shared<HostMemory>(device, *buffer));
  std::shared_ptr<void> owner(
      nullptr, [device, lent = *buffer](void *) { device->giveBack(lent); });
  return Made(std::make_shared<DeviceMemory>(*buffer, std::move(owner)));
}

Result<Made> KeptMemory::make(const std::shared_ptr<CopyMemory> &pool,
                              size_t bytes) {
  Result<Buffer> buffer = pool->take(bytes);
  if (!buffer)
    return buffer.error();
  return Made(std::make_shared<DeviceMemory>(*buffer, pool));
}

} // namespace costate::runtime
