#pragma once
/// What the environment says of code for a CPU.

#include "base/Result.h"

#include <cstdlib>
#include <string>

namespace costate {

enum class Vectors { SSE2, AVX2, AVX512 };

/// COSTATE_VECTORS: `sse2`, `avx2`, or `avx512`, which is as wide as the
/// processor has them, as if it is not set. Other processors than those of
/// x86-64 ignore it.
inline Result<Vectors> chosenVectors() {
  const char *value = std::getenv("COSTATE_VECTORS");
  std::string chosen = value ? value : "";
  if (chosen == "sse2")
    return Vectors::SSE2;
  if (chosen == "avx2")
    return Vectors::AVX2;
  if (chosen == "avx512" || chosen.empty())
    return Vectors::AVX512;
  return Failure{ErrorCode::BadArgument,
                 "COSTATE_VECTORS is `" + chosen +
                     "`; it must be `sse2`, `avx2` or `avx512`"};
}

/// COSTATE_CODE: `quick`, or `fast`, as if it is not set.
inline Result<bool> wantsQuickCode() {
  const char *value = std::getenv("COSTATE_CODE");
  std::string chosen = value ? value : "";
  if (chosen == "quick" || chosen == "fast" || chosen.empty())
    return chosen == "quick";
  return Failure{ErrorCode::BadArgument, "COSTATE_CODE is `" + chosen +
                                             "`; it must be `quick` or `fast`"};
}

} // namespace costate
