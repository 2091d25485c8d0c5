#include "autodiff/replay/Owners.h"

#include "autodiff/activity/Activity.h"
#include "autodiff/replay/Fetches.h"
#include "autodiff/replay/Replay.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"
#include "ir/Source.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace costate::autodiff {

static constexpr llvm::StringLiteral checkAttr = "costate.owner_check";

/// On loads and their copies in checks: the number of the load.
static constexpr llvm::StringLiteral copiedAttr = "costate.owner_copied";

bool isOwnerCheck(Operation *op) { return op->hasAttr(checkAttr); }

static bool isInCheck(Operation *op) {
  auto range = op->getParentOfType<ir::RangeOp>();
  return range && isOwnerCheck(range);
}

SmallVector<ir::LoadOp> copiedLoads(ir::KernelOp kernel, ir::LoadOp load) {
  if (!isInCheck(load))
    return {load};
  return ir::all<ir::LoadOp>(kernel, [&](ir::LoadOp other) {
    return !isInCheck(other) &&
           integerOf(other, copiedAttr) == integerOf(load, copiedAttr);
  });
}

void forgetCopies(ir::KernelOp kernel) {
  kernel.walk([](ir::LoadOp load) { load->removeAttr(copiedAttr); });
}

void eraseOwnerChecks(ir::KernelOp kernel) {
  for (auto range : ir::all<ir::RangeOp>(kernel, isOwnerCheck))
    range->erase();
}

//===-- What is to be asked -----------------------------------------------===//

static bool isWritten(ArrayRef<ArrayAccess> accesses) {
  return llvm::any_of(accesses, [](auto &access) { return access.isWrite(); });
}

bool Steering::add(ArrayRef<ir::LoadOp> needed) {
  size_t known = places.size();
  for (ir::LoadOp load : needed) {
    auto range = load->getParentOfType<ir::RangeOp>();
    if (!range || isOwnerCheck(range) || ir::isDirectory(load.getArray()))
      continue;
    auto accesses = accessesByArray(range).lookup(load.getArray());
    if (isWritten(accesses) && !areExclusive(range, accesses))
      places.insert({argumentOf(load.getArray()), partNumber(range)});
  }
  return places.size() > known;
}

bool Steering::contains(ir::RangeOp range, Value array) const {
  return places.contains({argumentOf(array), partNumber(range)});
}

namespace {

/// An access of a work item: whether the element may then have no writer but
/// this work item, and whether this is one. Some stores may meet others that
/// are `common` as well, and additions others that are `shared`.
struct Use {
  ArrayAccess access;
  bool writes, asks, common, shared;
};

/// The uses of an array that meet, and whether there are such among them.
struct Contest {
  SmallVector<Use> uses;
  bool common = false, shared = false;
};
using ContestsByArray = llvm::MapVector<Value, Contest>;

/// Finds the uses by which work items of a range could get each other's
/// derivatives.
class Contests {
public:
  Contests(ir::KernelOp kernel, ArrayRef<bool> active, const Steering &steering)
      : kernel(kernel), active(active), steering(steering),
        activity(kernel, [this](Value array) { return isActive(array); }) {}

  ContestsByArray of(ir::RangeOp range) const {
    ContestsByArray contests;
    if (llvm::all_of(range.getExtents(), isAtMostOne))
      return contests;
    for (auto &[array, accesses] : accessesByArray(range))
      if ((isActive(array) || steering.contains(range, array)) &&
          !areExclusive(range, accesses))
        if (Contest found = contest(range, accesses); !found.uses.empty())
          contests[array] = std::move(found);
    return contests;
  }

private:
  bool isActive(Value array) const { return active[argumentOf(array)]; }

  bool isVaried(const ArrayAccess &write) const {
    return activity.isVaried(write.op->getOperand(0));
  }

  /// Whether derivatives flow through what is loaded from `array`.
  bool passesOn(Value array) const {
    Activity own(kernel, [&](Value other) { return other == array; });
    return llvm::any_of(accessesIn(kernel), [&](const ArrayAccess &access) {
      return access.isWrite() && isActive(access.array) &&
             own.isVaried(access.op->getOperand(0));
    });
  }

  /// The stores of what has no derivative, or if there are none, those of one
  /// value by all work items: who is the last of them does not matter.
  llvm::SmallPtrSet<Operation *, 4>
  commonAmong(ir::RangeOp range, ArrayRef<ArrayAccess> stores) const {
    llvm::SmallPtrSet<Operation *, 4> common;
    for (const ArrayAccess &store : stores)
      if (!isVaried(store))
        common.insert(store.op);
    if (!common.empty())
      return common;
    auto isOfAll = [&](const ArrayAccess &store) {
      return isUniform(store.op->getOperand(0), range);
    };
    auto first = llvm::find_if(stores, isOfAll);
    for (const ArrayAccess &store : llvm::make_range(first, stores.end()))
      if (store.op->getOperand(0) == first->op->getOperand(0))
        common.insert(store.op);
    return common;
  }

  static bool isAddition(const ArrayAccess &access) {
    return isa<ir::AtomicAddOp>(access.op);
  }
  static bool isShareable(const ArrayAccess &access) {
    return access.isLoad() || isAddition(access) || isa<ir::StoreOp>(access.op);
  }

  Contest contest(ir::RangeOp range, ArrayRef<ArrayAccess> accesses) const {
    SmallVector<ArrayAccess> stores;
    llvm::copy_if(accesses, std::back_inserter(stores),
                  [](auto &access) { return isa<ir::StoreOp>(access.op); });
    auto common = commonAmong(range, stores);
    bool differ = common.size() < stores.size() && !areExclusive(range, stores);
    Value array = accesses.front().array;
    bool loads =
        llvm::any_of(accesses, [](auto &access) { return access.isLoad(); }) &&
        (steering.contains(range, array) || passesOn(array));
    // Additions may meet each other, if stores and loads ask about them.
    bool shares = loads && llvm::any_of(accesses, isAddition) &&
                  llvm::all_of(accesses, isShareable);
    SmallVector<Use> uses;
    for (const ArrayAccess &access : accesses) {
      bool isStore = isa<ir::StoreOp>(access.op);
      bool shared = shares && isAddition(access);
      bool writes = isStore || (loads && access.isWrite());
      bool asks = access.isLoad() ? loads
                  : isStore       ? differ || shares
                                  : !shared && (loads || isVaried(access));
      uses.push_back(
          {access, writes, asks, differ && common.contains(access.op), shared});
    }
    return needed(range, uses);
  }

  /// Those among `uses` that nothing else clears.
  static Contest needed(ir::RangeOp range, ArrayRef<Use> uses) {
    SmallVector<ArrayAccess> writers, all;
    for (const Use &use : uses)
      if (use.writes)
        writers.push_back(use.access);
    Contest rest;
    bool asks = false;
    for (const Use &use : uses)
      if (use.writes || (use.asks && mayMeet(range, use.access, writers))) {
        rest.uses.push_back(use), all.push_back(use.access);
        asks |= use.asks;
        rest.common |= use.common;
        rest.shared |= use.shared;
      }
    if (writers.empty() || !asks || areExclusive(range, all))
      return {};
    return rest;
  }

  static bool mayMeet(ir::RangeOp range, const ArrayAccess &access,
                      ArrayRef<ArrayAccess> writers) {
    auto isFixed = [&](Value symbol) { return isUniform(symbol, range); };
    return llvm::any_of(writers, [&](const ArrayAccess &writer) {
      return !certainlyApart(access, writer, isFixed);
    });
  }

  ir::KernelOp kernel;
  ArrayRef<bool> active;
  const Steering &steering;
  Activity activity;
};

//===-- How it is asked ---------------------------------------------------===//

/// Where elements are written.
ArrayAttr placesOf(Builder &b, ArrayRef<Use> uses) {
  llvm::SetVector<Attribute> places;
  for (const Use &use : uses)
    if (FileLineColLoc place = ir::sourceOf(use.access.op->getLoc());
        place && use.writes)
      places.insert(place);
  return b.getArrayAttr(places.getArrayRef());
}

StringRef textOf(Operation *use, bool meetsAdditions) {
  if (isa<ir::StoreOp>(use) && !meetsAdditions)
    return "several work items of the range store to this element, as@, so "
           "which value remains is left to chance and the gradient is not "
           "defined; add with `+=`, or store in serial code";
  if (use->hasAttr(productAttr))
    return "`atomic_mul` has no derivative where another work item of the "
           "range writes to the element, as@; let each work item have an "
           "element of its own, or multiply in serial code";
  return "one work item of the range uses the element that another one "
         "writes@, so what it finds is left to chance and the gradient is not "
         "defined; write to another array, use one range for each, or do it "
         "in serial code";
}

/// The number of a work item, row by row.
Value numberOf(Builder &b, ir::RangeOp range) {
  Value number = range.getBody()->getArgument(0);
  for (auto [extent, index] :
       llvm::drop_begin(llvm::zip(range.getExtents(), range.getIndices())))
    number = arith::AddIOp::create(b, arith::MulIOp::create(b, number, extent),
                                   index);
  return number;
}

class Asking {
public:
  explicit Asking(ir::KernelOp kernel) : kernel(kernel) {}

  void ask(ir::RangeOp range, const ContestsByArray &contests) {
    // Who only asks about what it writes finds a writer in any case.
    auto asksOthers = [](auto &contest) {
      return llvm::any_of(contest.second.uses,
                          [](auto &use) { return use.asks && !use.writes; });
    };
    auto isMixed = [](auto &contest) { return contest.second.common; };
    auto isShared = [](auto &contest) { return contest.second.shared; };
    range.walk([&](ir::LoadOp load) {
      Builder b(load.getLoc(), load);
      load->setAttr(copiedAttr, b.getI64IntegerAttr(loads++));
    });
    if (llvm::any_of(contests, asksOthers))
      addStep(range, contests, &Asking::forget);
    if (llvm::any_of(contests, isMixed))
      addStep(range, contests, &Asking::noteCommon);
    addStep(range, contests, &Asking::note);
    if (llvm::any_of(contests, isShared))
      addStep(range, contests, &Asking::noteOthers);
    addStep(range, contests, &Asking::check);
  }

private:
  using Step = void (Asking::*)(Builder &, const Use &, const Contest &,
                                ArrayAccess, Value);

  /// A copy of `range` that takes a step at each use.
  void addStep(ir::RangeOp range, const ContestsByArray &contests, Step step) {
    Builder b(range.getLoc(), range);
    auto copy = ir::RangeOp::create(b, range.getExtents());
    copy->setAttr(checkAttr, b.getUnitAttr());
    b.setInsertionPointToStart(copy.getBody());
    Value number = numberOf(b, copy);
    IRMapping copies;
    copies.map(range.getBody()->getArguments(), copy.getBody()->getArguments());
    for (Operation &op : range.getBody()->without_terminator())
      b.clone(op, copies);
    for (auto &[array, contest] : contests)
      for (const Use &use : contest.uses) {
        Operation *op = copies.lookup(use.access.op);
        Builder at(op->getLoc(), op);
        ArrayAccess access = *accessOf(op);
        access.array = ownersOf(array);
        (this->*step)(at, use, contest, access, number);
      }
  }

  void forget(Builder &b, const Use &, const Contest &, ArrayAccess access,
              Value) {
    keep(b, ir::StoreOp::create(b, none(b), access.array, access.indices));
  }

  /// One of several writers remains, whichever; another one finds it.
  void note(Builder &b, const Use &use, const Contest &, ArrayAccess access,
            Value number) {
    if (use.writes && !use.common)
      keep(b, ir::StoreOp::create(b, number, access.array, access.indices));
  }

  /// That there are several, whom nobody needs to tell apart.
  void noteOthers(Builder &b, const Use &use, const Contest &,
                  ArrayAccess access, Value number) {
    if (!use.shared)
      return;
    Value owner =
        ir::LoadOp::create(b, b.getI64Type(), access.array, access.indices);
    Value isOther =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, owner, number);
    auto branch = scf::IfOp::create(b, isOther, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    keep(b, ir::StoreOp::create(b, several(b), access.array, access.indices));
  }

  /// Only where nobody else writes.
  void noteCommon(Builder &b, const Use &use, const Contest &,
                  ArrayAccess access, Value number) {
    if (use.common)
      keep(b, ir::StoreOp::create(b, commonOf(b, number), access.array,
                                  access.indices));
  }

  void check(Builder &b, const Use &use, const Contest &contest,
             ArrayAccess access, Value number) {
    if (!use.asks)
      return;
    using P = arith::CmpIPredicate;
    Value owner =
        ir::LoadOp::create(b, b.getI64Type(), access.array, access.indices);
    Value mine = arith::CmpIOp::create(b, P::eq, owner, number);
    Value nobodys = arith::CmpIOp::create(b, P::eq, owner, none(b));
    Value mayBe = arith::OrIOp::create(b, mine, nobodys);
    if (contest.common) {
      Value bound = use.common ? none(b) : commonOf(b, number);
      P fits = use.common ? P::slt : P::eq;
      Value common = arith::CmpIOp::create(b, fits, owner, bound);
      mayBe = arith::OrIOp::create(b, mayBe, common);
    }
    auto assertion =
        ir::AssertOp::create(b, mayBe, textOf(use.access.op, contest.shared),
                             ValueRange(), /*refuses=*/true);
    assertion->setAttr(ir::placesAttr, placesOf(b, contest.uses));
  }

  /// What a work item notes of a common store: below -1, the sign of nobody.
  static Value commonOf(Builder &b, Value number) {
    return arith::SubIOp::create(b, indexConstant(b, -2), number);
  }

  static Value none(Builder &b) { return indexConstant(b, -1); }
  static Value several(Builder &b) {
    return indexConstant(b, std::numeric_limits<int64_t>::max());
  }

  /// Gradients keep what they have to do again.
  static void keep(Builder &b, Operation *write) {
    write->setAttr(ir::replayedAttr, b.getI64IntegerAttr(0));
  }

  Value ownersOf(Value array) {
    Value &known = owners[array];
    if (known)
      return known;
    auto type = cast<ir::ArrayType>(array.getType());
    Type number = IntegerType::get(kernel.getContext(), 64);
    return known = appendArray(
               kernel, array,
               ir::ArrayType::get(kernel.getContext(), number, type.getRank()),
               ir::ownersOfAttr);
  }

  ir::KernelOp kernel;
  int64_t loads = 0;
  llvm::DenseMap<Value, Value> owners;
};

} // namespace

void checkOwners(ir::KernelOp gradient, ArrayRef<bool> active,
                 const Steering &steering) {
  Contests contests(gradient, active, steering);
  SmallVector<std::pair<ir::RangeOp, ContestsByArray>> found;
  gradient.walk([&](ir::RangeOp range) {
    if (ContestsByArray here = contests.of(range); !here.empty())
      found.emplace_back(range, std::move(here));
  });
  Asking asking(gradient);
  for (auto &[range, here] : found)
    asking.ask(range, here);
}

} // namespace costate::autodiff
