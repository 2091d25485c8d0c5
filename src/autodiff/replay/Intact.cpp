#include "autodiff/replay/Intact.h"

#include "autodiff/Prune.h"
#include "autodiff/activity/Flow.h"
#include "autodiff/forward/Forward.h"
#include "autodiff/replay/Comparison.h"
#include "autodiff/replay/Fetches.h"
#include "autodiff/replay/Replay.h"
#include "autodiff/replay/Rounding.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

using Arguments = llvm::SetVector<unsigned>;

/// On loads, and on the assertions about them: their number.
constexpr llvm::StringLiteral loadAttr = "costate.check_load";
/// On accesses: the number of their part.
constexpr llvm::StringLiteral inPartAttr = "costate.check_part";
/// On loads of elements that may be written afterwards, and assertions of such.
constexpr llvm::StringLiteral openAttr = "costate.check_open";
/// On those among them whose element must have been written before.
constexpr llvm::StringLiteral strictAttr = "costate.check_strict";
/// On assertions about arrays with elements that come to a kink.
constexpr llvm::StringLiteral bendingAttr = "costate.check_bending";
/// On assertions about loads of what their part may have stored.
constexpr llvm::StringLiteral repeatedAttr = "costate.check_repeated";

constexpr llvm::StringLiteral readBefore =
    "the kernel reads this element before it writes it: {e}";
constexpr llvm::StringLiteral steers =
    "which elements the kernel uses follows from what it reads here before it "
    "writes it: {e}";

/// What is known of an element: nothing, that it was read before the launch has
/// written it, or in which part the launch has written it last.
enum Mark : int64_t { Untouched, Read, Written, Most = 127 };

/// As elements of i8 are computed with.
Value markOf(Builder &b, int64_t value) {
  return arith::ConstantOp::create(
      b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value compare(Builder &b, arith::CmpIPredicate predicate, Value one,
              Value other) {
  return arith::CmpIOp::create(b, predicate, one, other);
}

class Check {
public:
  Check(ir::KernelOp marked, unsigned arguments, ArrayRef<NeededLoad> needed,
        bool overwrites, bool isTolerant)
      : arguments(arguments), isFast(isTolerant), isTolerant(isTolerant),
        overwrites(overwrites) {
    Writes writes = writesOf(marked);
    for (auto &[array, accesses] : writes) {
      written.insert(argumentOf(array));
      auto isStore = [](auto &access) { return isa<ir::StoreOp>(access.op); };
      if (llvm::all_of(accesses, isStore) && !mayWriteAgain(writes, array))
        inPlace.insert(argumentOf(array));
    }
    classify(marked, writes, needed);
    findBending(marked);
    kernel = copyOf(marked, ".check");
  }

  FailureOr<ir::KernelOp> make(StringRef name) {
    kernel.setSymName(name);
    if (failed(removeOthers()) || failed(reduce())) {
      kernel.erase();
      return failure();
    }
    markStrict();
    expandAdditions();
    compareLeft();
    bool inAnyOrder = addsInAnyOrder();
    if (inAnyOrder && comparesOverwritten()) {
      kernel.erase();
      return failure();
    }
    isTolerant |= inAnyOrder;
    if (isTolerant)
      kernel.walk([&](ir::AssertOp op) {
        if (isExact(op))
          return;
        bool isFinal = op->hasAttr(loadAttr) && !op->hasAttr(openAttr);
        tolerateRounding(op, isFinal ? ofSums : ofFewOperations);
        if (isFinal)
          goOnWithMemory(op);
      });
    findMarked();
    redirect();
    if (isTolerant && failed(tolerateCancellation())) {
      kernel.erase();
      return failure();
    }
    deferInPlace();
    initialise();
    clean();
    return kernel;
  }

private:
  //===-- What is known of the accesses -----------------------------------===//

  void classify(ir::KernelOp marked, const Writes &writes,
                ArrayRef<NeededLoad> needed) {
    Builder b(marked.getLoc(), marked.getContext());
    for (auto [number, access] : llvm::enumerate(accessesIn(marked))) {
      access.op->setAttr(loadAttr, b.getI64IntegerAttr(number));
      parts = std::max<int64_t>(parts, partNumber(access.op));
      access.op->setAttr(inPartAttr,
                         b.getI64IntegerAttr(partNumber(access.op)));
      auto load = dyn_cast<ir::LoadOp>(access.op);
      if (load && isWritten(load.getArray()) && findOverwrite(writes, load))
        load->setAttr(openAttr, b.getUnitAttr());
    }
    for (NeededLoad one : needed) {
      if (!isWritten(one.load.getArray()))
        continue;
      compared[*integerOf(one.load, loadAttr)] = one.isRepeated;
      if (one.isRepeated)
        repeated.insert(placeOf(*accessOf(one.load)));
    }
  }

  /// Whether its elements are written once, so that all is told by comparing
  /// what is stored.
  bool isInPlace(Value array) const {
    return inPlace.contains(argumentOf(array));
  }

  /// Array and part.
  using Place = std::pair<unsigned, int64_t>;
  static Place placeOf(const ArrayAccess &access) {
    return {argumentOf(access.array), *integerOf(access.op, inPartAttr)};
  }

  bool isWritten(Value array) const {
    return written.contains(argumentOf(array));
  }

  //===-- What has to run -------------------------------------------------===//

  /// Takes away what has no part in values, and adds the comparisons.
  LogicalResult removeOthers() {
    SmallVector<Operation *> messages;
    bool passesArrays = false;
    kernel.walk([&](Operation *op) {
      if (isa<ir::PrintOp, ir::AssertOp>(op))
        messages.push_back(op);
      passesArrays |=
          isa<func::CallOp>(op) &&
          llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ir::ArrayType>);
    });
    if (passesArrays || parts > Most - Written)
      return failure();
    for (Operation *op : messages)
      op->erase();
    kernel.walk([&](ir::LoadOp load) {
      auto known = compared.find(*integerOf(load, loadAttr));
      if (known != compared.end())
        addComparison(load, known->second);
    });
    return success();
  }

  void addComparison(ir::LoadOp load, bool isRepeated) {
    Builder b(load.getLoc(), kernel.getContext());
    b.setInsertionPointAfter(load);
    ir::AssertOp assertion =
        compareHeld(b, load, load.getArray(), load.getIndices());
    assertion->setAttr(loadAttr, load->getAttr(loadAttr));
    if (load->hasAttr(openAttr))
      assertion->setAttr(openAttr, b.getUnitAttr());
    if (isRepeated)
      assertion->setAttr(repeatedAttr, b.getUnitAttr());
  }

  ir::AssertOp compareHeld(Builder &b, Value found, Value array,
                           ValueRange indices) const {
    ir::AssertOp assertion = requireHeld(b, found, array, indices);
    if (bending.contains(argumentOf(array)))
      assertion->setAttr(bendingAttr, b.getUnitAttr());
    return assertion;
  }

  /// Where the gradient makes writes again it would not notice that memory has
  /// been written since; but that would be another launch.
  void compareLeft() {
    Arguments arrays;
    for (Place place : repeated)
      if (relevant.contains(place.first) && !inPlace.contains(place.first))
        arrays.insert(place.first);
    Builder b(kernel.getLoc(), kernel.getContext());
    for (unsigned argument : arrays) {
      b.setInsertionPoint(kernel.getBodyRegion().front().getTerminator());
      Value array = kernel.getArgument(argument);
      forEachElement(b, array, [&](ValueRange indices) {
        auto found = ir::LoadOp::create(
            b, cast<ir::ArrayType>(array.getType()).getValueType(),
            extra(Scratch, argument), indices);
        found->setAttr(keptAttr, b.getUnitAttr());
        compareHeld(b, found, array, indices)
            ->setAttr(openAttr, b.getUnitAttr());
      });
    }
  }

  static bool isMoved(Operation *op) { return !op->hasAttr(keptAttr); }

  /// Leaves of `copy` what the writes to `kept` arrays and assertions need.
  static void keepWrites(ir::KernelOp copy, const Arguments &kept) {
    for (const ArrayAccess &access : accessesIn(copy))
      if (access.isWrite() && !kept.contains(argumentOf(access.array)) &&
          access.op->use_empty())
        access.op->erase();
    prune(copy);
  }

  /// The written arrays that `copy` loads from.
  Arguments loadedBy(ir::KernelOp copy) const {
    Arguments loaded;
    copy.walk([&](ir::LoadOp load) {
      if (isMoved(load) && isWritten(load.getArray()))
        loaded.insert(argumentOf(load.getArray()));
    });
    return loaded;
  }

  /// Leaves what the comparisons need.
  LogicalResult reduce() {
    for (const ArrayAccess &access : accessesIn(kernel))
      if (ir::fetchesElement(access.op) && !ir::isDirectory(access.array))
        fetched.insert(argumentOf(access.array));
    forgetFetches(kernel);
    for (auto [array, accesses] : accessesByArray(kernel))
      if (isWritten(array) && llvm::any_of(accesses, [&](auto &access) {
            return access.op->hasAttr(loadAttr) &&
                   compared.contains(*integerOf(access.op, loadAttr));
          }))
        relevant.insert(argumentOf(array));
    for (size_t before = 0;;) {
      ir::KernelOp copy = copyOf(kernel, "");
      keepWrites(copy, relevant);
      relevant.set_union(loadedBy(copy));
      copy.erase();
      if (relevant.size() == before)
        break;
      before = relevant.size();
    }
    keepWrites(kernel, relevant);
    Refusal unused;
    ScopedDiagnosticHandler quiet(kernel.getContext(),
                                  [](Diagnostic &) { return success(); });
    return success(succeeded(checkForgotten(kernel, unused)) &&
                   llvm::all_of(accessesIn(kernel),
                                [&](auto &access) { return isKnown(access); }));
  }

  /// Whether running it again, and comparing, is right.
  bool isKnown(const ArrayAccess &access) const {
    if (fetched.contains(argumentOf(access.array)))
      return false;
    if (access.isLoad())
      return !readsAfterPart(access.op) || !isWritten(access.array);
    return isa<ir::StoreOp, ir::AtomicAddOp>(access.op);
  }

  //===-- What decides which elements are used ----------------------------===//

  /// Loads that say which elements are used, and how often code runs, also by
  /// way of other elements: what has not been written by this launch could lead
  /// anywhere.
  class Steering {
  public:
    /// `bends`: also what comes to a kink or a step, on whose other side the
    /// derivative is another one.
    explicit Steering(ir::KernelOp kernel, bool bends = false)
        : kernel(kernel) {
      kernel.walk([&](Operation *op) {
        needControl(op);
        if (bends && hasKink(op))
          needKink(op);
      });
      for (size_t k = 0; k < needed.size(); ++k)
        visit(needed[k]);
    }

    bool contains(Value value) const { return needed.contains(value); }

  private:
    void needControl(Operation *op) {
      if (auto access = accessOf(op))
        needAll(access->indices);
      else if (auto load = dyn_cast<ir::LocalLoadOp>(op))
        needAll(load.getIndex());
      else if (auto store = dyn_cast<ir::LocalStoreOp>(op))
        needAll(store.getIndex());
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        needAll({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
      else if (auto loop = dyn_cast<scf::WhileOp>(op))
        needAll(loop.getConditionOp().getCondition());
      else if (isa<scf::IfOp, ir::RangeOp>(op))
        needAll(op->getOperands());
    }

    /// In a function with a derivative of its own: whatever it is given.
    void needKink(Operation *op) {
      needAll(op->getOperands());
      if (auto custom = op->getParentOfType<ir::CustomOp>())
        needAll(custom->getOperands());
    }

    /// Or may have, as what is called.
    static bool hasKink(Operation *op) {
      return isa<func::CallOp, arith::CmpFOp, arith::MinimumFOp,
                 arith::MaximumFOp, arith::MinNumFOp, arith::MaxNumFOp,
                 arith::RemFOp, arith::BitcastOp, ir::ToIntOp, math::AbsFOp,
                 ir::Atan2Op, math::CopySignOp, math::FloorOp, math::CeilOp,
                 math::RoundOp, math::RoundEvenOp, math::TruncOp>(op);
    }

    void needAll(ValueRange values) {
      needed.insert(values.begin(), values.end());
    }

    void visit(Value value) {
      needAll(sourcesOf(value));
      Operation *op = value.getDefiningOp();
      if (!op || isa<scf::IfOp, LoopLikeOpInterface>(op))
        return;
      if (auto load = dyn_cast<ir::LocalLoadOp>(op))
        needStored(load.getLocal().getUsers());
      else if (isa<ir::LoadOp>(op))
        needStored(accessOf(op)->array.getUsers());
      needAll(op->getOperands());
    }

    void needStored(Value::user_range users) {
      for (Operation *user : users)
        if (ir::writesElement(user) || isa<ir::LocalStoreOp>(user))
          needAll(user->getOperand(0));
    }

    ir::KernelOp kernel;
    llvm::SetVector<Value> needed; ///< grows while it is gone through
  };

  void markStrict() {
    Steering steering(kernel);
    kernel.walk([&](ir::LoadOp load) {
      if (!load->hasAttr(openAttr) || !steering.contains(load))
        return;
      load->setAttr(strictAttr, UnitAttr::get(kernel.getContext()));
      overwrites = true;
    });
  }

  /// Arrays with elements that come to a kink.
  void findBending(ir::KernelOp marked) {
    Steering steering(marked, /*bends=*/true);
    marked.walk([&](ir::LoadOp load) {
      if (steering.contains(load))
        bending.insert(argumentOf(load.getArray()));
    });
  }

  /// Whether the least difference may lie on the other side of a kink. With
  /// `fast_math` what nobody overwrites is what such a launch could have left.
  bool isExact(ir::AssertOp assertion) const {
    return assertion->hasAttr(bendingAttr) &&
           (!isFast || assertion->hasAttr(openAttr));
  }

  //===-- Additions -------------------------------------------------------===//

  /// Whether the range of `add`, or serial code, also loads from its array.
  static bool isReadBeside(ir::AtomicAddOp add) {
    auto range = add->getParentOfType<ir::RangeOp>();
    return !range ||
           llvm::any_of(accessesIn(range), [&](const ArrayAccess &access) {
             return access.isLoad() && access.array == add.getArray() &&
                    isMoved(access.op);
           });
  }

  /// Additions to elements that no other work item uses are loads and stores.
  void expandAdditions() {
    for (auto add : ir::all<ir::AtomicAddOp>(kernel, isReadBeside)) {
      Builder b(add.getLoc(), add);
      Value value = add.getValue();
      auto old = ir::LoadOp::create(b, value.getType(), add.getArray(),
                                    add.getIndices());
      old->setAttr(inPartAttr, add->getAttr(inPartAttr));
      old->setAttr(loadAttr, add->getAttr(loadAttr));
      old->setAttr(openAttr, b.getUnitAttr());
      old->setAttr(strictAttr, b.getUnitAttr());
      Value sum = isa<FloatType>(value.getType())
                      ? Value(arith::AddFOp::create(b, old, value))
                      : Value(arith::AddIOp::create(b, old, value));
      auto store =
          ir::StoreOp::create(b, sum, add.getArray(), add.getIndices());
      store->setAttr(inPartAttr, add->getAttr(inPartAttr));
      if (repeated.contains(placeOf(*accessOf(old))))
        addComparison(old, /*isRepeated=*/true);
      add->erase();
    }
  }

  /// Whether sums of floats come in any order, which rounds them otherwise.
  bool addsInAnyOrder() {
    return ir::contains(kernel, [](Operation *op) {
      return isa<ir::AtomicAddOp>(op) &&
             isa<FloatType>(op->getOperand(0).getType());
    });
  }

  /// Whether a value is compared with what its element may have become since:
  /// that is a change, which may be as small as rounding.
  bool comparesOverwritten() {
    return ir::contains(kernel, [&](Operation *op) {
      auto load = dyn_cast<ir::LoadOp>(op);
      return load && load->hasAttr(openAttr) && !isInPlace(load.getArray()) &&
             compared.contains(*integerOf(load, loadAttr));
    });
  }

  /// What is left of a sum differs as much as its terms are rounded. An element
  /// that is not written any more may hold what this launch could have left
  /// there.
  LogicalResult tolerateCancellation() {
    llvm::DenseMap<Value, Value> errors;
    for (auto [argument, array] : llvm::to_vector(extras[Scratch])) {
      auto type = cast<ir::ArrayType>(array.getType());
      if (type.isFloat() && !ir::isNarrow(type.getElementType()))
        errors[array] = extra(Errors, argument);
    }
    Forward rounding(kernel, errors, roundingError);
    if (failed(rounding.run()))
      return failure();
    kernel.walk([&](ir::AssertOp assertion) {
      if (assertion.getValues().size() < 4 || assertion->hasAttr(openAttr) ||
          isExact(assertion))
        return;
      if (Value error = rounding.companionOf(foundOf(assertion)))
        tolerateError(assertion, error);
    });
    prune(kernel);
    return success();
  }

  //===-- Marks and scratch arrays ----------------------------------------===//

  void findMarked() {
    if (!overwrites)
      return;
    for (const ArrayAccess &access : accessesIn(kernel)) {
      if (access.op->hasAttr(openAttr) || isa<ir::AtomicAddOp>(access.op))
        marked.insert(argumentOf(access.array));
      if (access.op->hasAttr(openAttr) && !access.op->hasAttr(strictAttr))
        leftOpen.insert(argumentOf(access.array));
    }
  }

  /// Arrays beside those of the primal: what is found; what is known of
  /// elements (see Mark); whether memory holds another value than was found,
  /// not Untouched, and which one that was; rounding errors.
  enum Extra { Scratch, Marks, Differences, Found, Errors };
  using Arrays = llvm::MapVector<unsigned, Value>;

  Value extra(Extra kind, unsigned argument) {
    Value &array = extras[kind][argument];
    if (array)
      return array;
    Value of = kernel.getArgument(argument);
    bool marks = kind == Marks || kind == Differences;
    auto type = cast<ir::ArrayType>(of.getType());
    if (marks)
      type = ir::ArrayType::get(kernel.getContext(),
                                IntegerType::get(kernel.getContext(), 8),
                                type.getRank());
    return array = appendArray(kernel, of, type,
                               marks ? ir::ownersOfAttr : ir::scratchOfAttr);
  }

  /// Gradients, and what has the same arguments, keep such writes.
  static void repeat(Operation *write, int64_t part) {
    write->setAttr(ir::replayedAttr,
                   Builder(write->getLoc(), write).getI64IntegerAttr(part));
  }

  Value loadMark(Builder &b, const ArrayAccess &access) {
    return ir::LoadOp::create(b, b.getI32Type(),
                              extra(Marks, argumentOf(access.array)),
                              access.indices);
  }

  void storeMark(Builder &b, Value mark, const ArrayAccess &access) {
    repeat(ir::StoreOp::create(b, mark, extra(Marks, argumentOf(access.array)),
                               access.indices),
           0);
  }

  void markLoad(const ArrayAccess &access, ir::AssertOp comparison) {
    Builder b(access.op->getLoc(), access.op);
    using P = arith::CmpIPredicate;
    Value mark = loadMark(b, access);
    if (access.op->hasAttr(strictAttr)) {
      require(b, compare(b, P::sge, mark, markOf(b, Written)), steers,
              access.array, access.indices);
    } else {
      Value isNew = compare(b, P::eq, mark, markOf(b, Untouched));
      storeMark(b, arith::SelectOp::create(b, isNew, markOf(b, Read), mark),
                access);
    }
    if (!comparison || !comparison->hasAttr(repeatedAttr))
      return;
    Value own = compare(b, P::eq, mark,
                        markOf(b, Written + *integerOf(access.op, inPartAttr)));
    b.setInsertionPoint(comparison);
    comparison.getConditionMutable().assign(
        arith::OrIOp::create(b, comparison.getCondition(), own));
  }

  void markWrite(const ArrayAccess &access) {
    Builder b(access.op->getLoc(), access.op);
    using P = arith::CmpIPredicate;
    if (isa<ir::AtomicAddOp>(access.op)) {
      Value mark = loadMark(b, access);
      require(b, compare(b, P::sge, mark, markOf(b, Written)), readBefore,
              access.array, access.indices);
      return;
    }
    if (leftOpen.contains(argumentOf(access.array))) {
      Value mark = loadMark(b, access);
      require(b, compare(b, P::ne, mark, markOf(b, Read)), readBefore,
              access.array, access.indices);
    }
    storeMark(b, markOf(b, Written + *integerOf(access.op, inPartAttr)),
              access);
  }

  void redirect() {
    llvm::DenseMap<int64_t, ir::AssertOp> comparisons;
    kernel.walk([&](ir::AssertOp op) {
      if (op->hasAttr(loadAttr))
        comparisons[*integerOf(op, loadAttr)] = op;
    });
    for (const ArrayAccess &access : accessesIn(kernel)) {
      if (!isMoved(access.op) || !relevant.contains(argumentOf(access.array)))
        continue;
      ir::AssertOp comparison;
      if (access.isLoad())
        comparison = comparisons.lookup(*integerOf(access.op, loadAttr));
      if (access.isWrite() && marked.contains(argumentOf(access.array)))
        markWrite(access);
      else if (access.op->hasAttr(openAttr) && overwrites)
        markLoad(access, comparison);
      if (isInPlace(access.array))
        leaveInPlace(access, comparison);
      else
        move(access);
    }
  }

  void leaveInPlace(const ArrayAccess &access, ir::AssertOp comparison) {
    access.op->removeAttr(ir::replayedAttr);
    if (comparison)
      comparison.erase();
    auto store = dyn_cast<ir::StoreOp>(access.op);
    if (!store)
      return requireNoDifference(access);
    Builder b(store.getLoc(), store);
    Value found = store.getValue();
    Type element = store.getArray().getType().getElementType();
    if (ir::isNarrow(element))
      found = b.createOrFold<ir::NarrowOp>(found, element);
    ir::AssertOp assertion =
        compareHeld(b, found, store.getArray(), store.getIndices());
    unsigned argument = argumentOf(store.getArray());
    if (isTolerant && !isExact(assertion))
      tolerateRounding(assertion, ofSums);
    auto mark =
        ir::StoreOp::create(b, markOf(b, Untouched),
                            extra(Differences, argument), store.getIndices());
    repeat(mark, 0);
    inPlaceStores.push_back({assertion, mark, argument});
    store.erase();
  }

  /// What memory does not hold matters where it is read.
  void deferInPlace() {
    for (auto [assertion, mark, argument] : inPlaceStores)
      noteDifference(assertion, mark, argument);
  }

  void noteDifference(ir::AssertOp assertion, ir::StoreOp mark,
                      unsigned argument) {
    Builder b(assertion.getLoc(), assertion);
    Value holds = assertion.getCondition();
    Value difference = arith::SelectOp::create(b, holds, markOf(b, Untouched),
                                               markOf(b, Read));
    Value found = foundOf(assertion);
    mark.getValueMutable().assign(difference);
    mark->moveAfter(difference.getDefiningOp());
    b.setInsertionPointAfter(mark);
    Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
    auto branch = scf::IfOp::create(b, arith::XOrIOp::create(b, holds, yes),
                                    /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    repeat(ir::StoreOp::create(b, found, extra(Found, argument),
                               mark.getIndices()),
           0);
    assertion.erase();
  }

  void requireNoDifference(const ArrayAccess &access) {
    Builder b(access.op->getLoc(), access.op);
    unsigned argument = argumentOf(access.array);
    Value mark = ir::LoadOp::create(
        b, b.getI32Type(), extra(Differences, argument), access.indices);
    auto branch = scf::IfOp::create(
        b, compare(b, arith::CmpIPredicate::ne, mark, markOf(b, Untouched)),
        /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    Type type = access.op->getResult(0).getType();
    auto found =
        ir::LoadOp::create(b, type, extra(Found, argument), access.indices);
    refuseOther(b, found, access.array, access.indices);
  }

  void move(const ArrayAccess &access) {
    if (access.isWrite())
      repeat(access.op, *integerOf(access.op, inPartAttr));
    access.redirect(extra(Scratch, argumentOf(access.array)));
  }

  /// Scratch arrays hold what memory holds, and nothing is known of elements.
  void initialise() {
    Builder b(kernel.getLoc(), kernel.getContext());
    b.setInsertionPointToStart(&kernel.getBodyRegion().front());
    for (auto [argument, array] : extras[Scratch])
      ir::CopyOp::create(b, kernel.getArgument(argument), array);
    for (Extra kind : {Marks, Differences})
      for (auto [argument, array] : extras[kind])
        fill(b, array, markOf(b, Untouched));
    for (auto [argument, array] : extras[Errors])
      fill(b, array,
           floatConstant(b, cast<ir::ArrayType>(array.getType()).getValueType(),
                         0));
  }

  static void fill(Builder &b, Value array, Value value) {
    forEachElement(b, array, [&](ValueRange indices) {
      repeat(ir::StoreOp::create(b, value, array, indices), 0);
    });
  }

  static void forEachElement(Builder &b, Value array,
                             function_ref<void(ValueRange)> visit) {
    OpBuilder::InsertionGuard guard(b);
    unsigned rank = cast<ir::ArrayType>(array.getType()).getRank();
    if (rank == 0)
      return visit({});
    SmallVector<Value> extents;
    for (unsigned dim = 0; dim < rank; ++dim)
      extents.push_back(ir::ExtentOp::create(b, b.getI64Type(), array, dim));
    auto range = ir::RangeOp::create(b, extents);
    b.setInsertionPointToStart(range.getBody());
    visit(range.getIndices());
  }

  /// Leaves an ordinary kernel.
  void clean() {
    kernel.walk([](Operation *op) {
      for (StringRef attribute : {loadAttr, inPartAttr, openAttr, strictAttr,
                                  bendingAttr, keptAttr, repeatedAttr})
        op->removeAttr(attribute);
    });
    for (unsigned k = kernel.getNumArguments(); k-- > arguments;)
      if (kernel.getArgument(k).use_empty())
        (void)kernel.eraseArgument(k);
  }

  const unsigned arguments; ///< of the primal
  int64_t parts = 0;        ///< the largest number of one
  const bool isFast;        ///< compiled with `fast_math`
  bool isTolerant;          ///< of other rounding
  Arguments bending;
  bool overwrites; ///< so that there are marks
  ir::KernelOp kernel;
  Arguments written;               ///< by the primal
  Arguments inPlace;               ///< see isInPlace
  Arguments relevant;              ///< values follow from them
  Arguments fetched;               ///< what was there is returned
  Arguments marked, leftOpen;      ///< arrays with marks
  llvm::SetVector<Place> repeated; ///< gradients make the writes there again
  llvm::DenseMap<int64_t, bool> compared; ///< loads: isRepeated
  Arrays extras[Errors + 1];              ///< by kind and argument
  /// What compares, and then says so for reads of the element.
  struct InPlaceStore {
    ir::AssertOp assertion;
    ir::StoreOp mark;
    unsigned argument;
  };
  SmallVector<InPlaceStore> inPlaceStores;
};

} // namespace

FailureOr<ir::KernelOp> checkIntact(ir::KernelOp marked, unsigned arguments,
                                    StringRef name, ArrayRef<NeededLoad> needed,
                                    bool overwrites, bool toleratesRounding) {
  return Check(marked, arguments, needed, overwrites, toleratesRounding)
      .make(name);
}

} // namespace costate::autodiff
