#pragma once
/// What HIP reads in a code object, for tests.

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <optional>
#include <string>
#include <string_view>

namespace costate::runtime::hip {

/// The start of a kernel descriptor, as LLVM documents it.
struct KernelDescriptor {
  uint32_t blockBytes, privateBytes, argumentBytes;
};

/// An ELF file of code for GPUs.
class CodeObject {
public:
  explicit CodeObject(std::string_view bytes)
      : bytes(bytes), head(at<Elf64_Ehdr>(0)) {}

  /// That of `kernel`; none: there is no such kernel.
  std::optional<KernelDescriptor> descriptor(const std::string &kernel) const {
    for (size_t k = 0; k < head.e_shnum; ++k)
      if (Elf64_Shdr table = section(k); table.sh_type == SHT_DYNSYM)
        if (auto found = find(table, kernel + ".kd"))
          return found;
    return std::nullopt;
  }

private:
  template <class T> T at(size_t place) const {
    T value{};
    if (place + sizeof value <= bytes.size())
      std::memcpy(&value, bytes.data() + place, sizeof value);
    return value;
  }
  Elf64_Shdr section(size_t k) const {
    return at<Elf64_Shdr>(head.e_shoff + k * head.e_shentsize);
  }
  std::optional<KernelDescriptor> find(const Elf64_Shdr &table,
                                       const std::string &name) const {
    size_t names = section(table.sh_link).sh_offset;
    for (size_t k = 0; k < table.sh_size / sizeof(Elf64_Sym); ++k) {
      auto symbol = at<Elf64_Sym>(table.sh_offset + k * sizeof(Elf64_Sym));
      if (bytes.substr(names + symbol.st_name, name.size() + 1) !=
          std::string_view(name.c_str(), name.size() + 1))
        continue;
      Elf64_Shdr owner = section(symbol.st_shndx);
      return at<KernelDescriptor>(owner.sh_offset + symbol.st_value -
                                  owner.sh_addr);
    }
    return std::nullopt;
  }

  std::string_view bytes;
  Elf64_Ehdr head;
};

} // namespace costate::runtime::hip
