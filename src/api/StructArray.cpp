/// Arrays of structs with members of several types: an array for each type.

#include "api/Checked.h"
#include "costate/struct_array.h"
#include "runtime/ArrayStorage.h"

#include <cstring>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

StructParts::StructParts(const Device &device, const Extents &extents,
                         Flags flags, ArrayOptions options,
                         const NumberCounts &numbers, const std::string &name) {
  bool anyFloats = false;
  for (int k = 0; k < numbers.kinds; ++k)
    anyFloats |= isFloat(numbers.types[static_cast<size_t>(k)]);
  for (int k = 0; k < numbers.kinds; ++k) {
    DType type = numbers.types[static_cast<size_t>(k)];
    // Flags that nothing can have are refused by the first array.
    bool takesFlags = isFloat(type) || !anyFloats;
    ArrayOptions own = options;
    own.directions = takesFlags ? options.directions : 0;
    parts.push_back(
        {device.array(type, extents, takesFlags ? flags : costate::none, own,
                      {name, numbers.of(type), options.layout, true})});
  }
}

const AnyArray &StructParts::first() const {
  static const AnyArray none;
  const AnyArray &one = parts.empty() ? none : parts[0].array;
  one.dtype(); // there is one, or an error
  return one;
}

const AnyArray &StructParts::of(DType type) const {
  for (const Part &part : parts)
    if (part.array.dtype() == type)
      return part.array;
  return first();
}

/// With directions, float parts have an extent more.
static const AnyArray &largest(const StructParts &parts) {
  const AnyArray *found = &parts.first();
  for (const StructParts::Part &part : parts.all())
    if (part.array.rank() > found->rank())
      found = &part.array;
  return *found;
}

std::vector<int64_t> StructParts::shape() const {
  return runtime::elementExtents(*largest(*this).storage());
}

int64_t StructParts::size() const {
  const AnyArray &one = largest(*this);
  return one.size() / one.form().count;
}

bool StructParts::has(bool (AnyArray::*companion)() const) const {
  first();
  for (const Part &part : parts)
    if (!part.borrowed && (part.array.*companion)())
      return true;
  return false;
}

StructParts StructParts::derived(bool (AnyArray::*has)() const,
                                 AnyArray (AnyArray::*companion)()
                                     const) const {
  StructParts result;
  if (!this->has(has)) { // an error, of a part that could have one
    const AnyArray *one = &first();
    for (const Part &part : parts)
      if (isFloat(part.array.dtype()))
        one = &part.array;
    (one->*companion)();
  }
  for (const Part &part : parts) {
    if (!part.borrowed && isFloat(part.array.dtype()))
      result.parts.push_back({(part.array.*companion)()});
    else
      result.parts.push_back({part.array, /*borrowed=*/true});
  }
  return result;
}

namespace {
/// The numbers of one part, as its array and as the host have them.
class Numbering {
public:
  Numbering(const AnyArray &array, const std::vector<HostPlace> &places)
      : size(sizeOf(array.dtype())), bytes(array.bytes()),
        elements(array.size() / array.form().count) {
    for (const HostPlace &place : places)
      if (place.type == array.dtype())
        offsets.push_back(place.offset);
    std::vector<int64_t> extents = array.shape();
    for (auto dim = static_cast<size_t>(array.component_dim()) + 1;
         dim < extents.size(); ++dim)
      run *= extents[dim];
  }

  /// `visit(offset of the number in the array, offset in the host's element)`
  template <class F> void ofElement(int64_t element, const F &visit) const {
    if (elements == 0)
      return;
    auto count = static_cast<int64_t>(offsets.size());
    element %= elements; // borrowed by several directions
    int64_t start = element / run * run * count + element % run;
    for (int64_t k = 0; k < count; ++k)
      visit(static_cast<size_t>(start + k * run) * size,
            offsets[static_cast<size_t>(k)]);
  }

  const size_t size, bytes;
  const int64_t elements;

private:
  std::vector<size_t> offsets;
  int64_t run = 1; ///< numbers of one component that stand side by side
};
} // namespace

namespace {
struct Fillable : AnyArray {
  explicit Fillable(const AnyArray &array) : AnyArray(array.storage()) {}
  using AnyArray::fill_element;
};
} // namespace

/// Whether all numbers of an element are the same.
static bool isEven(const std::byte *element, DType type,
                   const std::vector<HostPlace> &places) {
  const std::byte *first = nullptr;
  for (const HostPlace &place : places) {
    if (place.type != type)
      continue;
    const std::byte *one = element + place.offset;
    first = first ? first : one;
    if (std::memcmp(first, one, sizeOf(type)) != 0)
      return false;
  }
  return true;
}

void StructParts::fill(const void *from, size_t bytes,
                       const std::vector<HostPlace> &places, Loc loc) {
  auto *element = static_cast<const std::byte *>(from);
  bool isEasy = true;
  for (const Part &part : parts)
    isEasy &= part.borrowed || isEven(element, part.array.dtype(), places);
  if (!isEasy) {
    auto count = static_cast<size_t>(size());
    std::vector<std::byte> all(count * bytes);
    for (size_t e = 0; e < count; ++e)
      std::memcpy(&all[e * bytes], element, bytes);
    return write(all.data(), count, bytes, places, loc);
  }
  for (const Part &part : parts)
    for (const HostPlace &place : places)
      if (!part.borrowed && place.type == part.array.dtype()) {
        Fillable(part.array).fill_element(element + place.offset, loc);
        break;
      }
}

void StructParts::write(const void *from, size_t count, size_t stride,
                        const std::vector<HostPlace> &places, Loc loc) {
  auto *source = static_cast<const std::byte *>(from);
  if (count != static_cast<size_t>(size()))
    raise(ErrorCode::BadArgument,
          "an array of " + runtime::contentsText(*largest(*this).storage()) +
              " has " + std::to_string(size()) +
              " elements, but the host has " + std::to_string(count) +
              "; give as many values");
  for (Part &part : parts) {
    if (part.borrowed)
      continue;
    Numbering numbers(part.array, places);
    std::vector<std::byte> packed(numbers.bytes);
    for (size_t e = 0; e < count; ++e)
      numbers.ofElement(static_cast<int64_t>(e), [&](size_t to, size_t offset) {
        std::memcpy(&packed[to], source + e * stride + offset, numbers.size);
      });
    part.array.write(packed.data(), packed.size(), loc);
  }
}

void StructParts::read(void *to, size_t stride,
                       const std::vector<HostPlace> &places) const {
  auto *target = static_cast<std::byte *>(to);
  int64_t count = size();
  for (const Part &part : parts) {
    Numbering numbers(part.array, places);
    std::vector<std::byte> packed(numbers.bytes);
    part.array.read(packed.data(), packed.size());
    for (int64_t e = 0; e < count; ++e)
      numbers.ofElement(e, [&](size_t from, size_t offset) {
        std::memcpy(target + static_cast<size_t>(e) * stride + offset,
                    &packed[from], numbers.size);
      });
  }
}
