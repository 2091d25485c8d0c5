#include "autodiff/gather/Gather.h"

#include "autodiff/Prune.h"
#include "autodiff/gather/Conditions.h"
#include "autodiff/gather/Numbers.h"
#include "autodiff/gather/Slice.h"
#include "autodiff/replay/Replay.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

using Builder = ImplicitLocOpBuilder;
using Values = SmallVector<Value>;

/// What recomputation may take for each atomic addition that it saves.
constexpr int64_t largestWeight = 64;
/// Copies for single elements of the border.
constexpr size_t mostCopies = 128;
constexpr size_t mostAdditions = 128;

//===-- Forms as values ---------------------------------------------------===//

Value constant(Builder &b, int64_t number) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(number));
}

Affine minus(Affine a, const Affine &b) {
  a.add(b, -1);
  return a;
}

/// The least of `forms`, or with `sign` -1 the greatest.
Value least(Builder &b, ArrayRef<Affine> forms, int sign = 1) {
  std::vector<Affine> open; // which of these it is only numbers can tell
  for (const Affine &form : forms) {
    auto isComparable = [&](const Affine &other) {
      return constantDifference(other, form).has_value();
    };
    auto other = llvm::find_if(open, isComparable);
    if (other == open.end())
      open.push_back(form);
    else if (sign * *constantDifference(*other, form) > 0)
      *other = form;
  }
  Value result;
  for (const Affine &form : open) {
    Value next = emit(b, form);
    result = !result    ? next
             : sign > 0 ? b.createOrFold<arith::MinSIOp>(result, next)
                        : b.createOrFold<arith::MaxSIOp>(result, next);
  }
  return result;
}

Value compare(Builder &b, arith::CmpIPredicate predicate, Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(predicate, x, y);
}

/// `a` and `b`, of which one may be null: certainly true.
Value both(Builder &builder, Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return builder.createOrFold<arith::AndIOp>(a, b);
}

bool isSame(const Affine &a, const Affine &b) {
  return constantDifference(a, b) == 0;
}

bool pushes(ir::RangeOp range) {
  return range.walk([](tape::PushOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Whether the host knows a number before it launches anything.
bool isOfHost(Value value) {
  return isa<BlockArgument>(value) || value.getDefiningOp<ir::ExtentOp>();
}

bool isKnownToHost(const Affine &form) {
  return llvm::all_of(form.terms,
                      [](auto &term) { return isOfHost(term.first); });
}

//===-- What is gathered --------------------------------------------------===//

/// An addition whose element says which work items may have made it.
struct Addition {
  ir::AtomicAddOp op;
  Value array;
  OperandRange indices;
  std::vector<Reach> reaches; ///< by index of the range
  Slice slice;

  bool isPlain() const {
    return llvm::all_of(reaches, [](const Reach &reach) {
      return reach.steps->all.size() == 1;
    });
  }
};

/// Which element of an array a work item of the new range adds to: those of
/// equal frames are added up first.
bool sameFrame(const Addition &a, const Addition &b) {
  if (a.array != b.array)
    return false;
  for (auto [x, y] : llvm::zip(a.reaches, b.reaches))
    if (x.dim != y.dim || x.slope != y.slope || x.rest != y.rest ||
        !isSame(x.base, y.base))
      return false;
  for (unsigned dim = 0; dim < a.indices.size(); ++dim)
    if (llvm::none_of(a.reaches, [&](auto &reach) { return reach.dim == dim; }))
      if (!isSame(Affine::of(a.indices[dim]), Affine::of(b.indices[dim])))
        return false;
  return true;
}

/// How far the elements that most work items reach are from them.
SmallVector<Affine> shiftsOf(const Addition &addition) {
  SmallVector<Affine> shifts;
  for (const Reach &reach : addition.reaches)
    shifts.push_back(reach.shift(reach.main));
  return shifts;
}

/// Additions of one shift: of an element, one work item makes them all.
struct Together {
  SmallVector<Affine> shifts;
  SmallVector<ir::AtomicAddOp> additions;
  Slice slice;
};

/// What a work item at some distance from the element has for it.
struct Contribution {
  Operation *add;
  Term term;
  SmallVector<Affine> shifts;
  size_t number; ///< of the addition, in the order of the program
};

std::vector<Together> byShift(ArrayRef<Addition> additions, ir::RangeOp range) {
  std::vector<Together> all;
  for (const Addition &addition : additions) {
    SmallVector<Affine> shifts = shiftsOf(addition);
    auto found = llvm::find_if(all, [&](const Together &other) {
      return llvm::equal(other.shifts, shifts, isSame);
    });
    if (found == all.end())
      found = all.insert(all.end(), {shifts, {}, {}});
    found->additions.push_back(addition.op);
    found->slice.add(addition.op, range);
  }
  return all;
}

/// Finds the additions of a range that can be gathered.
class Collector {
public:
  Collector(ir::RangeOp range, StepAnalysis &analysis)
      : range(range), analysis(analysis) {}

  std::vector<Addition> run() {
    range.walk([&](ir::AtomicAddOp add) { consider(add); });
    if (additions.size() > mostAdditions || !pays())
      llvm::erase_if(additions, [](const Addition &addition) {
        return isExclusive(addition.op);
      });
    if (additions.size() > mostAdditions || !pays())
      return {};
    llvm::erase_if(additions, [&](const Addition &addition) {
      return isExclusive(addition.op) && isLoaded(addition);
    });
    for (size_t before = 0; before != additions.size();) {
      before = additions.size();
      llvm::erase_if(additions, [&](const Addition &addition) {
        return !isSafe(addition);
      });
    }
    if (!pays())
      additions.clear();
    return std::move(additions);
  }

private:
  void consider(ir::AtomicAddOp add) {
    if (!ir::isOfAdjoint(add.getArray()) || add->hasAttr(ir::replayedAttr) ||
        !isa<Float32Type, Float64Type>(
            cast<ir::ArrayType>(add.getArray().getType()).getElementType()))
      return;
    Addition addition{add, add.getArray(), add.getIndices(), {}, {}};
    if (!findReaches(addition))
      return;
    addition.slice.add(add, range);
    if (addition.slice.isPure)
      additions.push_back(std::move(addition));
  }

  /// Each index of the range belongs to one dimension of the array, and others
  /// are the same in all work items.
  bool findReaches(Addition &addition) {
    SmallVector<std::optional<Reach>> found(range.getIndices().size());
    for (auto [dim, position] : llvm::enumerate(addition.indices)) {
      if (isUniform(position, range))
        continue;
      std::optional<Reach> reach = reachOf(analysis, position, dim);
      if (!reach)
        return false;
      auto &place =
          found[cast<BlockArgument>(reach->steps->index).getArgNumber()];
      if (place)
        return false;
      place = reach;
    }
    for (std::optional<Reach> &reach : found) {
      if (!reach)
        return false;
      addition.reaches.push_back(*reach);
    }
    return true;
  }

  bool isGathered(Operation *op) const {
    return llvm::any_of(additions,
                        [&](const Addition &other) { return other.op == op; });
  }

  bool areApart(const ArrayAccess &a, const ArrayAccess &b) const {
    return certainlyApart(
        a, b, [&](Value symbol) { return isUniform(symbol, range); });
  }

  bool isSafe(const Addition &addition) const {
    ArrayAccess mine = *accessOf(addition.op);
    for (const ArrayAccess &other : accessesIn(range)) {
      if (other.array != mine.array || other.op == mine.op)
        continue;
      bool adds = isa<ir::AtomicAddOp>(other.op);
      if (isGathered(other.op)
              ? !fits(addition, other) && !areApart(mine, other)
              : !adds && !areApart(mine, other))
        return false;
    }
    return llvm::all_of(addition.slice.loads(),
                        [&](ir::LoadOp load) { return isReadable(load); });
  }

  /// Whether what is added follows from elements that `addition` may add to, as
  /// where an adjoint is taken and replaced.
  bool isLoaded(const Addition &addition) const {
    ArrayAccess mine = *accessOf(addition.op);
    return llvm::any_of(additions, [&](const Addition &other) {
      return llvm::any_of(other.slice.loads(), [&](ir::LoadOp load) {
        ArrayAccess read = *accessOf(load);
        return read.array == mine.array && !areApart(mine, read);
      });
    });
  }

  /// Whether no work item of the new range adds to an element of another one;
  /// else the later addition gives way.
  bool fits(const Addition &addition, const ArrayAccess &access) const {
    const Addition &other = *llvm::find_if(
        additions, [&](const Addition &a) { return a.op == access.op; });
    if (&addition < &other)
      return true;
    return llvm::all_of(
        llvm::zip(addition.reaches, other.reaches), [](auto pair) {
          auto &[a, b] = pair;
          return a.dim == b.dim && a.slope == b.slope && isSame(a.base, b.base);
        });
  }

  /// Whether the new range, which comes before all that remains of the old
  /// one, loads what the old one does.
  bool isReadable(ir::LoadOp load) const {
    ArrayAccess read = *accessOf(load);
    return llvm::all_of(accessesIn(range), [&](const ArrayAccess &write) {
      if (write.array != read.array || write.isLoad() || areApart(read, write))
        return true;
      return ir::isOfAdjoint(read.array) && !isGathered(write.op) &&
             comesAfter(write.op, load);
    });
  }

  /// Whether `write` follows `load` in a work item, or only one of them runs.
  bool comesAfter(Operation *write, Operation *load) const {
    Operation *top = nullptr;
    for (;; load = load->getParentOp())
      if ((top = load->getBlock()->findAncestorOpInBlock(*write)))
        return top == load /* the other side */ || load->isBeforeInBlock(top);
  }

  bool pays() const {
    int64_t saved = llvm::count_if(additions, [](const Addition &addition) {
      return !isExclusive(addition.op);
    });
    if (saved == 0)
      return false;
    int64_t weight = 0;
    for (const Together &together : byShift(additions, range))
      weight += together.slice.weight();
    return weight <= largestWeight * saved;
  }

  ir::RangeOp range;
  StepAnalysis &analysis;
  std::vector<Addition> additions;
};

//===-- The new range -----------------------------------------------------===//

/// The range over the elements.
class Gatherer {
public:
  Gatherer(ir::RangeOp range, StepAnalysis &analysis,
           ArrayRef<Addition> additions, bool numbered)
      : range(range), indices(range.getIndices()), analysis(analysis),
        additions(additions), numbered(numbered), branchless(numbered),
        front(range.getLoc(), range) {}

  /// False if there is none; nothing has changed then.
  bool plan() {
    inner.resize(range.getIndices().size());
    hull.resize(inner.size());
    size_t copies = 0;
    for (const Addition &addition : additions) {
      size_t product = 1;
      auto &mine = candidatesOf[addition.op];
      for (auto [p, reach] : llvm::enumerate(addition.reaches)) {
        auto found = candidates(reach, extentOf(p), assumed);
        if (!found)
          return false;
        product *= found->size();
        mine.push_back(std::move(*found));
        for (const Affine &form : reach.steps->assumed)
          assumed.push_back(form);
        bound(reach, extentOf(p), conditionsOf(addition, p), inner[p], hull[p]);
      }
      copies += product;
    }
    // Of several candidates most are not there, and none is loaded for them.
    branchless &= copies == additions.size();
    if (branchless)
      assumeItems();
    return copies <= mostCopies;
  }

  ArrayRef<Affine> assumptions() const { return assumed; }

  void emitRange() {
    front.setInsertionPoint(range);
    Values lows, extents;
    for (Bounds &bounds : hull) {
      Value low = least(front, bounds.lows),
            high = least(front, bounds.highs, -1);
      lows.push_back(low);
      extents.push_back(front.createOrFold<arith::SubIOp>(high, low));
    }
    if (branchless)
      emptyIfNoItems(extents.front());
    if (numbered)
      return emitNumbered(lows, extents);
    auto gather = emitRange(extents);
    Builder b = Builder::atBlockBegin(range.getLoc(), gather.getBody());
    for (auto [low, index] : llvm::zip(lows, gather.getIndices()))
      element.push_back(b.createOrFold<arith::AddIOp>(index, low));
    emitParts(b);
  }

private:
  Affine extentOf(unsigned p) const { return analysis.extentOf(indices[p]); }

  /// Others stand in for work items that are not there, so that each box has
  /// some.
  void assumeItems() {
    for (const Together &together : together())
      for (auto [p, side] : llvm::enumerate(commonConditions(together).sides)) {
        for (const Affine &low : side.lows)
          assumed.push_back(beyond(low, extentOf(p)));
        for (const Affine &high : side.highs) {
          assumed.push_back(beyond(Affine(), high));
          for (const Affine &low : side.lows)
            assumed.push_back(beyond(low, high));
        }
      }
  }

  /// Not negative if `high` is greater than `low`.
  static Affine beyond(const Affine &low, const Affine &high) {
    Affine form = minus(high, low);
    --form.constant;
    return form;
  }

  /// So must the range.
  void emptyIfNoItems(Value &extent) {
    Value zero = constant(front, 0);
    for (Value count : range.getExtents())
      extent = front.createOrFold<arith::SelectOp>(
          compare(front, arith::CmpIPredicate::sgt, count, zero), extent, zero);
  }

  /// Of the branches around an addition, as far as they bound index `p`.
  Bounds conditionsOf(const Addition &addition, unsigned p) {
    Bounds bounds;
    Operation *op = addition.op;
    for (; op->getParentOp() != range; op = op->getParentOp()) {
      auto branch = cast<scf::IfOp>(op->getParentOp());
      bool answer = op->getBlock() == branch.thenBlock();
      addCondition(branch.getCondition(), answer, p, bounds);
    }
    return bounds;
  }

  void addCondition(Value condition, bool answer, unsigned p, Bounds &bounds) {
    if (auto conjunction = condition.getDefiningOp<arith::AndIOp>();
        conjunction && answer) {
      addCondition(conjunction.getLhs(), true, p, bounds);
      addCondition(conjunction.getRhs(), true, p, bounds);
      return;
    }
    const Steps *steps = analysis.of(condition);
    if (!steps || steps->index != indices[p] || !steps->assumed.empty())
      return;
    auto isOther = [&](const Step &step) {
      return (step.value.constant != 0) != answer;
    };
    if (isOther(steps->all.front()))
      bounds.lows.push_back(steps->end(0, extentOf(p)));
    if (isOther(steps->all.back()))
      bounds.highs.push_back(steps->all.back().from);
  }

  ir::RangeOp emitRange(ValueRange extents) {
    auto gather = ir::RangeOp::create(front, extents);
    gather->setAttr(ir::gatherAttr, front.getUnitAttr());
    front.setInsertionPoint(gather);
    return gather;
  }

  /// Elements of the interior first, so that all lanes of a warp but one do
  /// the same.
  void emitNumbered(ValueRange lows, ValueRange extents) {
    Values highs;
    for (auto [low, extent] : llvm::zip(lows, extents))
      highs.push_back(front.createOrFold<arith::AddIOp>(low, extent));
    ir::RangeOp gather = emitRange(lows.front());
    Builder b = Builder::atBlockBegin(range.getLoc(), gather.getBody());
    scf::IfOp items = emitBranch(b);
    Builder then(range.getLoc(), items.thenBlock()->getTerminator());
    for (size_t p = 0; p < lows.size(); ++p)
      element.push_back(UnrealizedConversionCastOp::create(
                            then, then.getI64Type(), ValueRange())
                            .getResult(0));
    emitInterior(then);
    SmallVector<Cut> cuts; // which the interior decides
    for (auto [p, low] : llvm::enumerate(lows))
      cuts.push_back(cutBetween(front, low, least(front, inner[p].lows, -1),
                                least(front, inner[p].highs), highs[p]));
    gather.getExtentsMutable().assign(countAll(front, cuts));
    Value number = gather.getIndices().front(),
          inside = countInside(front, cuts);
    b.setInsertionPoint(items);
    items.getConditionMutable().assign(
        compare(b, arith::CmpIPredicate::slt, number, inside));
    then.setInsertionPointToStart(items.thenBlock());
    for (auto [unknown, value] :
         llvm::zip(element, elementInside(front, then, cuts, number))) {
      unknown.replaceAllUsesWith(value);
      unknown.getDefiningOp()->erase();
    }
    Builder otherwise(range.getLoc(), items.elseBlock()->getTerminator());
    element = elementOfBorder(front, otherwise, cuts,
                              arith::SubIOp::create(otherwise, number, inside));
    emitBorder(otherwise, /*ofRow=*/false);
  }

  /// Rows of the interior have ends of their own, with fewer conditions.
  void emitParts(Builder &b) {
    unsigned last = inner.size() - 1;
    scf::IfOp rows;
    if (last > 0) {
      rows = emitBranch(b);
      Builder otherwise(range.getLoc(), rows.elseBlock()->getTerminator());
      emitBorder(otherwise, /*ofRow=*/false);
    }
    Builder row(range.getLoc(),
                rows ? rows.thenBlock()->getTerminator() : gatherEnd(b));
    scf::IfOp items = emitBranch(row);
    Builder then(range.getLoc(), items.thenBlock()->getTerminator());
    emitInterior(then);
    Builder otherwise(range.getLoc(), items.elseBlock()->getTerminator());
    emitBorder(otherwise, /*ofRow=*/last > 0);
    b.setInsertionPoint(rows ? rows : items);
    items.getConditionMutable().assign(isInside(b, last, last + 1));
    if (rows)
      rows.getConditionMutable().assign(isInside(b, 0, last));
  }

  static Operation *gatherEnd(Builder &b) {
    return b.getInsertionBlock()->getTerminator();
  }

  /// A branch whose condition is not known yet.
  scf::IfOp emitBranch(Builder &b) {
    Value unknown = arith::ConstantOp::create(b, b.getBoolAttr(true));
    auto branch = scf::IfOp::create(b, unknown, /*withElseRegion=*/true);
    branch->setAttr(ir::interiorAttr, front.getUnitAttr());
    return branch;
  }

  /// In the dimensions [begin, end).
  Value isInside(Builder &b, unsigned begin, unsigned end) {
    using P = arith::CmpIPredicate;
    Value inside;
    for (unsigned p = begin; p < end; ++p) {
      Value low = least(front, inner[p].lows, -1),
            high = least(front, inner[p].highs);
      inside = both(b, inside, compare(b, P::sge, element[p], low));
      inside = both(b, inside, compare(b, P::slt, element[p], high));
    }
    return inside;
  }

  //===-- Where all work items around an element exist --------------------===//

  void emitInterior(Builder &b) {
    std::vector<Contribution> all;
    for (const Together &together : byShift(additions, range))
      for (auto &[add, term] : copyInside(b, together))
        all.push_back({add, term, together.shifts, numberOf(add)});
    emitSums(b, std::move(all));
  }

  size_t numberOf(Operation *add) {
    return llvm::find_if(additions,
                         [&](const Addition &a) { return a.op == add; }) -
           additions.begin();
  }

  /// Work item `element - shifts`, whose indices and conditions are those of
  /// most work items.
  Terms copyInside(Builder &b, const Together &together) {
    ArrayRef<Affine> shifts = together.shifts;
    auto known = [&](OpBuilder &inner, Value value) {
      return mainValue(inner, value, shifts);
    };
    SliceCopy copy(together.slice, known);
    mapItem(b, copy.values, shifts);
    return copy.copy(b, *range.getBody(), together.additions);
  }

  /// What most of the work items `element - shifts` have, if all but those of
  /// a border agree.
  Value mainValue(OpBuilder &inner, Value value, ArrayRef<Affine> shifts) {
    const Steps *steps = knownSteps(value);
    if (!steps || !isSameInside(value, *steps))
      return {};
    unsigned p = cast<BlockArgument>(steps->index).getArgNumber();
    size_t main = steps->longest(extentOf(p));
    restrict(p, shifts[p], *steps, main);
    Affine form = steps->all[main].value;
    form.add(shifts[p], -form.coefficient(steps->index));
    Builder at(value.getLoc(), inner);
    return ofType(at, emit(at, form, steps->index, element[p]),
                  value.getType());
  }

  /// Its indices are computed where they are used, from the element.
  void mapItem(Builder &b, IRMapping &values, ArrayRef<Affine> shifts) {
    for (auto [p, index] : llvm::enumerate(range.getIndices())) {
      Affine item;
      item.terms[element[p]] = 1;
      values.map(index, emit(b, minus(item, shifts[p])));
    }
  }

  static Value ofType(Builder &b, Value value, Type type) {
    if (type.isInteger(64))
      return value;
    return b.createOrFold<arith::TruncIOp>(type, value);
  }

  /// Null unless they hold wherever there is the new range.
  const Steps *knownSteps(Value value) {
    const Steps *steps =
        value.getType().isInteger() ? analysis.of(value) : nullptr;
    bool holds = steps && steps->index &&
                 llvm::all_of(steps->assumed, [&](const Affine &form) {
                   return isAssumed(form);
                 });
    return holds ? steps : nullptr;
  }

  bool isAssumed(const Affine &form) const {
    if (form.isConstant())
      return form.constant >= 0;
    return llvm::any_of(assumed,
                        [&](const Affine &a) { return isSame(a, form); });
  }

  /// Whether all work items but those of a border agree on the step.
  bool isSameInside(Value value, const Steps &steps) const {
    unsigned p = cast<BlockArgument>(steps.index).getArgNumber();
    size_t main = steps.longest(extentOf(p));
    bool isCondition = value.getType().isInteger(1);
    constexpr int64_t border = 16;
    Affine before = steps.all[main].from,
           after = minus(extentOf(p), steps.end(main, extentOf(p)));
    return llvm::all_of(ArrayRef{before, after}, [&](const Affine &length) {
      return length.isConstant() ? length.constant <= border : !isCondition;
    });
  }

  void restrict(unsigned p, const Affine &shift, const Steps &steps,
                size_t main) {
    Affine low = steps.all[main].from, high = steps.end(main, extentOf(p));
    low.add(shift, 1);
    high.add(shift, 1);
    inner[p].lows.push_back(low);
    inner[p].highs.push_back(high);
  }

  //===-- Elsewhere -------------------------------------------------------===//

  /// `ofRow`: only the last index may be that of a border.
  void emitBorder(Builder &b, bool ofRow) {
    std::vector<Contribution> all;
    for (const Together &together : together())
      forEachCandidate(
          together, ofRow, [&](ArrayRef<const Candidate *> chosen) {
            SmallVector<Affine> shifts;
            for (const Candidate *candidate : chosen)
              shifts.push_back(candidate->distance());
            for (auto &[add, term] : copyIfThere(b, together, chosen, ofRow))
              all.push_back({add, term, shifts, numberOf(add)});
          });
    emitSums(b, std::move(all));
  }

  /// Additions that the same work items make; those of several steps alone.
  std::vector<Together> together() {
    std::vector<Addition> plain, rest;
    for (const Addition &addition : additions)
      (addition.isPlain() ? plain : rest).push_back(addition);
    std::vector<Together> all = byShift(plain, range);
    for (const Addition &addition : rest)
      llvm::append_range(all, byShift(addition, range));
    return all;
  }

  void
  forEachCandidate(const Together &together, bool ofRow,
                   llvm::function_ref<void(ArrayRef<const Candidate *>)> f) {
    auto &lists = candidatesOf[together.additions.front()];
    SmallVector<SmallVector<const Candidate *>> choices(lists.size());
    for (auto [p, list] : llvm::enumerate(lists))
      for (const Candidate &candidate : list)
        if (!ofRow || candidate.isMain || p + 1 == lists.size())
          choices[p].push_back(&candidate);
    SmallVector<size_t> at(choices.size(), 0);
    while (true) {
      SmallVector<const Candidate *> chosen;
      for (auto [k, list] : llvm::zip(at, choices))
        chosen.push_back(list[k]);
      f(chosen);
      size_t p = 0;
      while (p < at.size() && ++at[p] == choices[p].size())
        at[p++] = 0;
      if (p == at.size())
        return;
    }
  }

  /// `ofRow`: of other indices it is known that they are there.
  Terms copyIfThere(Builder &b, const Together &together,
                    ArrayRef<const Candidate *> chosen, bool ofRow) {
    Box box = commonConditions(together);
    unsigned last = chosen.size() - 1;
    Values items;
    Value outside, inRow;
    for (auto [p, candidate] : llvm::enumerate(chosen)) {
      items.push_back(itemOf(b, p, *candidate));
      if (!ofRow || p == last)
        (p == last ? inRow : outside) =
            both(b, p == last ? inRow : outside,
                 isThere(b, p, *candidate, box.sides[p], items.back()));
    }
    if (branchless)
      return copyAnyway(b, together, box, items, ofRow,
                        both(b, outside, inRow));
    auto copy = [&](OpBuilder &inner) {
      return copyItem(inner, together, box, items, ofRow);
    };
    // What a row has in common is asked first.
    if (!outside)
      return guarded(b, range.getLoc(), inRow, copy);
    return guarded(b, range.getLoc(), outside, [&](OpBuilder &inner) {
      return guarded(inner, range.getLoc(), inRow, copy);
    });
  }

  /// Conditions of branches around all of `together`, which hold for few work
  /// items or for all but few of them.
  Box commonConditions(const Together &together) {
    Box box;
    box.sides.resize(indices.size());
    if (branchless && pushes(range)) // which cannot be `divide`d
      return box;
    Operation *op = together.additions.front();
    for (; op->getParentOp() != range; op = op->getParentOp()) {
      auto branch = cast<scf::IfOp>(op->getParentOp());
      bool areAllThere = llvm::all_of(together.additions, [&](auto add) {
        return op->getParentRegion()->isAncestor(add->getParentRegion());
      });
      if (areAllThere)
        box.add(analysis, range, branch.getCondition(),
                op->getBlock() == branch.thenBlock(),
                [&](Value condition, const Steps &steps) {
                  return isSameInside(condition, steps) &&
                         (!branchless ||
                          llvm::all_of(steps.all, [](const Step &step) {
                            return isKnownToHost(step.from);
                          }));
                });
    }
    return box;
  }

  Terms copyItem(OpBuilder &inner, const Together &together, const Box &box,
                 ValueRange items, bool ofRow) {
    auto known = [&](OpBuilder &nested, Value value) -> Value {
      if (ofRow && isOuter(value))
        if (Value main = mainValue(nested, value, together.shifts))
          return main;
      if (auto found = box.answers.find(value); found != box.answers.end())
        return arith::ConstantOp::create(nested, value.getLoc(),
                                         nested.getBoolAttr(found->second));
      return stepwise(nested, value, items);
    };
    SliceCopy copy(together.slice, known);
    copy.values.map(range.getIndices(), items);
    Builder at(range.getLoc(), inner);
    if (!branchless)
      mapPositions(at, together, copy.values);
    return copy.copy(inner, *range.getBody(), together.additions);
  }

  /// What waits for no condition loads all that it needs at once.
  Terms copyAnyway(Builder &b, const Together &together, const Box &box,
                   ValueRange items, bool ofRow, Value there) {
    Values others;
    for (auto [p, item] : llvm::enumerate(items))
      others.push_back(ofRow && p + 1 < items.size()
                           ? item
                           : nearest(b, p, box.sides[p], item));
    Terms terms = copyItem(b, together, box, others, ofRow);
    for (auto &[add, term] : terms) {
      Value none = nothing(b, range.getLoc(), term.value.getType());
      term = {arith::SelectOp::create(b, there, term.value, none),
              both(b, there, term.condition)};
    }
    return terms;
  }

  /// The work item between `sides` that stands in for `item`.
  Value nearest(Builder &b, unsigned p, Bounds sides, Value item) {
    sides.lows.push_back(Affine());
    sides.highs.push_back(extentOf(p));
    for (Affine &high : sides.highs)
      --high.constant;
    item = b.createOrFold<arith::MinSIOp>(item, least(b, sides.highs));
    return b.createOrFold<arith::MaxSIOp>(item, least(b, sides.lows, -1));
  }

  /// Whether `value` follows from another index than the last one.
  bool isOuter(Value value) {
    const Steps *steps = knownSteps(value);
    return steps && steps->index != indices.back();
  }

  /// Indices of elements need not be computed from work items.
  void mapPositions(Builder &b, const Together &together, IRMapping &values) {
    for (const Addition &addition : additions)
      if (llvm::is_contained(together.additions, addition.op))
        for (const Reach &reach : addition.reaches)
          if (reach.steps->all.size() > 1)
            values.map(addition.indices[reach.dim], positionOf(b, reach));
  }

  /// An index of work item `items` by comparisons, which vectors can do.
  Value stepwise(OpBuilder &inner, Value value, ValueRange items) {
    const Steps *steps = knownSteps(value);
    if (!steps || value.getType().isInteger(1))
      return {};
    Value item = items[cast<BlockArgument>(steps->index).getArgNumber()];
    Builder b(value.getLoc(), inner);
    Value result;
    for (const Step &step : steps->all) {
      Value next = emit(b, step.value, steps->index, item);
      if (!result) {
        result = next;
        continue;
      }
      Value isThere =
          compare(b, arith::CmpIPredicate::sge, item, emit(b, step.from));
      result = b.createOrFold<arith::SelectOp>(isThere, next, result);
    }
    return ofType(b, result, value.getType());
  }

  Value itemOf(Builder &b, unsigned p, const Candidate &candidate) {
    if (!candidate.shift)
      return emit(b, candidate.item);
    Affine item;
    item.terms[element[p]] = 1;
    return emit(b, minus(item, *candidate.shift));
  }

  /// Whether the work item exists, lies between `sides`, and reaches the
  /// element; null if that holds for each element of the range.
  Value isThere(Builder &b, unsigned p, const Candidate &candidate,
                const Bounds &sides, Value item) {
    using P = arith::CmpIPredicate;
    Bounds bounds = sides;
    bounds.highs.push_back(candidate.to);
    bounds.highs.push_back(extentOf(p));
    if (candidate.shift)
      bounds.lows.push_back(candidate.from);
    if (!candidate.from.isConstant()) // negative if there are no work items
      bounds.lows.push_back(Affine());
    if (candidate.shift && !branchless)
      dropImplied(p, *candidate.shift, bounds);
    Value there;
    if (!bounds.highs.empty())
      there = compare(b, P::slt, item, least(b, bounds.highs));
    if (!bounds.lows.empty())
      there =
          both(b, there, compare(b, P::sge, item, least(b, bounds.lows, -1)));
    if (!candidate.shift)
      there = both(b, there,
                   compare(b, P::eq, element[p], emit(b, candidate.target)));
    return there;
  }

  /// Drops bounds of work item `element - shift` that no element is beyond.
  void dropImplied(unsigned p, const Affine &shift, Bounds &bounds) {
    auto isWithin = [&](ArrayRef<Affine> elements, Affine bound, int sign) {
      bound.add(shift, 1);
      return llvm::all_of(elements, [&](const Affine &element) {
        auto distance = constantDifference(bound, element);
        return distance && sign * *distance >= 0;
      });
    };
    llvm::erase_if(bounds.lows, [&](const Affine &low) {
      return isWithin(hull[p].lows, low, -1);
    });
    llvm::erase_if(bounds.highs, [&](const Affine &high) {
      return isWithin(hull[p].highs, high, 1);
    });
  }

  //===-- Sums ------------------------------------------------------------===//

  Value positionOf(Builder &b, const Reach &reach) {
    unsigned p = cast<BlockArgument>(reach.steps->index).getArgNumber();
    Affine form = reach.base;
    form.constant += reach.rest;
    Affine own;
    own.terms[element[p]] = 1;
    form.add(own, reach.slope);
    return emit(b, form);
  }

  /// What is added to an element.
  struct Sum {
    const Addition &addition;
    SmallVector<Term> terms;
    Location places; ///< of all that is added
    Values position = {};
    Value old = {};

    bool isConditional() const {
      return llvm::all_of(terms,
                          [](const Term &term) { return term.condition; });
    }
  };

  /// For each frame, the terms in the order in which one thread comes to them:
  /// that of the work items, and then of the program.
  std::vector<Sum> sumsOf(ArrayRef<Contribution> terms) {
    std::vector<Sum> sums;
    SmallVector<bool> done(additions.size());
    for (size_t k = 0; k < additions.size(); ++k) {
      if (done[k])
        continue;
      llvm::DenseSet<Operation *> mine;
      SmallVector<Location> places;
      for (size_t other = k; other < additions.size(); ++other)
        if (sameFrame(additions[k], additions[other])) {
          done[other] = true;
          ir::AtomicAddOp op = additions[other].op;
          mine.insert(op);
          places.push_back(op.getLoc());
        }
      Sum sum{additions[k], {}, FusedLoc::get(range.getContext(), places)};
      for (const Contribution &contribution : terms)
        if (mine.contains(contribution.add))
          sum.terms.push_back(contribution.term);
      if (!sum.terms.empty())
        sums.push_back(std::move(sum));
    }
    return sums;
  }

  /// A store holds up the loads after it, so elements of different arrays are
  /// loaded before.
  void emitSums(Builder &b, std::vector<Contribution> terms) {
    llvm::sort(terms, comesFirst);
    std::vector<Sum> sums = sumsOf(terms);
    llvm::DenseSet<Value> arrays;
    for (Sum &sum : sums)
      if (arrays.insert(sum.addition.array).second && !sum.isConditional())
        loadOld(b, sum);
    for (Sum &sum : sums)
      emitSum(b, sum);
  }

  void loadOld(Builder &b, Sum &sum) {
    const Addition &addition = sum.addition;
    b.setLoc(sum.places);
    for (Value index : addition.indices)
      sum.position.push_back(
          isUniform(index, range) ? emit(b, Affine::of(index)) : index);
    for (const Reach &reach : addition.reaches)
      sum.position[reach.dim] = positionOf(b, reach);
    sum.old = ir::LoadOp::create(b, sum.terms.front().value.getType(),
                                 addition.array, sum.position);
  }

  /// Whether the work item of `a` comes before that of `b`.
  static bool comesFirst(const Contribution &a, const Contribution &b) {
    for (auto [x, y] : llvm::zip(a.shifts, b.shifts))
      if (int64_t distance = estimate(minus(x, y)))
        return distance > 0;
    return a.number < b.number;
  }

  void emitSum(Builder &b, Sum &sum) {
    OpBuilder::InsertionGuard guard(b);
    b.setLoc(sum.places);
    if (sum.isConditional()) {
      Value any = sum.terms.front().condition;
      for (const Term &term : ArrayRef(sum.terms).drop_front())
        any = arith::OrIOp::create(b, any, term.condition);
      auto branch = scf::IfOp::create(b, any, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    if (!sum.old)
      loadOld(b, sum);
    Value value = sum.old;
    for (const Term &term : sum.terms)
      value = arith::AddFOp::create(b, value, term.value);
    ir::StoreOp::create(b, value, sum.addition.array, sum.position);
  }

  ir::RangeOp range;
  ValueRange indices;
  StepAnalysis &analysis;
  ArrayRef<Addition> additions;
  bool numbered;   ///< by `Numbers.h`
  bool branchless; ///< at borders
  Builder front;   ///< in front of the range
  SmallVector<Affine> assumed;
  llvm::DenseMap<Operation *, std::vector<std::vector<Candidate>>> candidatesOf;
  std::vector<Bounds> inner, hull; ///< by index of the range
  Values element;
};

//===-- Assumptions -------------------------------------------------------===//

/// What is not decided yet among `forms`; nothing if one cannot hold, or the
/// host cannot tell.
std::optional<SmallVector<Affine>> open(ArrayRef<Affine> forms) {
  SmallVector<Affine> rest;
  for (const Affine &form : forms) {
    if (form.isConstant() && form.constant < 0)
      return std::nullopt;
    if (form.isConstant() ||
        llvm::any_of(rest, [&](const Affine &a) { return isSame(a, form); }))
      continue;
    if (!isKnownToHost(form))
      return std::nullopt;
    rest.push_back(form);
  }
  return rest;
}

/// if all of `forms` hold { range } else { a copy of it }
void divide(ir::RangeOp range, ArrayRef<Affine> forms) {
  Builder b(range.getLoc(), range);
  Value holds;
  for (const Affine &form : forms)
    holds = both(
        b, holds,
        compare(b, arith::CmpIPredicate::sge, emit(b, form), constant(b, 0)));
  auto branch = scf::IfOp::create(b, range.getResultTypes(), holds,
                                  /*withElseRegion=*/true);
  range->replaceAllUsesWith(branch);
  Operation *other = range->clone();
  for (auto [block, op] : {std::pair(branch.thenBlock(), range.getOperation()),
                           std::pair(branch.elseBlock(), other)}) {
    if (op->getBlock())
      op->moveBefore(block, block->begin());
    else
      block->push_front(op);
    if (op->getNumResults()) {
      b.setInsertionPointToEnd(block);
      scf::YieldOp::create(b, op->getResults());
    }
  }
}

bool addsToAdjoints(ir::RangeOp range) {
  return range
      .walk([](ir::AtomicAddOp add) {
        return ir::isOfAdjoint(add.getArray()) ? WalkResult::interrupt()
                                               : WalkResult::advance();
      })
      .wasInterrupted();
}

bool gather(ir::RangeOp range, bool numbered) {
  if (!addsToAdjoints(range))
    return false;
  flattenChoices(range);
  StepAnalysis analysis(range);
  std::vector<Addition> additions = Collector(range, analysis).run();
  if (additions.empty())
    return false;
  Gatherer gatherer(range, analysis, additions, numbered);
  if (!gatherer.plan())
    return false;
  auto undecided = open(gatherer.assumptions());
  if (!undecided || (!undecided->empty() && pushes(range)))
    return false;
  if (!undecided->empty())
    divide(range, *undecided);
  gatherer.emitRange();
  for (const Addition &addition : additions)
    addition.op->erase();
  return true;
}

} // namespace

static SmallVector<ir::RangeOp> rangesOf(ir::KernelOp kernel) {
  SmallVector<ir::RangeOp> ranges;
  kernel.walk([&](ir::RangeOp range) { ranges.push_back(range); });
  return ranges;
}

void gatherAdditions(ir::KernelOp kernel, bool numbered) {
  bool changed = false;
  for (ir::RangeOp range : rangesOf(kernel))
    changed |= gather(range, numbered);
  if (!changed)
    return;
  prune(kernel);
  for (ir::RangeOp range : rangesOf(kernel))
    if (!range->hasAttr(ir::gatherAttr))
      narrow(range);
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
}

} // namespace costate::autodiff
