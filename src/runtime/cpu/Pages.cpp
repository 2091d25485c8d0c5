#include "runtime/cpu/Pages.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace costate::runtime::cpu {

/// From this size on, huge pages save more than their rounding costs.
static constexpr size_t hugeFrom = 4u << 20;

size_t wholePages(size_t bytes) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t padded = 0;
  if (__builtin_add_overflow(bytes, page - 1, &padded))
    return 0;
  return padded / page * page;
}

std::byte *beginOfPage(std::byte *address) {
  return address - reinterpret_cast<uintptr_t>(address) % wholePages(1);
}

static std::byte *advised(void *pages, size_t bytes) {
  if (pages == MAP_FAILED)
    return nullptr;
  if (bytes >= hugeFrom)
    madvise(pages, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte *>(pages);
}

std::byte *mapPages(size_t bytes, size_t margin) {
  return advised(mmap(nullptr, bytes + margin, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                 bytes);
}

std::byte *growPages(std::byte *pages, size_t oldBytes, size_t newBytes) {
  return advised(mremap(pages, oldBytes, newBytes, MREMAP_MAYMOVE), newBytes);
}

void clearPages(std::byte *begin, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t before = std::min(wholePages(address) - address, bytes);
  const size_t after = (address + bytes) % wholePages(1);
  const size_t whole = bytes - before > after ? bytes - before - after : 0;
  if (!whole || madvise(begin + before, whole, MADV_DONTNEED) != 0) {
    std::memset(begin, 0, bytes);
    return;
  }
  std::memset(begin, 0, before);
  std::memset(begin + before + whole, 0, after);
}

void unmapPages(std::byte *pages, size_t bytes) {
  if (pages)
    munmap(pages, bytes);
}

} // namespace costate::runtime::cpu
