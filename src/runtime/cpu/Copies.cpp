#include "runtime/cpu/Copies.h"

#include <algorithm>
#include <cstring>

namespace costate::runtime::cpu {

static size_t bytesOf(const CopiedArray &array) {
  return static_cast<size_t>(array.elements * array.elementBytes);
}

/// Of a part: the cache of a core should hold them.
static constexpr size_t mostBytes = 128 * 1024;

/// Whether copies of parts are cleared and added up in less time than atomic
/// additions take.
static bool isSmall(const CopiedArray &array, int64_t workItems) {
  constexpr int64_t fewAdditions = 16;
  return array.isFloat &&
         array.elements <= workItems / (array.isInLoop ? 1 : fewAdditions);
}

/// The same of `copies` of runners. In time an atomic addition is four elements
/// that are cleared and added up; many additions may not be made.
static bool paysForRunners(const CopiedArray &array, int64_t workItems,
                           int64_t copies) {
  constexpr double inLoop = 16;
  double additions = static_cast<double>(workItems) *
                     static_cast<double>(array.additions) *
                     (array.isInLoop ? inLoop : 1);
  return static_cast<double>(array.elements * copies) <= additions;
}

size_t Copies::Set::add(size_t more) {
  constexpr size_t alignment = 64;
  size_t offset = bytes;
  bytes += (more + alignment - 1) / alignment * alignment;
  return offset;
}

void Copies::Set::take(BlockPool &blocks, int64_t count) {
  if (bytes && count > 0)
    block = blocks.take(count * bytes);
  owners = block ? count : 0;
}

Copies::Copies(BlockPool &blocks, std::span<const CopiedArray> arrays,
               int64_t workItems, bool isWanted, int runners)
    : blocks(blocks), arrays(arrays), runners(runners), copied(arrays.size()),
      hasBegun(arrays.empty() ? 0 : runners), places(runners * arrays.size()) {
  if (!isWanted)
    return;
  choose(workItems);
  parts.take(blocks, std::min(mostParts, workItems));
  others.take(blocks, runners - 1);
}

void Copies::choose(int64_t workItems) {
  // The rest is for tapes.
  size_t room = blocks.left() / 8 / std::max(runners - 1, 1);
  for (size_t k = 0; k < arrays.size(); ++k) {
    const CopiedArray &array = arrays[k];
    const size_t bytes = bytesOf(array);
    if (array.elements <= 0)
      continue;
    if (isSmall(array, workItems) && parts.bytes + bytes <= mostBytes)
      copied[k] = {Owner::Part, parts.add(bytes)};
    else if (paysForRunners(array, workItems, runners - 1) &&
             others.bytes + bytes <= room)
      copied[k] = {Owner::Runner, others.add(bytes)};
  }
}

Copies::~Copies() {
  for (Set *set : {&parts, &others})
    if (set->block)
      blocks.put(set->block, set->owners * set->bytes);
}

void Copies::beginRunner(int runner) {
  if (!others.block || runner == 0 || hasBegun[runner])
    return;
  std::memset(others.of(runner - 1), 0, others.bytes);
  hasBegun[runner] = true;
}

CopyPlace Copies::placeOf(size_t array, int64_t part, int runner) const {
  const auto [owner, offset] = copied[array];
  if (owner == Owner::Part && parts.block)
    return {parts.of(part) + offset, true};
  if (owner == Owner::Runner && others.block)
    return {runner == 0 ? arrays[array].base : others.of(runner - 1) + offset,
            true};
  return {arrays[array].base, runners == 1};
}

const CopyPlace *Copies::beginPart(int64_t part, int runner) {
  if (parts.block)
    std::memset(parts.of(part), 0, parts.bytes);
  CopyPlace *own = places.data() + runner * arrays.size();
  for (size_t array = 0; array < arrays.size(); ++array)
    own[array] = placeOf(array, part, runner);
  return own;
}

template <class T> static void add(T *to, const T *from, int64_t elements) {
  for (int64_t k = 0; k < elements; ++k)
    to[k] += from[k];
}

/// Without a branch for each element, which nobody could predict.
template <class T>
static void addSome(T *to, const T *sums, int64_t elements, int64_t *numbers) {
  int64_t count = 0;
  for (int64_t k = 0; k < elements; ++k) {
    numbers[count] = k;
    count += sums[k] != 0;
  }
  for (int64_t k = 0; k < count; ++k)
    to[numbers[k]] += sums[numbers[k]];
}

/// What nobody has added to keeps its sign; perhaps it is not even there.
template <class T> static void addSums(T *to, const T *sums, int64_t elements) {
  constexpr int64_t step = 64;
  int64_t numbers[step];
  for (int64_t begin = 0; begin < elements; begin += step) {
    const int64_t size = std::min(step, elements - begin);
    const int64_t added =
        size - std::count(sums + begin, sums + begin + size, T(0));
    if (added == size)
      add(to + begin, sums + begin, size);
    else if (added > 0)
      addSome(to + begin, sums + begin, size, numbers);
  }
}

/// Calls `visit` with a null pointer to the type of the elements.
template <class Visit>
static void visitType(const CopiedArray &array, const Visit &visit) {
  const bool isWide = array.elementBytes == 8;
  if (array.isFloat)
    isWide ? visit(static_cast<double *>(nullptr))
           : visit(static_cast<float *>(nullptr));
  else
    isWide ? visit(static_cast<uint64_t *>(nullptr))
           : visit(static_cast<uint32_t *>(nullptr));
}

void Copies::addUpParts(int64_t count) {
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (copied[k].owner != Owner::Part)
      continue;
    visitType(arrays[k], [&]<class T>(T *) {
      auto of = [&](int64_t part) {
        return reinterpret_cast<T *>(parts.of(part) + copied[k].offset);
      };
      for (int64_t part = 1; part < count; ++part)
        add(of(0), of(part), arrays[k].elements);
      addSums(reinterpret_cast<T *>(arrays[k].base), of(0), arrays[k].elements);
    });
  }
}

/// Of each array that runners have copies of, the `piece` of `pieces`.
void Copies::addUpPiece(int64_t piece, int64_t pieces) {
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (copied[k].owner != Owner::Runner)
      continue;
    int64_t begin = arrays[k].elements * piece / pieces;
    int64_t end = arrays[k].elements * (piece + 1) / pieces;
    visitType(arrays[k], [&]<class T>(T *) {
      for (int runner = 1; runner < runners; ++runner)
        if (hasBegun[runner])
          addSums(
              reinterpret_cast<T *>(arrays[k].base) + begin,
              reinterpret_cast<T *>(others.of(runner - 1) + copied[k].offset) +
                  begin,
              end - begin);
    });
  }
}

void Copies::addUpRunners(ThreadPool &team) {
  constexpr size_t fewBytes = 64 * 1024;
  size_t bytes = others.bytes * std::ranges::count(hasBegun, true);
  int pieces = bytes > fewBytes ? runners : 1;
  team.run(pieces, [&](int piece) { addUpPiece(piece, pieces); });
}

void Copies::addUp(int64_t count, ThreadPool &team) {
  if (parts.block && count > 0)
    addUpParts(count);
  if (others.block)
    addUpRunners(team);
}

} // namespace costate::runtime::cpu
