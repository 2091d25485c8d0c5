#pragma once
/// What kernels say by `print`, and the texts of it and of `assert`.

#include "runtime/FailureText.h"

#include <functional>

namespace costate::runtime {

using ElementName =
    std::function<std::string(int64_t argument, int64_t element)>;

/// KernelCode::texts[text] with `words` in it: integers, and f64 by their bits.
/// `name` is asked for elements.
std::string messageText(const KernelCode &code, int64_t text,
                        std::span<const int64_t> words,
                        const ElementName &name = {});

/// Prints a line.
void printMessage(const KernelCode &code, int64_t site, int64_t text,
                  std::span<const int64_t> words, WorkItemPlace workItem);

} // namespace costate::runtime
