#pragma once
/// Which elements the additions of a range reach, and by which work items an
/// element is reached.
///
/// Elements are numbered like work items: element e of an addition is the one
/// that work item e would reach if the constant of each index were its rest. So
/// work item i reaches element i + shift.

#include "autodiff/replay/Steps.h"

namespace costate::autodiff {

/// An addition along one index of its range.
struct Reach {
  const Steps *steps;
  size_t main;  ///< the step of most work items
  unsigned dim; ///< of the array
  int64_t slope, rest;
  Affine base; ///< element e has the index slope * e + rest + base

  /// Whether elements follow a step as they follow the main one; others are
  /// short.
  bool isSloped(size_t step) const;
  /// Of the elements that a sloped step reaches.
  Affine shift(size_t step) const;
  /// The element that work item `number` of a step reaches.
  Affine target(size_t step, int64_t number) const;
  /// How many work items a step has at most, if some form, which is added to
  /// `assumed`, is not negative.
  int64_t length(size_t step, const Affine &extent,
                 llvm::SmallVectorImpl<Affine> &assumed) const;
};

/// The work items along one index that reach element e: one of the interval
/// [from, to).
struct Candidate {
  std::optional<Affine> shift; ///< work item e - shift; else
  Affine item;                 ///< this one,
  Affine target;               ///< if this is e
  Affine from, to;
  bool isMain = false; ///< by the step of most work items

  /// From the work item to the element.
  Affine distance() const;
};

/// Work items of `reach`; they are different ones. Adds to `assumed`. Nothing
/// if there are too many.
std::optional<std::vector<Candidate>>
candidates(const Reach &reach, const Affine &extent,
           llvm::SmallVectorImpl<Affine> &assumed);

/// Of which elements something holds: [lows, highs) of all or of any.
struct Bounds {
  std::vector<Affine> lows, highs;
};

/// Adds to `inner` where only the main step of `reach` is, and to `hull` all
/// that it reaches. Work items outside of `where` do not make the addition.
void bound(const Reach &reach, const Affine &extent, const Bounds &where,
           Bounds &inner, Bounds &hull);

/// Finds the reach of an addition along `index`, which `dim` of the array
/// follows.
std::optional<Reach> reachOf(StepAnalysis &analysis, mlir::Value position,
                             unsigned dim);

} // namespace costate::autodiff
