#include "api/Sections.h"

using namespace costate;
using namespace costate::detail;
using runtime::Box;
using runtime::IndexSet;

static int64_t valueOf(const SliceIndex &index, const Call &call) {
  if (index.scalar < 0)
    return index.offset;
  uint64_t bits = call.arguments[index.scalar].bits;
  DType type = call.kernel->program->arguments()[index.scalar].type;
  bool narrow = sizeOf(type) < 4 || type == DType::I32;
  uint64_t value =
      narrow ? static_cast<uint64_t>(static_cast<int32_t>(bits)) : bits;
  return static_cast<int64_t>(value + static_cast<uint64_t>(index.offset));
}

Box detail::boxOf(const ArraySection &section, const Call &call,
                  size_t argument) {
  const std::vector<int64_t> &extents = call.arguments[argument].array->extents;
  Box box = Box::whole(extents);
  for (size_t d = 0; d < section.dims.size(); ++d) {
    if (section.dims[d].empty())
      continue;
    std::vector<int64_t> indices;
    for (const SliceIndex &index : section.dims[d])
      indices.push_back(valueOf(index, call));
    box.dims[d] = IndexSet::of(indices, extents[d]);
  }
  return box;
}
