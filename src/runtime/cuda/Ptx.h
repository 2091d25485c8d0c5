#pragma once
/// Kernels that are written by hand.

#include "base/DeviceSymbol.h"

#include <string>
#include <utility>
#include <vector>

namespace costate::runtime::cuda {

inline const std::string ptxHead = R"(
.version 7.0
.target sm_70
.address_size 64
)";

/// The kernel of `symbol`, called with `words` words, runs `body` for each %i
/// below %count. `inputs`: 64-bit registers, %count among them, and the words
/// that they are. %place and %value are free.
inline std::string
stridedKernel(const std::string &symbol, size_t words,
              const std::vector<std::pair<std::string, size_t>> &inputs,
              const std::string &body) {
  std::string loads;
  for (const auto &[name, word] : inputs)
    loads += "  .reg .b64 " + name + ";\n  ld.param.u64 " + name + ", [words+" +
             std::to_string(8 * word) + "];\n";
  return ptxHead + ".visible .entry " + deviceSymbol(symbol) +
         "(.param .align 8 .b8 words[" + std::to_string(8 * words) + R"(]) {
  .reg .pred %done;
  .reg .b32 %block, %size, %lane, %blocks;
  .reg .b64 %i, %step, %place, %value;
)" + loads +
         R"(
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %lane, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %i, %block, %size;
  cvt.u64.u32 %place, %lane;
  add.u64 %i, %i, %place;
  mul.wide.u32 %step, %size, %blocks;
next:
  setp.ge.u64 %done, %i, %count;
  @%done ret;
)" + body +
         R"(
  add.u64 %i, %i, %step;
  bra next;
}
)";
}

} // namespace costate::runtime::cuda
