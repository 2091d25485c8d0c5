#include "compiler/HostMaths.h"

namespace costate::compiler {
namespace {

#ifdef __aarch64__
alignas(8) const unsigned char neonFor1[] = {
#include "compiler/host-neon-1.inc"
};
alignas(8) const unsigned char neonFor2[] = {
#include "compiler/host-neon-2.inc"
};
alignas(8) const unsigned char neonFor4[] = {
#include "compiler/host-neon-4.inc"
};
alignas(8) const unsigned char neonFor8[] = {
#include "compiler/host-neon-8.inc"
};
alignas(8) const unsigned char neonFor16[] = {
#include "compiler/host-neon-16.inc"
};
alignas(8) const unsigned char neonFor32[] = {
#include "compiler/host-neon-32.inc"
};
#else
alignas(8) const unsigned char avx2For1[] = {
#include "compiler/host-avx2-1.inc"
};
alignas(8) const unsigned char avx2For2[] = {
#include "compiler/host-avx2-2.inc"
};
alignas(8) const unsigned char avx2For4[] = {
#include "compiler/host-avx2-4.inc"
};
alignas(8) const unsigned char avx2For8[] = {
#include "compiler/host-avx2-8.inc"
};
alignas(8) const unsigned char avx2For16[] = {
#include "compiler/host-avx2-16.inc"
};
alignas(8) const unsigned char avx2For32[] = {
#include "compiler/host-avx2-32.inc"
};
alignas(8) const unsigned char avx512For1[] = {
#include "compiler/host-avx512-1.inc"
};
alignas(8) const unsigned char avx512For2[] = {
#include "compiler/host-avx512-2.inc"
};
alignas(8) const unsigned char avx512For4[] = {
#include "compiler/host-avx512-4.inc"
};
alignas(8) const unsigned char avx512For8[] = {
#include "compiler/host-avx512-8.inc"
};
alignas(8) const unsigned char avx512For16[] = {
#include "compiler/host-avx512-16.inc"
};
alignas(8) const unsigned char avx512For32[] = {
#include "compiler/host-avx512-32.inc"
};
#endif

/// An object file.
template <size_t size>
std::string_view objectOf(const unsigned char (&bytes)[size]) {
  return {reinterpret_cast<const char *>(bytes), size};
}

} // namespace

std::vector<std::string_view> hostMathsObjects(std::string_view family) {
#ifdef __aarch64__
  if (family == "neon")
    return {objectOf(neonFor1), objectOf(neonFor2),  objectOf(neonFor4),
            objectOf(neonFor8), objectOf(neonFor16), objectOf(neonFor32)};
#else
  if (family == "avx2")
    return {objectOf(avx2For1), objectOf(avx2For2),  objectOf(avx2For4),
            objectOf(avx2For8), objectOf(avx2For16), objectOf(avx2For32)};
  if (family == "avx512")
    return {objectOf(avx512For1), objectOf(avx512For2),  objectOf(avx512For4),
            objectOf(avx512For8), objectOf(avx512For16), objectOf(avx512For32)};
#endif
  return {};
}

} // namespace costate::compiler
