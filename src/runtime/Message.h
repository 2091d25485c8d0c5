#pragma once
/// What kernels say by `print`, and the texts of it and of `assert`.

#include "runtime/FailureText.h"

namespace costate::runtime {

/// KernelCode::texts[text] with `words` in it: integers, and f64 by their bits.
std::string messageText(const KernelCode &code, int64_t text,
                        std::span<const int64_t> words);

/// Prints a line.
void printMessage(const KernelCode &code, int64_t site, int64_t text,
                  std::span<const int64_t> words, WorkItemPlace workItem);

} // namespace costate::runtime
