#pragma once
/// Sets of elements of one array: what a launch writes, what a gradient needs.

#include <cstdint>
#include <functional>
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

  IndexSet() = default;
  /// [begin, end); empty unless begin < end.
  IndexSet(int64_t begin, int64_t end);
  /// Those of `indices` that are in [0, extent).
  static IndexSet of(const std::vector<int64_t> &indices, int64_t extent);

  bool empty() const { return parts.empty(); }
  int64_t size() const;
  const std::vector<Interval> &intervals() const { return parts; }
  bool operator==(const IndexSet &) const = default;

  IndexSet joined(const IndexSet &other) const;
  IndexSet common(const IndexSet &other) const;
  IndexSet without(const IndexSet &other) const;

private:
  std::vector<Interval> parts;
};

/// The elements whose index is, in every dimension, in the set of that
/// dimension. Of rank 0: the one element.
struct Box {
  std::vector<IndexSet> dims;

  static Box whole(const std::vector<int64_t> &extents);
  bool empty() const;
  int64_t size() const;
  bool operator==(const Box &) const = default;
};

bool meet(const Box &one, const Box &other);
Box common(const Box &one, const Box &other);

/// Any set of elements: boxes that have no element in common.
class Region {
public:
  Region() = default;
  explicit Region(const Box &box) { add(box); }

  bool empty() const { return parts.empty(); }
  int64_t size() const;
  const std::vector<Box> &boxes() const { return parts; }

  void add(const Box &box);
  void remove(const Box &box);
  bool meets(const Box &box) const;
  /// The part of this region in `box`.
  Region within(const Box &box) const;

private:
  void insert(Box box);
  std::vector<Box> parts;
};

/// Visits the elements of `box` of an array in ascending order, as runs of
/// `count` neighbours from row-major position `first`.
void forEachRun(const Box &box, const std::vector<int64_t> &extents,
                const std::function<void(int64_t first, int64_t count)> &visit);

/// `[3, 0:64]`, for messages; `[]` for rank 0.
std::string boxText(const Box &box);

} // namespace costate::runtime
