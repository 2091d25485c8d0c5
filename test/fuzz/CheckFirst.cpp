/// First derivatives.

#include "fuzz/Checker.h"

#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;

namespace costate::fuzz {

using autodiff::Derivative;

std::optional<Derived> Checker::differentiate(ir::KernelOp of, Mode mode,
                                              ArrayRef<bool> active,
                                              std::string &reason) {
  autodiff::Refusal refusal;
  FailureOr<Derivative> derivative = failure();
  // Differentiation prepares the kernel that it gets: it inlines calls.
  OpBuilder builder(of);
  auto own = cast<ir::KernelOp>(builder.clone(*of));
  own.setSymName("own");
  Session::Report report =
      session.reportOf([&] { derivative = mode(own, active, refusal); });
  own.erase();
  if (succeeded(derivative)) {
    ir::KernelOp made = derivative->kernel;
    derivatives.push_back(made);
    // Several in one module must have different names.
    made.setSymName("d" + std::to_string(derivatives.size()));
    if (wanted.has(Property::Verifies) && failed(verify(made)))
      throw Mismatch{Property::Verifies, "a derivative does not verify"};
    return Derived{*derivative, translate(made, Property::Runs), made};
  }
  bool known = refusal.code == ErrorCode::CannotReplay ||
               refusal.code == ErrorCode::NotDifferentiable;
  if (!known || report.text.empty() || !report.hasPlace)
    throw Mismatch{Property::Refuses,
                   "refused without a place or a known code: " + report.text};
  reason = report.text;
  return std::nullopt;
}

std::optional<Derived> Checker::forwardOf(ir::KernelOp of,
                                          ArrayRef<bool> active,
                                          autodiff::Curves curves) {
  std::string reason;
  auto mode = [&](ir::KernelOp primal, ArrayRef<bool> active,
                  autodiff::Refusal &refusal) {
    return autodiff::differentiateForward(primal, active, curves, refusal);
  };
  return differentiate(of, mode, active, reason);
}

std::optional<Derived> Checker::reverseOf(ArrayRef<bool> active) {
  std::string reason;
  auto gradient = differentiate(kernel, reverseMode, active, reason);
  if (gradient)
    return gradient;
  result.kind = Verdict::Refused;
  result.text = reason;
  return std::nullopt;
}

Active Checker::floatsAmong(ir::KernelOp of, ArrayRef<bool> wantedArrays) {
  Active active(wantedArrays);
  for (unsigned k = 0; k < active.size(); ++k)
    active[k] &= isFloatArray(of, k);
  return active;
}

Active Checker::allFloats(ir::KernelOp of) {
  return floatsAmong(of, Active(of.getNumArguments(), true));
}

void Checker::derive(ArrayRef<bool> all) {
  Active active = floatsAmong(kernel, all);
  if (wanted.has(Property::Still))
    still(active);
  Arrays direction = randomLike(kernel, before, active, random);
  Arrays weights = randomLike(kernel, before, active, random);
  std::optional<Derived> forward = forwardOf(kernel, active);
  if (!forward)
    throw Mismatch{Property::Refuses, "there is no tangent"};
  Arrays tangents = along(*forward, before, direction);
  if (wanted.has(Property::Sections))
    expectPassive(active, tangents, direction);
  if (wanted.has(Property::Differences) && !single)
    differences(*forward);
  std::optional<Derived> gradient = reverseOf(active);
  if (!gradient)
    return;
  versions = recordedFor(*gradient, before);
  adjoints = pulled(*gradient, after, weights);
  agree(tangents, direction, weights);
  if (wanted.has(Property::Prints))
    prints(gradient->kernel);
  if (wanted.has(Property::Entries))
    entries(*forward, active, weights);
  ofGradient(*gradient, weights);
  if (wanted.has(Property::Cut))
    cutLoops(active, weights);
  if (wanted.has(Property::Plans))
    plans(active, weights);
  if (wanted.has(Property::Second))
    second(*forward, *gradient, direction, weights);
  if (wanted.has(Property::Curves)) {
    curves(*forward, direction);
    directions(*forward, active);
  }
}

Arrays Checker::along(const Derived &forward, const Memory &from,
                      const Arrays &direction) {
  Memory memory = extended(from, forward.kernel, direction);
  auto report = launch(forward.launchable, memory, Property::Forward);
  if (&from == &before)
    expectPrimal(Property::Forward, "memory after the tangent", memory, after);
  Arrays tangents = extraOf(memory, forward.kernel, before.arrays.size());
  refuseWild(tangents, report);
  return tangents;
}

std::vector<Recorded> Checker::recordedFor(const Derived &gradient,
                                           const Memory &from) {
  if (gradient.info.versions.empty())
    return {};
  ir::KernelOp recording =
      autodiff::recordVersions(kernel, gradient.info.versions);
  derivatives.push_back(recording);
  recording.setSymName("d" + std::to_string(derivatives.size()));
  if (wanted.has(Property::Verifies) && failed(verify(recording)))
    throw Mismatch{Property::Verifies, "the recording kernel does not verify"};
  Memory memory = extended(from, recording, {});
  launch(translate(recording, Property::Records), memory, Property::Records);
  if (&from == &before)
    expectPrimal(Property::Records, "memory after the recording", memory,
                 after);
  return versionsOf(memory, recording);
}

/// Whether `left` are as `given`.
static bool areUnchanged(const std::vector<Recorded> &left,
                         const std::vector<Recorded> &given) {
  return llvm::all_of(left, [&](const Recorded &one) {
    return llvm::any_of(given, [&](const Recorded &other) {
      return one.version == other.version &&
             one.array.bytes == other.array.bytes;
    });
  });
}

Arrays Checker::pulled(const Derived &gradient, const Memory &from,
                       const Arrays &weights,
                       interpreter::InterpreterOptions options,
                       Property property) {
  ir::KernelOp of = gradient.kernel;
  Memory memory = extended(from, of, weights, versions);
  auto report = launch(gradient.launchable, memory, property, options);
  expectPrimal(Property::KeepsMemory, "memory after the gradient", memory,
               from);
  if (!areUnchanged(versionsOf(memory, of), versions))
    throw Mismatch{Property::KeepsMemory, "the gradient changes a version"};
  Arrays arrays = extraOf(memory, of, before.arrays.size());
  refuseWild(arrays, report);
  result.pushes = report.pushes;
  peak = report.peakTapeBytes;
  return arrays;
}

void Checker::agree(const Arrays &tangents, const Arrays &direction,
                    const Arrays &weights) {
  Dot up = dot(kernel, tangents, weights),
      down = dot(kernel, *adjoints, direction);
  double allowed = tolerance() * (1 + up.magnitude + down.magnitude);
  if (!(std::abs(up.sum - down.sum) <= allowed))
    throw Mismatch{Property::Gradient, "reverse " + numberText(down.sum) +
                                           " against forward " +
                                           numberText(up.sum)};
}

void Checker::expectAdjoints(Property property, const Arrays &actual) {
  std::string text = difference(kernel, actual, *adjoints, tolerance());
  if (!text.empty())
    throw Mismatch{property, "the adjoint of " + text};
}

void Checker::ofGradient(const Derived &gradient, const Arrays &weights) {
  result.reloads |= llvm::is_contained(gradient.info.reloaded, true);
  result.versions |= !gradient.info.versions.empty();
  for (unsigned k = 0; k < gradient.kernel.getNumArguments(); ++k)
    result.scratch |= bool(gradient.kernel.getArgAttr(k, ir::scratchOfAttr));
  if (wanted.has(Property::Steers))
    steers(gradient.kernel);
  if (wanted.has(Property::SmallTape) && peak > 0)
    smallTape(gradient, weights);
  if (wanted.has(Property::Order))
    expectAdjoints(
        Property::Order,
        pulled(gradient, after, weights, {.order = seed | 1}, Property::Order));
  if (wanted.has(Property::Needs)) {
    auto whole = std::exchange(versions, poisonedVersions(gradient));
    expectAdjoints(Property::Needs, pulled(gradient, poisoned(gradient),
                                           weights, {}, Property::Needs));
    versions = std::move(whole);
  }
  if (wanted.has(Property::ByHand))
    expectAdjoints(Property::ByHand, pulled(gradient, initial(gradient),
                                            weights, {}, Property::ByHand));
  if (wanted.has(Property::Optimised))
    optimised(gradient, weights);
}

/// Whether `use` decides about control or addresses.
static bool isSteering(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<scf::IfOp, scf::ForOp>(user))
    return !isa<FloatType>(use.get().getType()) &&
           use.getOperandNumber() < (isa<scf::IfOp>(user) ? 1 : 3);
  if (isa<ir::LocalLoadOp, ir::LocalStoreOp>(user))
    return use.getOperandNumber() + 1 == user->getNumOperands();
  return isa<ir::LoadOp, ir::StoreOp, ir::AtomicAddOp>(user) &&
         use.get().getType().isInteger(64) && use.getOperandNumber() > 0;
}

/// The user behind `value`, over integers and bools, that it steers.
static Operation *steeredBy(Value value) {
  SmallVector<Value> pending{value};
  llvm::DenseSet<Value> seen;
  while (!pending.empty())
    for (OpOperand &use : pending.pop_back_val().getUses()) {
      if (isSteering(use))
        return use.getOwner();
      for (Value result : use.getOwner()->getResults())
        if (!isa<FloatType>(result.getType()) && seen.insert(result).second)
          pending.push_back(result);
    }
  return nullptr;
}

/// Of minima and maxima, the one whose value stands in the element takes the
/// adjoint: that needs a comparison.
static bool looksForExtremum(Operation *op) {
  auto comparison = dyn_cast<arith::CmpFOp>(op);
  return comparison && comparison.getPredicate() == arith::CmpFPredicate::OEQ &&
         comparison.getRhs().getDefiningOp<ir::LoadOp>();
}

/// A float that is computed again may differ from the first one in the last
/// bit, on some device: what it decides must have been saved.
void Checker::steers(ir::KernelOp gradient) {
  gradient.walk([&](tape::PivotOp pivot) {
    for (Operation *op = pivot->getNextNode(); op; op = op->getNextNode()) {
      op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
        if (isa<ir::RangeOp>(inner))
          return WalkResult::skip(); // it has a pivot of its own
        if (isa<arith::CmpFOp, ir::ToIntOp>(inner) &&
            !looksForExtremum(inner) && steeredBy(inner->getResult(0)))
          throw Mismatch{Property::Steers,
                         "the reverse sweep decides by `" +
                             inner->getName().getStringRef().str() + "`"};
        return WalkResult::advance();
      });
    }
  });
}

void Checker::smallTape(const Derived &gradient, const Arrays &weights) {
  size_t need = peak;
  Memory memory = extended(after, gradient.kernel, weights, versions);
  auto report = gradient.launchable.run(
      memory, {.tapeBytes = size_t(random.below(int(need)))});
  if (report || report.error().code != ErrorCode::OutOfMemory)
    throw Mismatch{Property::SmallTape,
                   report ? "a tape that is too small is not noticed"
                          : report.error().text};
  expectAdjoints(Property::SmallTape,
                 pulled(gradient, after, weights, {.tapeBytes = need},
                        Property::SmallTape));
}

/// What the primal left, with garbage where the gradient needs nothing.
Memory Checker::poisoned(const Derived &gradient) {
  Memory memory = after, garbage = after;
  for (auto [k, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (auto array = dyn_cast<ir::ArrayType>(type))
      fillWithGarbage(garbage.arrays[k], array.getElementType());
  forElements([&](size_t k, Type element, size_t at) {
    if (!gradient.info.needed[k] ||
        !isInside(gradient.info.neededSections[k], memory.arrays[k], at))
      set(memory.arrays[k], element, at, get(garbage.arrays[k], element, at));
  });
  return memory;
}

/// The versions, with garbage where the gradient reads nothing.
std::vector<Recorded> Checker::poisonedVersions(const Derived &gradient) {
  std::vector<Recorded> poisoned = versions;
  for (Recorded &recorded : poisoned) {
    size_t version = llvm::find(gradient.info.versions, recorded.version) -
                     gradient.info.versions.begin();
    const ArraySection &section = gradient.info.versionSections[version];
    forElements([&](size_t k, Type element, size_t at) {
      interpreter::HostArray garbage = recorded.array;
      if (k != recorded.version.argument ||
          isInside(section, recorded.array, at))
        return;
      fillWithGarbage(garbage, element);
      set(recorded.array, element, at, get(garbage, element, at));
    });
  }
  return poisoned;
}

/// What the primal left, but what the gradient does not reload as it was.
Memory Checker::initial(const Derived &gradient) {
  Memory memory = after;
  for (size_t k = 0; k < before.arrays.size(); ++k)
    if (!gradient.info.reloaded[k])
      memory.arrays[k] = before.arrays[k];
  return memory;
}

void Checker::optimised(const Derived &gradient, const Arrays &weights) {
  OwningOpRef<ModuleOp> changed = moduleWith(gradient.kernel);
  apply(session.derivative(), *changed, Property::Optimised);
  ir::KernelOp better = kernelOf(*changed);
  Derived other{gradient.info, translate(better, Property::Optimised), better};
  expectAdjoints(Property::Optimised,
                 pulled(other, after, weights, {}, Property::Optimised));
}

/// `active` and the arrays that the kernel writes values to that vary with
/// them: a launch is refused where one of these has no derivative.
Active Checker::closed(Active active) {
  for (bool changed = true; changed;) {
    changed = false;
    Active writes = autodiff::activeWrites(kernel, active);
    for (size_t k = 0; k < active.size(); ++k)
      changed |= writes[k] && !std::exchange(active[k], true);
  }
  return active;
}

/// Where no value that varies is written, a tangent stays or becomes 0.
void Checker::expectPassive(ArrayRef<bool> active, const Arrays &tangents,
                            const Arrays &direction) {
  Active writes = autodiff::activeWrites(kernel, active);
  forElements([&](size_t k, Type element, size_t at) {
    if (!active[k] || writes[k])
      return;
    double tangent = get(tangents[k], element, at);
    if (tangent != 0 && tangent != get(direction[k], element, at))
      throw Mismatch{Property::Sections,
                     "the tangent of " + placeText(k, at) +
                         " changes, though no value that varies is written"};
  });
}

void Checker::subset() {
  Active some;
  for (size_t k = 0; k < before.arrays.size(); ++k)
    some.push_back(random.chance(60));
  some = closed(floatsAmong(kernel, some));
  Properties outer = wanted;
  wanted = Properties::of({Property::Forward, Property::Records,
                           Property::Gradient, Property::Refuses,
                           Property::KeepsMemory, Property::Needs});
  Verdict known = result;
  try {
    derive(some);
  } catch (const Mismatch &mismatch) {
    throw Mismatch{Property::Subset,
                   nameOf(mismatch.property).str() + ": " + mismatch.text};
  }
  result = known;
  wanted = outer;
}

} // namespace costate::fuzz
