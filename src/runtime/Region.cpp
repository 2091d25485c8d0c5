#include "runtime/Region.h"

#include <algorithm>

namespace costate::runtime {

using Interval = IndexSet::Interval;

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
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (int64_t index : sorted)
    set.append({index, index + 1});
  return set;
}

int64_t IndexSet::size() const {
  int64_t sum = 0;
  for (const Interval &part : parts)
    sum += part.end - part.begin;
  return sum;
}

void IndexSet::append(Interval part) {
  if (!parts.empty() && parts.back().end == part.begin)
    parts.back().end = part.end;
  else
    parts.push_back(part);
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

static bool meet(const IndexSet &one, const IndexSet &other) {
  auto a = one.intervals().begin(), b = other.intervals().begin();
  while (a != one.intervals().end() && b != other.intervals().end()) {
    if (std::max(a->begin, b->begin) < std::min(a->end, b->end))
      return true;
    ++(a->end < b->end ? a : b);
  }
  return false;
}

bool meet(const Box &one, const Box &other) {
  for (size_t d = 0; d < one.dims.size(); ++d)
    if (!meet(one.dims[d], other.dims[d]))
      return false;
  return true;
}

Region::Region(const Box &box) { add(box); }

int64_t Region::size() const {
  int64_t sum = all;
  for (const auto &[begin, slab] : slabs)
    sum += (slab.end - begin) * slab.inner.size();
  return sum;
}

bool Region::operator==(const Region &other) const {
  return all == other.all &&
         std::equal(slabs.begin(), slabs.end(), other.slabs.begin(),
                    other.slabs.end(), [](const auto &one, const auto &two) {
                      return one.first == two.first &&
                             one.second.end == two.second.end &&
                             one.second.inner == two.second.inner;
                    });
}

/// Slabs that are alike inside become one box.
std::vector<Box> Region::boxes() const {
  if (all)
    return {Box()};
  std::vector<Box> result;
  std::vector<std::pair<const Region *, IndexSet>> alike;
  for (const auto &[begin, slab] : slabs) {
    if (alike.empty() || !(*alike.back().first == slab.inner))
      alike.emplace_back(&slab.inner, IndexSet());
    alike.back().second.append({begin, slab.end});
  }
  for (auto &[inner, indices] : alike)
    for (Box &box : inner->boxes()) {
      box.dims.insert(box.dims.begin(), indices);
      result.push_back(std::move(box));
    }
  return result;
}

/// The first slab that ends behind `begin`.
Region::Slabs::const_iterator Region::firstMeeting(int64_t begin) const {
  auto slab = slabs.upper_bound(begin);
  if (slab != slabs.begin() && std::prev(slab)->second.end > begin)
    --slab;
  return slab;
}

/// Makes `at` a border. Returns the first slab from there.
Region::Slabs::iterator Region::split(int64_t at) {
  auto next = slabs.lower_bound(at);
  if (next == slabs.begin())
    return next;
  Slab &before = std::prev(next)->second;
  if (before.end <= at)
    return next;
  auto rest = slabs.emplace_hint(next, at, Slab{before.end, before.inner});
  before.end = at;
  return rest;
}

/// Joins slabs from the one before `begin` to the one at `end`.
void Region::joinAround(int64_t begin, int64_t end) {
  auto slab = slabs.lower_bound(begin);
  if (slab != slabs.begin())
    --slab;
  while (slab != slabs.end() && slab->first < end) {
    auto next = std::next(slab);
    if (next == slabs.end() || slab->second.end != next->first ||
        !(slab->second.inner == next->second.inner)) {
      slab = next;
      continue;
    }
    slab->second.end = next->second.end;
    slabs.erase(next);
  }
}

void Region::append(int64_t begin, int64_t end, Region inner) {
  if (!inner.empty())
    slabs.emplace_hint(slabs.end(), begin, Slab{end, std::move(inner)});
}

void Region::addSlabs(Interval part, const Box &box, size_t dim) {
  split(part.end);
  auto slab = split(part.begin);
  for (int64_t at = part.begin; at < part.end;) {
    bool isGap = slab == slabs.end() || slab->first > at;
    if (isGap) {
      int64_t end =
          slab == slabs.end() ? part.end : std::min(part.end, slab->first);
      slab = slabs.emplace_hint(slab, at, Slab{end, Region()});
    }
    slab->second.inner.add(box, dim + 1);
    at = slab->second.end;
    ++slab;
  }
}

void Region::add(const Box &box, size_t dim) {
  if (dim == 0 && box.empty())
    return;
  if (dim == box.dims.size()) {
    all = true;
    return;
  }
  for (Interval part : box.dims[dim].intervals()) {
    addSlabs(part, box, dim);
    joinAround(part.begin, part.end);
  }
}

void Region::remove(const Box &box, size_t dim) {
  if (dim == box.dims.size()) {
    all = false;
    return;
  }
  for (Interval part : box.dims[dim].intervals()) {
    split(part.end);
    auto slab = split(part.begin);
    while (slab != slabs.end() && slab->first < part.end) {
      slab->second.inner.remove(box, dim + 1);
      slab = slab->second.inner.empty() ? slabs.erase(slab) : std::next(slab);
    }
    joinAround(part.begin, part.end);
  }
}

bool Region::meets(const Box &box, size_t dim) const {
  if (dim == box.dims.size())
    return all;
  for (Interval part : box.dims[dim].intervals())
    for (auto slab = firstMeeting(part.begin);
         slab != slabs.end() && slab->first < part.end; ++slab)
      if (slab->second.inner.meets(box, dim + 1))
        return true;
  return false;
}

Region Region::within(const Box &box, size_t dim) const {
  Region region;
  region.all = dim == box.dims.size() && all;
  if (dim == box.dims.size())
    return region;
  for (Interval part : box.dims[dim].intervals()) {
    for (auto slab = firstMeeting(part.begin);
         slab != slabs.end() && slab->first < part.end; ++slab)
      region.append(std::max(part.begin, slab->first),
                    std::min(part.end, slab->second.end),
                    slab->second.inner.within(box, dim + 1));
    region.joinAround(part.begin, part.end);
  }
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
