#include "compiler/HostMaths.h"

#include <map>

namespace costate::compiler {
namespace {

// By CMakeLists.txt, of the families of this machine.
#include "compiler/host-arrays.inc"

/// An object file.
template <size_t size>
std::string_view objectOf(const unsigned char (&bytes)[size]) {
  return {reinterpret_cast<const char *>(bytes), size};
}

} // namespace

std::vector<std::string_view> hostMathsObjects(std::string_view family) {
  static const std::map<std::string_view, std::vector<std::string_view>>
      families = {
#include "compiler/host-families.inc"
      };
  auto found = families.find(family);
  return found == families.end() ? std::vector<std::string_view>()
                                 : found->second;
}

} // namespace costate::compiler
