#include "runtime/cpu/Copies.h"

#include <algorithm>
#include <cstring>

namespace costate::runtime::cpu {

static constexpr size_t none = ~size_t(0);

static size_t bytesOf(const CopiedArray &array) {
  return static_cast<size_t>(array.elements * array.elementBytes);
}

/// Of a part: the cache of a core should hold them.
static constexpr size_t mostBytes = 128 * 1024;

/// Whether copies are cleared and added up in less time than atomic additions
/// take.
static bool isSmall(const CopiedArray &array, int64_t workItems) {
  return array.elements > 0 &&
         array.elements <= workItems / array.workItemsOfElement;
}

Copies::Copies(BlockPool &blocks, std::span<const CopiedArray> arrays,
               int64_t workItems, bool isWanted, bool isAlone)
    : blocks(blocks), arrays(arrays), offsets(arrays.size(), none) {
  constexpr size_t alignment = 64;
  for (size_t k = 0; isWanted && k < arrays.size(); ++k)
    if (isSmall(arrays[k], workItems) &&
        bytes + bytesOf(arrays[k]) <= mostBytes) {
      offsets[k] = bytes;
      bytes += (bytesOf(arrays[k]) + alignment - 1) / alignment * alignment;
    }
  allParts = std::min(mostParts, workItems);
  block = bytes ? blocks.take(allParts * bytes) : nullptr;
  if (!block)
    allParts = 1;
  places.reserve(allParts * arrays.size());
  for (int64_t part = 0; part < allParts; ++part)
    for (size_t k = 0; k < arrays.size(); ++k) {
      bool isCopy = block && offsets[k] != none;
      places.push_back({isCopy ? copy(part) + offsets[k] : arrays[k].base,
                        isCopy || isAlone});
    }
}

Copies::~Copies() {
  if (block)
    blocks.put(block, allParts * bytes);
}

const CopyPlace *Copies::begin(int64_t part) {
  if (!block)
    return places.data();
  std::memset(copy(part), 0, bytes);
  return places.data() + part * static_cast<int64_t>(arrays.size());
}

template <class T> static void add(T *to, const T *from, int64_t elements) {
  for (int64_t k = 0; k < elements; ++k)
    to[k] += from[k];
}

/// What nobody has added to keeps its sign.
template <class T> static void addSums(T *to, const T *sums, int64_t elements) {
  for (int64_t k = 0; k < elements; ++k)
    if (sums[k] != 0)
      to[k] += sums[k];
}

template <class T>
static void addUpOne(const CopiedArray &array, std::byte *first, int64_t parts,
                     size_t bytes) {
  T *sums = reinterpret_cast<T *>(first);
  for (int64_t part = 1; part < parts; ++part)
    add(sums, reinterpret_cast<const T *>(first + part * bytes),
        array.elements);
  addSums(reinterpret_cast<T *>(array.base), sums, array.elements);
}

void Copies::addUp(int64_t parts) {
  for (size_t k = 0; block && parts > 0 && k < arrays.size(); ++k) {
    if (offsets[k] == none)
      continue;
    auto one = arrays[k].elementBytes == sizeof(float) ? addUpOne<float>
                                                       : addUpOne<double>;
    one(arrays[k], block + offsets[k], parts, bytes);
  }
}

} // namespace costate::runtime::cpu
