#pragma once
/// Sets of elements of one array: what a launch writes, what a gradient needs.

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace costate::runtime {

/// Indices of one dimension: sorted intervals that do not touch.
class IndexSet {
public:
  struct Interval {
    int64_t begin, end; ///< begin < end
    bool operator==(const Interval &) const = default;
  };

  using Intervals = boost::container::small_vector<Interval, 1>;

  IndexSet() = default;
  /// [begin, end); empty unless begin < end.
  IndexSet(int64_t begin, int64_t end);
  /// Those of `indices` that are in [0, extent).
  static IndexSet of(const std::vector<int64_t> &indices, int64_t extent);

  bool empty() const { return parts.empty(); }
  int64_t size() const;
  const Intervals &intervals() const { return parts; }
  bool operator==(const IndexSet &) const = default;

  /// What comes after all others.
  void append(Interval part);

private:
  Intervals parts;
};

/// The elements whose index is, in every dimension, in the set of that
/// dimension. Of rank 0: the one element.
struct Box {
  boost::container::small_vector<IndexSet, 2> dims;

  static Box whole(const std::vector<int64_t> &extents);
  bool empty() const;
  int64_t size() const;
  bool operator==(const Box &) const = default;
};

bool meet(const Box &one, const Box &other);
/// Whether all elements of `inner` are in `outer`.
bool contains(const Box &outer, const Box &inner);

/// Any set of elements, in slabs of the outermost dimension. What it takes to
/// change it or to look into it depends on the part that is looked at, and not
/// on the size of the whole but for a logarithm.
class Region {
public:
  Region() = default;
  explicit Region(const Box &box);

  bool empty() const { return !all && slabs.empty(); }
  int64_t size() const;
  /// Boxes that have no element in common.
  std::vector<Box> boxes() const;

  void add(const Box &box) { add(box, 0); }
  void remove(const Box &box) { remove(box, 0); }
  void clear() { *this = Region(); }
  bool meets(const Box &box) const { return meets(box, 0); }
  /// The part of this region in `box`.
  Region within(const Box &box) const { return within(box, 0); }
  bool operator==(const Region &other) const;

private:
  struct Slab;
  using Slabs = std::map<int64_t, Slab>;

  // All in the dimensions of `box` from `dim`.
  void add(const Box &box, size_t dim);
  void remove(const Box &box, size_t dim);
  bool meets(const Box &box, size_t dim) const;
  Region within(const Box &box, size_t dim) const;

  void addSlabs(IndexSet::Interval part, const Box &box, size_t dim);
  Slabs::iterator split(int64_t at);
  void joinAround(int64_t begin, int64_t end);
  void append(int64_t begin, int64_t end, Region inner);
  Slabs::const_iterator firstMeeting(int64_t begin) const;

  bool all = false; ///< of rank 0: the one element
  /// By their first index; slabs that touch are not alike inside.
  Slabs slabs;
};

struct Region::Slab {
  int64_t end;
  Region inner; ///< not empty; of the other dimensions
};

/// `count` runs of `length` neighbours each, `pitch` elements from one begin to
/// the next. The first run begins at row-major position `first`.
struct Runs {
  int64_t first, length, count, pitch;
};

/// Visits each element of `box` of an array once, in few groups.
void forEachRuns(const Box &box, const std::vector<int64_t> &extents,
                 const std::function<void(const Runs &)> &visit);

/// `[3, 0:64]`, for messages; `[]` for rank 0.
std::string boxText(const Box &box);

} // namespace costate::runtime
