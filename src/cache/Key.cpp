#include "cache/Key.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>

namespace costate::cache {
namespace {

bool holds(const dl_phdr_info &info, uintptr_t address) {
  for (int k = 0; k < info.dlpi_phnum; ++k) {
    const ElfW(Phdr) &part = info.dlpi_phdr[k];
    if (part.p_type == PT_LOAD &&
        address - (info.dlpi_addr + part.p_vaddr) < part.p_memsz)
      return true;
  }
  return false;
}

/// The build id among the notes at `from`.
std::string buildIdIn(const char *from, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, from, sizeof note);
    size_t name = (note.n_namesz + 3) & ~size_t(3);
    size_t content = (note.n_descsz + 3) & ~size_t(3);
    if (sizeof note + name + content > size)
      break;
    const char *text = from + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(text, "GNU", 4) == 0)
      return std::string(text + name, note.n_descsz);
    from += sizeof note + name + content;
    size -= sizeof note + name + content;
  }
  return "";
}

std::string buildIdOf(const dl_phdr_info &info) {
  for (int k = 0; k < info.dlpi_phnum; ++k) {
    const ElfW(Phdr) &part = info.dlpi_phdr[k];
    if (part.p_type != PT_NOTE)
      continue;
    std::string id =
        buildIdIn(reinterpret_cast<const char *>(info.dlpi_addr + part.p_vaddr),
                  part.p_memsz);
    if (!id.empty())
      return id;
  }
  return "";
}

/// What a file without a build id is told by.
std::string stampOf(const char *path) {
  struct stat found;
  if (stat(*path ? path : "/proc/self/exe", &found) != 0)
    return "";
  auto text = [](auto number) { return std::to_string(number) + ","; };
  return path + (":" + text(found.st_size)) + text(found.st_mtim.tv_sec) +
         text(found.st_mtim.tv_nsec) + text(found.st_ino);
}

struct Search {
  uintptr_t address;
  std::string found;
};

int visit(dl_phdr_info *info, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  if (!holds(*info, search.address))
    return 0;
  search.found = buildIdOf(*info);
  if (search.found.empty())
    search.found = stampOf(info->dlpi_name);
  return 1;
}

} // namespace

Key keyOf(std::string_view bytes) {
  return llvm::SHA256::hash(llvm::ArrayRef(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

std::string textOf(const Key &key) {
  return llvm::toHex(key, /*LowerCase=*/true);
}

std::string identityOf(std::span<const void *const> addresses) {
  std::string identity;
  for (const void *address : addresses) {
    Search search{reinterpret_cast<uintptr_t>(address), ""};
    dl_iterate_phdr(visit, &search);
    if (search.found.empty())
      return "";
    identity += std::to_string(search.found.size()) + ":" + search.found;
  }
  return identity;
}

} // namespace costate::cache
