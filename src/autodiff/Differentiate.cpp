#include "autodiff/Differentiate.h"

#include "autodiff/FunctionGradient.h"
#include "autodiff/Normalize.h"
#include "autodiff/Prune.h"
#include "autodiff/activity/Activity.h"
#include "autodiff/cut/Budget.h"
#include "autodiff/cut/Cut.h"
#include "autodiff/forward/Forward.h"
#include "autodiff/gather/Unfold.h"
#include "autodiff/replay/Fetches.h"
#include "autodiff/replay/Intact.h"
#include "autodiff/replay/Owners.h"
#include "autodiff/replay/Replay.h"
#include "autodiff/replay/Stores.h"
#include "autodiff/replay/Versions.h"
#include "autodiff/reverse/Reverser.h"
#include "ir/Blocks.h"
#include "ir/Functions.h"
#include "ir/Operations.h"
#include "ir/Plan.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// Values are now those of a derivative of the next order.
void raiseOrder(ir::KernelOp kernel) {
  kernel.walk([](ir::ByOrderOp op) {
    if (op.getValues().size() > 1)
      op->eraseOperand(0);
  });
}

SmallVector<BlockArgument> activeArrays(ir::KernelOp kernel,
                                        ArrayRef<bool> active) {
  SmallVector<BlockArgument> arrays;
  for (auto [index, isActive] : llvm::enumerate(active))
    if (isActive)
      arrays.push_back(kernel.getArgument(index));
  return arrays;
}

llvm::DenseMap<Value, Value> appendAdjoints(ir::KernelOp kernel,
                                            ArrayRef<bool> active) {
  llvm::DenseMap<Value, Value> adjoints;
  for (BlockArgument array : activeArrays(kernel, active))
    adjoints[array] = appendArray(
        kernel, array, cast<ir::ArrayType>(array.getType()).getDerivative(),
        ir::adjointOfAttr);
  return adjoints;
}

/// Tangents of one array after the other, with rising order.
llvm::DenseMap<Value, Value>
appendTangents(ir::KernelOp kernel, ArrayRef<bool> active, Curves curves) {
  llvm::DenseMap<Value, Value> tangents;
  for (BlockArgument array : activeArrays(kernel, active)) {
    auto type = cast<ir::ArrayType>(array.getType());
    unsigned rank = type.getRank() + (curves.directions ? 1 : 0);
    type = ir::ArrayType::get(kernel.getContext(), type.getValueType(), rank);
    for (unsigned order = 0; order < curves.order; ++order) {
      BlockArgument tangent =
          appendArray(kernel, array, type, ir::tangentOfAttr);
      tangents[array] = tangent;
      array = tangent;
    }
  }
  return tangents;
}

void describeNeeds(ir::KernelOp primal, ArrayRef<ir::LoadOp> needed,
                   Derivative &derivative) {
  derivative.needed.assign(primal.getNumArguments(), false);
  derivative.reloaded.assign(primal.getNumArguments(), false);
  std::vector<std::optional<ArraySection>> sections(primal.getNumArguments());
  Writes writes = writesOf(primal);
  for (ir::LoadOp load : needed) {
    if (ir::isDirectory(load.getArray()))
      continue;
    unsigned argument = argumentOf(load.getArray());
    widen(sections[argument], *accessOf(load));
    derivative.needed[argument] = true;
    if (!derivative.reloaded[argument] && readsOwnStore(writes, load))
      derivative.reloaded[argument] = true;
  }
  derivative.neededSections = complete(sections);
}

/// What depends on others of its block has no derivative in either mode.
LogicalResult refuseBlocks(ir::KernelOp kernel) {
  return ir::forAll<Operation *>(kernel, [](Operation *op) {
    if (!ir::isOfBlock(op))
      return success();
    auto group = dyn_cast<ir::GroupOp>(op);
    std::string what =
        group ? "`" + group.getKind().str() + "`" : "a shared array";
    InFlightDiagnostic error =
        op->emitError(what) << " has no derivative: what it gives depends on "
                               "other work items of the block";
    error.attachNote() << "write this range without blocks, with sums in array "
                          "elements, or give the kernel a derivative of its "
                          "own by a custom launch";
    return failure();
  });
}

LogicalResult refuseGradient(ir::KernelOp kernel) {
  return ir::forAll<Operation *>(kernel, [](Operation *op) {
    if (isa<ir::CopyOp>(op)) {
      op->emitError("the gradient of a copy is not known").attachNote()
          << "take that of the kernel that makes no copies";
      return failure();
    }
    if (!isa<tape::PushOp, tape::PivotOp, ir::AtomicTakeOp>(op))
      return success();
    op->emitError("a gradient has no gradient").attachNote()
        << "take its forward derivative: it gives the same second "
           "derivatives, a column or a combination of columns at a time";
    return failure();
  });
}

} // namespace

std::vector<ArraySection> writtenSections(ir::KernelOp primal) {
  std::vector<std::optional<ArraySection>> written(primal.getNumArguments());
  for (const ArrayAccess &access : accessesIn(primal))
    if (access.isWrite())
      widen(written[argumentOf(access.array)], access);
  return complete(written);
}

SmallVector<bool> activeWrites(ir::KernelOp primal, ArrayRef<bool> active) {
  Activity activity(primal, [&](Value array) {
    return !active.empty() && active[argumentOf(array)];
  });
  SmallVector<bool> writes(primal.getNumArguments(), false);
  for (const ArrayAccess &access : accessesIn(primal))
    if (access.isWrite() && activity.isVaried(access.op->getOperand(0)))
      writes[argumentOf(access.array)] = true;
  primal.walk([&](ir::CopyOp copy) {
    if (!active.empty() && active[argumentOf(copy.getFrom())])
      writes[argumentOf(copy.getTo())] = true;
  });
  return writes;
}

/// Whether an active array gets a value that varies with `array`, or with an
/// array that gets one.
static bool reachesActive(ir::KernelOp primal, Value array,
                          ArrayRef<bool> active) {
  llvm::DenseSet<Value> reached{array};
  for (size_t before = 0; before != reached.size();) {
    before = reached.size();
    Activity activity(primal, [&](Value a) { return reached.contains(a); });
    for (const ArrayAccess &access : accessesIn(primal)) {
      if (!access.isWrite() || !activity.isVaried(access.op->getOperand(0)))
        continue;
      if (active[argumentOf(access.array)])
        return true;
      reached.insert(access.array);
    }
  }
  return false;
}

SmallVector<std::optional<Location>> passedOnLoads(ir::KernelOp primal,
                                                   ArrayRef<bool> active) {
  llvm::MapVector<Value, Location> loads;
  primal.walk([&](ir::LoadOp load) {
    if (isa<FloatType>(load.getType()))
      loads.insert({load.getArray(), load.getLoc()});
  });
  SmallVector<std::optional<Location>> places(primal.getNumArguments());
  for (auto [array, place] : loads) {
    unsigned argument = argumentOf(array);
    if (!active[argument] && reachesActive(primal, array, active))
      places[argument] = place;
  }
  return places;
}

/// Whether loads of what the work item has stored read memory.
enum class Reloads { Kept, Forwarded };

/// How a gradient is made.
struct Way {
  Reloads reloads;
  Owners owners;
  Cuts cuts;
  const sizing::Policy &policy;
  Checks checks;
  Unkept unkept;
};

static Reverser::Exclusive exclusiveByRange(ir::KernelOp kernel) {
  Reverser::Exclusive exclusive;
  kernel.walk(
      [&](ir::RangeOp range) { exclusive[range] = exclusiveArrays(range); });
  return exclusive;
}

/// One round: the gradient, and the copy of the primal that it was made from.
struct Round {
  ir::KernelOp gradient;
  OwningOpRef<ir::KernelOp> marked;
};

/// What follows from a right plan is right. It has been carried out.
static LogicalResult checkPlans(ir::KernelOp gradient,
                                const sizing::Policy &policy) {
  if (failed(tape::verifyPlans(gradient)))
    return failure();
  if (!policy.keepsPlans)
    tape::erasePlans(gradient);
  return success();
}

static FailureOr<Round> reverse(ir::KernelOp primal, ArrayRef<bool> active,
                                const Versions &versions,
                                const Steering &steering, Way way,
                                Refusal &refusal) {
  ir::KernelOp gradient = copyOf(primal, ".grad");
  raiseOrder(gradient);
  expandProducts(gradient, active);
  if (way.reloads == Reloads::Forwarded)
    forwardStores(gradient);
  eraseOverwritten(gradient);
  pruneWithinParts(gradient);
  if (way.owners == Owners::Asked)
    checkOwners(gradient, active, steering);
  normalizeLoops(gradient);
  auto tripCounts = countIterations(gradient);
  expressInductions(gradient, tripCounts);
  probeExtrema(gradient, active);
  versions.mark(gradient);
  OwningOpRef<ir::KernelOp> marked(copyOf(gradient, ".marked"));
  forgetCopies(gradient);
  forgetFetches(gradient);
  auto exclusive = exclusiveByRange(gradient);
  auto adjoints = appendAdjoints(gradient, active);
  if (failed(cutLoops(gradient, tripCounts, way.cuts, refusal)) ||
      failed(Reverser(gradient, std::move(adjoints), std::move(tripCounts),
                      std::move(exclusive), way.policy)
                 .run()) ||
      failed(checkPlans(gradient, way.policy))) {
    gradient.erase();
    return failure();
  }
  pruneGradient(gradient);
  resolveSizes(gradient, way.cuts.measured);
  if (failed(checkForgotten(gradient, refusal))) {
    gradient.erase();
    return failure();
  }
  return Round{gradient, std::move(marked)};
}

static ir::KernelOp makeCheck(ir::KernelOp primal, ir::KernelOp marked,
                              ArrayRef<ir::LoadOp> needed,
                              const Versions &versions, Checks checks) {
  SmallVector<NeededLoad> loads;
  for (ir::LoadOp load : needed)
    for (ir::LoadOp copied : copiedLoads(marked, load))
      loads.push_back({copied, versions.isRepeated(load)});
  eraseOwnerChecks(marked);
  forgetCopies(marked);
  return checkIntact(marked, primal.getNumArguments(),
                     (primal.getSymName() + ".check").str(), loads,
                     versions.firstOverwrite().has_value(),
                     checks == Checks::UpToRounding)
      .value_or(ir::KernelOp());
}

static FailureOr<Derivative> differentiateReverse(ir::KernelOp primal,
                                                  ArrayRef<bool> active,
                                                  Way way, Refusal &refusal) {
  Versions versions(way.unkept);
  Steering steering;
  while (true) {
    FailureOr<Round> round =
        reverse(primal, active, versions, steering, way, refusal);
    if (failed(round))
      return failure();
    auto needed = neededLoads(*round->marked, round->gradient);
    bool isAsked = way.owners != Owners::Asked || !steering.add(needed);
    FailureOr<bool> resolved =
        versions.resolve(*round->marked, needed, refusal);
    bool isDone = succeeded(resolved) && *resolved && isAsked;
    if (!isDone)
      round->gradient.erase();
    if (failed(resolved))
      return failure();
    if (!isDone)
      continue;
    Derivative derivative;
    derivative.kernel = round->gradient;
    describeNeeds(*round->marked, versions.final(), derivative);
    versions.redirect(round->gradient);
    derivative.versions = llvm::to_vector(versions.all());
    derivative.versionSections = versions.sections();
    derivative.overwrite = versions.firstOverwrite();
    if (way.checks != Checks::None)
      derivative.check =
          makeCheck(primal, *round->marked, needed, versions, way.checks);
    return derivative;
  }
}

/// Leaves calls of functions that have a gradient.
static void inlineUnlessDerived(ir::KernelOp primal) {
  llvm::DenseMap<Operation *, bool> derived;
  ir::inlineCalls(primal, [&](func::FuncOp function) {
    auto [place, isNew] = derived.try_emplace(function, false);
    if (isNew)
      derived[function] = gradientOf(function) != nullptr;
    return !derived[function];
  });
}

/// Forwarding saves most versions, but a value that could be reloaded may have
/// to be computed again from one that is overwritten.
FailureOr<Derivative> differentiateReverse(
    ir::KernelOp primal, ArrayRef<bool> active, Refusal &refusal, Owners owners,
    Cuts cuts, const sizing::Policy &policy, Checks checks, Unkept unkept) {
  refusal.code = ErrorCode::NotDifferentiable;
  inlineUnlessDerived(primal);
  unfoldLoops(primal);
  expandFetches(primal);
  if (failed(refuseBlocks(primal)) || failed(refuseGradient(primal)) ||
      failed(checkFetches(primal, active, Products::OfOwn)) ||
      failed(checkOrderFree(primal, active, refusal)) ||
      failed(checkExtrema(primal, active, refusal)))
    return failure();
  auto forwarded = differentiateReverse(
      primal, active,
      {Reloads::Forwarded, owners, cuts, policy, checks, unkept}, refusal);
  if (failed(forwarded) || !forwarded->overwrite)
    return forwarded;
  ScopedDiagnosticHandler quiet(primal.getContext(),
                                [](Diagnostic &) { return success(); });
  Refusal unused;
  auto kept = differentiateReverse(
      primal, active, {Reloads::Kept, owners, cuts, policy, checks, unkept},
      unused);
  if (failed(kept))
    return forwarded;
  bool better =
      kept->kernel.getNumArguments() < forwarded->kernel.getNumArguments();
  Derivative &other = better ? *forwarded : *kept;
  other.kernel.erase();
  if (other.check)
    other.check.erase();
  return better ? kept : forwarded;
}

FailureOr<Derivative> differentiateForward(ir::KernelOp primal,
                                           ArrayRef<bool> active, Curves curves,
                                           Refusal &refusal) {
  refusal.code = ErrorCode::NotDifferentiable;
  ir::inlineCalls(primal);
  expandFetches(primal, Becomes::Unused);
  if (failed(refuseBlocks(primal)) ||
      failed(checkFetches(primal, active, Products::Refused)))
    return failure();
  ir::KernelOp tangent = copyOf(primal, ".jvp");
  for (unsigned order = 0; order < curves.order; ++order)
    raiseOrder(tangent);
  auto tangents = appendTangents(tangent, active, curves);
  if (failed(Forward(tangent, std::move(tangents), curves).run())) {
    tangent.erase();
    return failure();
  }
  prune(tangent);
  Derivative derivative;
  derivative.kernel = tangent;
  derivative.neededSections.resize(primal.getNumArguments());
  derivative.needed.assign(primal.getNumArguments(), false);
  derivative.reloaded.assign(primal.getNumArguments(), false);
  return derivative;
}

} // namespace costate::autodiff
