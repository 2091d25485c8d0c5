#pragma once
/// The range over the elements that are added to.

#include "autodiff/gather/Additions.h"
#include "autodiff/gather/Conditions.h"
#include "autodiff/rules/Rules.h"

namespace costate::autodiff {

/// The range over the elements.
class Gatherer {
public:
  Gatherer(ir::RangeOp range, StepAnalysis &analysis,
           llvm::ArrayRef<Addition> additions, bool numbered)
      : range(range), indices(range.getIndices()), analysis(analysis),
        additions(additions), numbered(numbered), branchless(numbered),
        front(range.getLoc(), range) {}

  /// False if there is none; nothing has changed then.
  bool plan();
  llvm::ArrayRef<Affine> assumptions() const { return assumed; }
  void emitRange();

private:
  Affine extentOf(unsigned p) const;

  /// Others stand in for work items that are not there, so that each box has
  /// some.
  void assumeItems();

  /// So must the range.
  void emptyIfNoItems(mlir::Value &extent);

  /// Of the branches around an addition, as far as they bound index `p`.
  Bounds conditionsOf(const Addition &addition, unsigned p);
  void addCondition(mlir::Value condition, bool answer, unsigned p,
                    Bounds &bounds);
  ir::RangeOp emitRange(mlir::ValueRange extents);

  /// Elements of the interior first, so that all lanes of a warp but one do
  /// the same.
  void emitNumbered(mlir::ValueRange lows, mlir::ValueRange extents);

  /// Rows of the interior have ends of their own, with fewer conditions.
  void emitParts(Builder &b);

  /// A branch whose condition is not known yet.
  mlir::scf::IfOp emitBranch(Builder &b);

  /// In the dimensions [begin, end).
  mlir::Value isInside(Builder &b, unsigned begin, unsigned end);

  // Where all work items around an element exist (Interior.cpp).

  void emitInterior(Builder &b);
  size_t numberOf(mlir::Operation *add);

  /// Work item `element - shifts`, whose indices and conditions are those of
  /// most work items.
  Terms copyInside(Builder &b, const Together &together);

  /// What most of the work items `element - shifts` have, if all but those of
  /// a border agree.
  mlir::Value mainValue(mlir::OpBuilder &inner, mlir::Value value,
                        llvm::ArrayRef<Affine> shifts);

  /// Null unless they hold wherever there is the new range.
  const Steps *knownSteps(mlir::Value value);
  bool isAssumed(const Affine &form) const;

  /// Whether all work items but those of a border agree on the step.
  bool isSameInside(mlir::Value value, const Steps &steps) const;
  void restrict(unsigned p, const Affine &shift, const Steps &steps,
                size_t main);

  // Elsewhere (Border.cpp).

  /// `ofRow`: only the last index may be that of a border.
  void emitBorder(Builder &b, bool ofRow);

  /// Additions that the same work items make; those of several steps alone.
  std::vector<Together> together();
  void forEachCandidate(
      const Together &together, bool ofRow,
      llvm::function_ref<void(llvm::ArrayRef<const Candidate *>)> f);

  /// `ofRow`: of other indices it is known that they are there.
  Terms copyIfThere(Builder &b, const Together &together,
                    llvm::ArrayRef<const Candidate *> chosen, bool ofRow);

  /// Conditions of branches around all of `together`, which hold for few work
  /// items or for all but few of them.
  Box commonConditions(const Together &together);
  Terms copyItem(mlir::OpBuilder &inner, const Together &together,
                 const Box &box, mlir::ValueRange items, bool ofRow);

  /// What waits for no condition loads all that it needs at once.
  Terms copyAnyway(Builder &b, const Together &together, const Box &box,
                   mlir::ValueRange items, bool ofRow, mlir::Value there);

  /// The work item between `sides` that stands in for `item`.
  mlir::Value nearest(Builder &b, unsigned p, Bounds sides, mlir::Value item);

  /// Whether `value` follows from another index than the last one.
  bool isOuter(mlir::Value value);

  /// Indices of elements need not be computed from work items.
  void mapPositions(Builder &b, const Together &together,
                    mlir::IRMapping &values);

  /// An index of work item `items` by comparisons, which vectors can do.
  mlir::Value stepwise(mlir::OpBuilder &inner, mlir::Value value,
                       mlir::ValueRange items);
  mlir::Value itemOf(Builder &b, unsigned p, const Candidate &candidate);

  /// Whether the work item exists, lies between `sides`, and reaches the
  /// element; null if that holds for each element of the range.
  mlir::Value isThere(Builder &b, unsigned p, const Candidate &candidate,
                      const Bounds &sides, mlir::Value item);

  /// Drops bounds of work item `element - shift` that no element is beyond.
  void dropImplied(unsigned p, const Affine &shift, Bounds &bounds);

  // Sums.cpp.

  mlir::Value positionOf(Builder &b, const Reach &reach);

  /// What is added to an element.
  struct Sum {
    const Addition &addition;
    llvm::SmallVector<Term> terms;
    mlir::Location places; ///< of all that is added
    Values position = {};
    mlir::Value old = {};

    bool isConditional() const {
      return llvm::all_of(terms,
                          [](const Term &term) { return term.condition; });
    }
  };

  /// For each frame, the terms in the order in which one thread comes to them:
  /// that of the work items, and then of the program.
  std::vector<Sum> sumsOf(llvm::ArrayRef<Contribution> terms);

  /// A store holds up the loads after it, so elements of different arrays are
  /// loaded before.
  void emitSums(Builder &b, std::vector<Contribution> terms);
  void loadOld(Builder &b, Sum &sum);

  /// Whether the work item of `a` comes before that of `b`.
  static bool comesFirst(const Contribution &a, const Contribution &b);
  void emitSum(Builder &b, Sum &sum);

  ir::RangeOp range;
  mlir::ValueRange indices;
  StepAnalysis &analysis;
  llvm::ArrayRef<Addition> additions;
  bool numbered;   ///< by `Numbers.h`
  bool branchless; ///< at borders
  Builder front;   ///< in front of the range
  llvm::SmallVector<Affine> assumed;
  llvm::DenseMap<mlir::Operation *, std::vector<std::vector<Candidate>>>
      candidatesOf;
  std::vector<Bounds> inner, hull; ///< by index of the range
  Values element;
};

} // namespace costate::autodiff
