#include "runtime/Region.h"

#include <algorithm>
#include <optional>

namespace costate::runtime {

using Interval = IndexSet::Interval;
using Intervals = std::vector<Interval>;

IndexSet::IndexSet(int64_t begin, int64_t end) {
  if (begin < end)
    parts.push_back({begin, end});
}

IndexSet IndexSet::of(const std::vector<int64_t> &indices, int64_t extent) {
  std::vector<int64_t> sorted;
  for (int64_t index : indices)
    if (index >= 0 && index < extent)
      sorted.push_back(index);
  std::sort(sorted.begin(), sorted.end());
  IndexSet set;
  for (int64_t index : sorted) {
    if (set.parts.empty() || set.parts.back().end < index)
      set.parts.push_back({index, index + 1});
    else
      set.parts.back().end = index + 1;
  }
  return set;
}

int64_t IndexSet::size() const {
  int64_t sum = 0;
  for (const Interval &part : parts)
    sum += part.end - part.begin;
  return sum;
}

/// Sweeps over the borders of both sets and keeps the indices for which
/// `keep(in one, in other)`, which is false for none of them.
template <class Keep>
static Intervals combine(const Intervals &one, const Intervals &other,
                         Keep keep) {
  Intervals result;
  auto a = one.begin(), b = other.begin();
  bool inA = false, inB = false, open = false;
  while (a != one.end() || b != other.end()) {
    auto next = [](auto it, auto end, bool in) {
      return it == end ? INT64_MAX : in ? it->end : it->begin;
    };
    int64_t borderA = next(a, one.end(), inA);
    int64_t borderB = next(b, other.end(), inB);
    int64_t at = std::min(borderA, borderB);
    auto step = [&](auto &it, bool &in, int64_t border) {
      if (border != at)
        return;
      it += in;
      in = !in;
    };
    step(a, inA, borderA);
    step(b, inB, borderB);
    bool kept = keep(inA, inB);
    if (kept == open)
      continue;
    open = kept;
    if (!open)
      result.back().end = at;
    else
      result.push_back({at, at});
  }
  return result;
}

IndexSet IndexSet::joined(const IndexSet &other) const {
  IndexSet set;
  set.parts =
      combine(parts, other.parts, [](bool a, bool b) { return a || b; });
  return set;
}

IndexSet IndexSet::common(const IndexSet &other) const {
  IndexSet set;
  set.parts =
      combine(parts, other.parts, [](bool a, bool b) { return a && b; });
  return set;
}

IndexSet IndexSet::without(const IndexSet &other) const {
  IndexSet set;
  set.parts =
      combine(parts, other.parts, [](bool a, bool b) { return a && !b; });
  return set;
}

Box Box::whole(const std::vector<int64_t> &extents) {
  Box box;
  for (int64_t extent : extents)
    box.dims.emplace_back(0, extent);
  return box;
}

bool Box::empty() const {
  return std::any_of(dims.begin(), dims.end(),
                     [](const IndexSet &dim) { return dim.empty(); });
}

int64_t Box::size() const {
  int64_t product = 1;
  for (const IndexSet &dim : dims)
    product *= dim.size();
  return product;
}

Box common(const Box &one, const Box &other) {
  Box box;
  for (size_t d = 0; d < one.dims.size(); ++d)
    box.dims.push_back(one.dims[d].common(other.dims[d]));
  return box;
}

bool meet(const Box &one, const Box &other) {
  return !common(one, other).empty();
}

/// The elements of `box` that are not in `hole`: for each dimension those that
/// leave it there, and are in it in all dimensions before.
static std::vector<Box> subtract(Box box, const Box &hole) {
  if (!meet(box, hole))
    return {std::move(box)};
  std::vector<Box> rest;
  for (size_t d = 0; d < box.dims.size(); ++d) {
    IndexSet outside = box.dims[d].without(hole.dims[d]);
    if (!outside.empty()) {
      rest.push_back(box);
      rest.back().dims[d] = std::move(outside);
    }
    box.dims[d] = box.dims[d].common(hole.dims[d]);
  }
  return rest;
}

static std::vector<Box> subtract(const std::vector<Box> &boxes,
                                 const Box &hole) {
  std::vector<Box> rest;
  for (const Box &box : boxes)
    for (Box &piece : subtract(box, hole))
      rest.push_back(std::move(piece));
  return rest;
}

/// Two boxes as one, if they differ in one dimension at most.
static std::optional<Box> merged(const Box &one, const Box &other) {
  std::optional<size_t> differs;
  for (size_t d = 0; d < one.dims.size(); ++d) {
    if (one.dims[d] == other.dims[d])
      continue;
    if (differs)
      return std::nullopt;
    differs = d;
  }
  Box box = one;
  if (differs)
    box.dims[*differs] = one.dims[*differs].joined(other.dims[*differs]);
  return box;
}

int64_t Region::size() const {
  int64_t sum = 0;
  for (const Box &box : parts)
    sum += box.size();
  return sum;
}

void Region::insert(Box box) {
  for (size_t i = 0; i < parts.size();) {
    std::optional<Box> both = merged(parts[i], box);
    if (!both) {
      ++i;
      continue;
    }
    box = std::move(*both);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0; // what is larger now may fit to another one
  }
  parts.push_back(std::move(box));
}

void Region::add(const Box &box) {
  if (box.empty())
    return;
  std::vector<Box> fresh = {box};
  for (const Box &known : parts)
    fresh = subtract(fresh, known);
  for (Box &piece : fresh)
    insert(std::move(piece));
}

void Region::remove(const Box &box) { parts = subtract(parts, box); }

bool Region::meets(const Box &box) const {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const Box &part) { return meet(part, box); });
}

Region Region::within(const Box &box) const {
  Region region;
  for (const Box &part : parts)
    if (Box both = common(part, box); !both.empty())
      region.parts.push_back(std::move(both));
  return region;
}

namespace {
/// Walks over a box; behind the dimension `inner` it is as wide as the array.
struct Walk {
  const Box &box;
  std::vector<int64_t> strides;
  size_t inner;
  const std::function<void(int64_t, int64_t)> &visit;

  void step(size_t dim, int64_t first) const {
    if (dim == box.dims.size())
      return visit(first, 1);
    for (const Interval &part : box.dims[dim].intervals()) {
      if (dim >= inner) {
        visit(first + part.begin * strides[dim],
              (part.end - part.begin) * strides[dim]);
        continue;
      }
      for (int64_t index = part.begin; index < part.end; ++index)
        step(dim + 1, first + index * strides[dim]);
    }
  }
};
} // namespace

void forEachRun(
    const Box &box, const std::vector<int64_t> &extents,
    const std::function<void(int64_t first, int64_t count)> &visit) {
  if (box.empty())
    return;
  size_t rank = extents.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t d = rank; d-- > 1;)
    strides[d - 1] = strides[d] * extents[d];
  size_t inner = rank ? rank - 1 : 0;
  while (inner > 0 && box.dims[inner].size() == extents[inner])
    --inner;
  Walk{box, std::move(strides), inner, visit}.step(0, 0);
}

std::string boxText(const Box &box) {
  std::string text;
  for (const IndexSet &dim : box.dims) {
    std::string one;
    for (const Interval &part : dim.intervals())
      one += (one.empty() ? "" : " ") + std::to_string(part.begin) +
             (part.end == part.begin + 1 ? "" : ":" + std::to_string(part.end));
    text += (text.empty() ? "" : ", ") + one;
  }
  return "[" + text + "]";
}

} // namespace costate::runtime
