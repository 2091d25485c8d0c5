#include "autodiff/replay/Sections.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace costate::autodiff {

/// The index as a constant or a scalar argument plus a constant, if it is one.
static std::optional<SliceIndex> sliceOf(Value index) {
  Affine form = Affine::of(index);
  if (form.isConstant())
    return SliceIndex{-1, form.constant};
  auto [symbol, coefficient] = *form.terms.begin();
  auto argument = dyn_cast<BlockArgument>(symbol);
  if (form.terms.size() != 1 || coefficient != 1 || !argument ||
      !isa<ir::KernelOp>(argument.getOwner()->getParentOp()))
    return std::nullopt;
  return SliceIndex{static_cast<int32_t>(argument.getArgNumber()),
                    form.constant};
}

void widen(std::optional<ArraySection> &section, const ArrayAccess &access) {
  bool started = section.has_value();
  if (!started)
    section.emplace().dims.resize(access.indices.size());
  for (auto [slices, index] : llvm::zip(section->dims, access.indices)) {
    if (started && slices.empty())
      continue;
    std::optional<SliceIndex> slice = sliceOf(index);
    if (!slice)
      slices.clear();
    else if (!llvm::is_contained(slices, *slice))
      slices.push_back(*slice);
  }
}

std::vector<ArraySection>
complete(ArrayRef<std::optional<ArraySection>> sections) {
  std::vector<ArraySection> all;
  for (const std::optional<ArraySection> &section : sections)
    all.push_back(section.value_or(ArraySection()));
  return all;
}

} // namespace costate::autodiff
