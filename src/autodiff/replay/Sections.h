#pragma once
/// Which elements of an array a kernel touches.

#include "autodiff/replay/Accesses.h"
#include "base/ArraySection.h"

namespace costate::autodiff {

/// Adds the element of `access` to `section`, which is nothing at first.
void widen(std::optional<ArraySection> &section, const ArrayAccess &access);
/// The same, where no element is a section as well.
std::vector<ArraySection>
complete(llvm::ArrayRef<std::optional<ArraySection>> sections);

} // namespace costate::autodiff
