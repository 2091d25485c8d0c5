#include "runtime/cuda/OwnKernels.h"

#include "runtime/cuda/Ptx.h"

namespace costate::runtime::cuda {
namespace {

std::string fillCode() {
  return stridedKernel("fill", 3, {{"%to", 0}, {"%count", 1}, {"%with", 2}},
                       R"(
  shl.b64 %place, %i, 3;
  add.u64 %place, %to, %place;
  st.u64 [%place], %with;
)");
}

std::string tellCode(const char *symbol, int unit) {
  std::string bits = std::to_string(8 * unit);
  return ptxHead + R"(
.visible .entry )" +
         deviceSymbol(symbol) + R"((.param .align 8 .b8 words[32]) {
  .reg .pred %done;
  .reg .b32 %lane, %size, %value;
  .reg .b64 %to, %from, %bytes, %told, %at, %step, %place, %one;
  ld.param.u64 %to, [words];
  ld.param.u64 %from, [words+8];
  ld.param.u64 %bytes, [words+16];
  ld.param.u64 %told, [words+24];
  mov.u32 %lane, %tid.x;
  mov.u32 %size, %ntid.x;
  mul.wide.u32 %at, %lane, )" +
         std::to_string(unit) + R"(;
  mul.wide.u32 %step, %size, )" +
         std::to_string(unit) + R"(;
next:
  setp.ge.u64 %done, %at, %bytes;
  @%done bra copied;
  add.u64 %place, %from, %at;
  ld.u)" +
         bits + R"( %value, [%place];
  add.u64 %place, %to, %at;
  st.u)" +
         bits + R"( [%place], %value;
  add.u64 %at, %at, %step;
  bra next;
copied:
  membar.sys;
  bar.sync 0;
  setp.ne.u32 %done, %lane, 0;
  @%done ret;
  mov.u64 %one, 1;
  st.release.sys.u64 [%told], %one;
  ret;
}
)";
}

} // namespace

const OwnKernel fillKernel{"fill", fillCode};
const OwnKernel tellBytesKernel{"tell1", [] { return tellCode("tell1", 1); }};
const OwnKernel tellWordsKernel{"tell4", [] { return tellCode("tell4", 4); }};

} // namespace costate::runtime::cuda
