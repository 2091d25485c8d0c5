#pragma once
/// What the environment says of code for a CPU.

#include "base/ChosenWord.h"

namespace costate {

enum class Vectors { SSE2, AVX2, AVX512 };

/// COSTATE_VECTORS: `sse2`, `avx2`, or `avx512`, which is as wide as the
/// processor has them, as if it is not set. Other processors than those of
/// x86-64 ignore it.
inline Result<Vectors> chosenVectors() {
  return chosenWord("COSTATE_VECTORS", Vectors::AVX512,
                    {{"sse2", Vectors::SSE2},
                     {"avx2", Vectors::AVX2},
                     {"avx512", Vectors::AVX512}});
}

/// COSTATE_CODE: `quick`, or `fast`, as if it is not set.
inline Result<bool> wantsQuickCode() {
  return chosenWord("COSTATE_CODE", false, {{"quick", true}, {"fast", false}});
}

} // namespace costate
