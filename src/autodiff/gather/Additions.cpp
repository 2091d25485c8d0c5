#include "autodiff/gather/Additions.h"

#include "autodiff/gather/Forms.h"
#include "autodiff/replay/Replay.h"
#include "ir/Tape.h"

using namespace mlir;

namespace costate::autodiff {

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
static SmallVector<Affine> shiftsOf(const Addition &addition) {
  SmallVector<Affine> shifts;
  for (const Reach &reach : addition.reaches)
    shifts.push_back(reach.shift(reach.main));
  return shifts;
}

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

bool pushes(ir::RangeOp range) { return ir::contains<tape::PushOp>(range); }

namespace {

constexpr size_t mostAdditions = 128;

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
    return weight <= gatherCosts().addition() * saved;
  }

  ir::RangeOp range;
  StepAnalysis &analysis;
  std::vector<Addition> additions;
};

} // namespace

std::vector<Addition> additionsOf(ir::RangeOp range, StepAnalysis &analysis) {
  return Collector(range, analysis).run();
}

} // namespace costate::autodiff
