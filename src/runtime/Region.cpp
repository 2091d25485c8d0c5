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

static bool contains(const IndexSet &outer, const IndexSet &inner) {
  auto around = outer.intervals().begin();
  for (const Interval &part : inner.intervals()) {
    while (around != outer.intervals().end() && around->end < part.end)
      ++around;
    if (around == outer.intervals().end() || around->begin > part.begin)
      return false;
  }
  return true;
}

bool contains(const Box &outer, const Box &inner) {
  return inner.empty() ||
         std::equal(outer.dims.begin(), outer.dims.end(), inner.dims.begin(),
                    [](const IndexSet &around, const IndexSet &part) {
                      return contains(around, part);
                    });
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

/// The first slab that ends after `begin`.
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
/// Equal intervals at a constant distance.
struct Series {
  int64_t begin, length, count, pitch;
};

/// Something happens `count` times, `pitch` elements further each time.
struct Level {
  int64_t count, pitch;
};

/// Walks over a box, from its innermost dimension.
class Walk {
public:
  Walk(const Box &box, const std::vector<int64_t> &extents,
       const std::function<void(const Runs &)> &visit)
      : visit(visit) {
    for (const IndexSet &indices : box.dims)
      dims.push_back({1, seriesOf(indices)});
    for (size_t d = extents.size(); d-- > 1;)
      dims[d - 1].stride = dims[d].stride * extents[d];
  }

  void run() { nest(dims.size(), 0, {{1, 1}}); }

private:
  using Levels = boost::container::small_vector<Level, 4>;
  using AllSeries = boost::container::small_vector<Series, 1>;
  struct Dim {
    int64_t stride;
    AllSeries series;
  };

  static AllSeries seriesOf(const IndexSet &set);
  static void add(Levels &levels, Level level);
  void nest(size_t dim, int64_t first, const Levels &levels) const;
  void visitAll(int64_t first, const Levels &levels, size_t level,
                size_t longest) const;

  boost::container::small_vector<Dim, 3> dims;
  const std::function<void(const Runs &)> &visit;
};

Walk::AllSeries Walk::seriesOf(const IndexSet &set) {
  AllSeries all;
  for (const Interval &part : set.intervals()) {
    int64_t length = part.end - part.begin;
    Series *last = all.empty() ? nullptr : &all.back();
    if (last && last->length == length && last->count == 1)
      last->pitch = part.begin - last->begin;
    if (last && last->length == length &&
        last->begin + last->count * last->pitch == part.begin)
      ++last->count;
    else
      all.push_back({part.begin, length, 1, length});
  }
  return all;
}

/// Levels that continue each other are one.
void Walk::add(Levels &levels, Level level) {
  Level &inner = levels.back();
  if (inner.count * inner.pitch == level.pitch)
    inner.count *= level.count;
  else if (level.count > 1)
    levels.push_back(level);
}

/// `levels`: of the dimensions from `dim`.
void Walk::nest(size_t dim, int64_t first, const Levels &levels) const {
  if (dim == 0) {
    auto longest = std::max_element(
        levels.begin() + 1, levels.end(),
        [](Level one, Level other) { return one.count < other.count; });
    return visitAll(first, levels, levels.size(),
                    static_cast<size_t>(longest - levels.begin()));
  }
  const int64_t stride = dims[dim - 1].stride;
  for (const Series &part : dims[dim - 1].series) {
    Levels more = levels;
    add(more, {part.length, stride});
    add(more, {part.count, part.pitch * stride});
    nest(dim - 1, first + part.begin * stride, more);
  }
}

/// All at once of the level `longest`, and of the innermost one, the run; one
/// after the other of the others below `level`.
void Walk::visitAll(int64_t first, const Levels &levels, size_t level,
                    size_t longest) const {
  const Level run = levels[0];
  if (level == 1) {
    bool isOne = longest == levels.size();
    Level rows = isOne ? Level{1, run.count} : levels[longest];
    return visit({first, run.count, rows.count, rows.pitch});
  }
  const Level &here = levels[level - 1];
  int64_t times = level - 1 == longest ? 1 : here.count;
  for (int64_t k = 0; k < times; ++k)
    visitAll(first + k * here.pitch, levels, level - 1, longest);
}
} // namespace

void forEachRuns(const Box &box, const std::vector<int64_t> &extents,
                 const std::function<void(const Runs &)> &visit) {
  if (!box.empty())
    Walk(box, extents, visit).run();
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
