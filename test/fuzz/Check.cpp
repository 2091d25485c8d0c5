#include "fuzz/Checker.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;

namespace costate::fuzz {

llvm::StringRef nameOf(Property property) {
  static constexpr llvm::StringLiteral names[] = {"verifies",
                                                  "prints",
                                                  "runs",
                                                  "watches",
                                                  "passes",
                                                  "sections",
                                                  "refuses",
                                                  "forward",
                                                  "records",
                                                  "still",
                                                  "finite",
                                                  "gradient",
                                                  "steers",
                                                  "keeps-memory",
                                                  "entries",
                                                  "differences",
                                                  "order",
                                                  "needs",
                                                  "by-hand",
                                                  "small-tape",
                                                  "subset",
                                                  "prepared",
                                                  "optimised",
                                                  "second",
                                                  "second-differences",
                                                  "cut",
                                                  "curves",
                                                  "plans"};
  static_assert(std::size(names) == size_t(Property::count));
  return names[size_t(property)];
}

Properties Properties::of(std::initializer_list<Property> list) {
  Properties some(0);
  for (Property property : list)
    some.add(property);
  return some;
}

Properties Properties::sampled(uint64_t seed) {
  Random random(seed * 77 + 5);
  Properties some = of({Property::Runs, Property::Watches, Property::Refuses,
                        Property::Forward, Property::Records, Property::Finite,
                        Property::Gradient, Property::KeepsMemory});
  struct {
    Property property;
    int percent;
  } const expensive[] = {{Property::Verifies, 10},
                         {Property::Prints, 2},
                         {Property::Passes, 8},
                         {Property::Steers, 10},
                         {Property::Sections, 20},
                         {Property::Still, 6},
                         {Property::Entries, 5},
                         {Property::Differences, 6},
                         {Property::Order, 10},
                         {Property::Needs, 20},
                         {Property::ByHand, 15},
                         {Property::SmallTape, 15},
                         {Property::Subset, 15},
                         {Property::Prepared, 12},
                         {Property::Optimised, 5},
                         {Property::Second, 5},
                         {Property::SecondDifferences, 2},
                         {Property::Cut, 25},
                         {Property::Curves, 2},
                         {Property::Plans, 25}};
  for (auto [property, percent] : expensive)
    if (random.chance(percent))
      some.add(property);
  return some;
}

Checker::Checker(Session &session, ModuleOp module, const Memory &memory,
                 bool isSingular, uint64_t seed, Properties wanted)
    : session(session), module(module), kernel(kernelOf(module)),
      before(memory), isSingular(isSingular), seed(seed), wanted(wanted),
      random(seed) {
  auto isHalf = [](Type type) {
    auto array = dyn_cast<ir::ArrayType>(type);
    return array && array.getElementType().isF16();
  };
  half = llvm::any_of(kernel.getArgumentTypes(), isHalf);
  module.walk([&](Operation *op) {
    half |= isa<ir::NarrowOp>(op) && op->getResultTypes()[0].isF32();
    single |= llvm::any_of(op->getResultTypes(),
                           [](Type type) { return type.isF32(); });
  });
}

Verdict Checker::run() {
  try {
    properties();
  } catch (const Mismatch &mismatch) {
    result.kind = Verdict::Wrong;
    result.property = mismatch.property;
    result.text = mismatch.text;
  } catch (const SetAside &reason) {
    result.kind = reason.kind;
  }
  for (ir::KernelOp derived : derivatives)
    derived.erase();
  return result;
}

void Checker::properties() {
  if (wanted.has(Property::Verifies) && failed(verify(module)))
    throw Mismatch{Property::Verifies, "the kernel does not verify"};
  if (wanted.has(Property::Prints))
    prints(kernel);
  primal();
  if (wanted.has(Property::Sections))
    sections();
  if (wanted.has(Property::Passes))
    passes();
  if (wanted.has(Property::Prepared))
    prepared();
  derive(Active(before.arrays.size(), true));
  if (wanted.has(Property::Subset))
    subset();
}

//===-- Launches ----------------------------------------------------------===//

Launchable Checker::translate(ir::KernelOp of, Property property) {
  Result<Launchable> made = Launchable::make(of);
  if (!made)
    throw Mismatch{property, made.error().text};
  return std::move(*made);
}

interpreter::InterpreterReport
Checker::launch(const Launchable &launchable, Memory &memory, Property property,
                interpreter::InterpreterOptions options) {
  options.steps = 200 * steps + 100000;
  auto report = launchable.run(memory, options);
  if (!report)
    throw Mismatch{property, report.error().text};
  return *report;
}

void Checker::primal() {
  after = before;
  Launchable launchable = translate(kernel, Property::Runs);
  auto report = launchable.run(after, {.steps = 20000});
  if (!report) {
    const std::string &text = report.error().text;
    if (text.find("depends on their order") != std::string::npos) {
      if (wanted.has(Property::Watches))
        watches(text);
      throw SetAside{Verdict::Racy};
    }
    if (text.find("has not come to its end") != std::string::npos)
      throw SetAside{Verdict::Long};
    throw Mismatch{Property::Runs, text};
  }
  steps = report->steps;
  if (largest(kernel, after.arrays) < wild)
    return;
  if (wanted.has(Property::Still))
    still(allFloats(kernel));
  throw SetAside{Verdict::Wild};
}

void Checker::refuseWild(const Arrays &arrays,
                         const interpreter::InterpreterReport &report) {
  if (!(report.largestAddend < (single ? 1e5 : wildAddend)))
    throw SetAside{Verdict::Wild};
  double most = largest(kernel, arrays);
  if (std::isinf(most) && wanted.has(Property::Finite) && !isSingular)
    throw Mismatch{Property::Finite,
                   "a derivative is not finite, though no addend is larger "
                   "than " +
                       numberText(report.largestAddend)};
  if (!(most < wild))
    throw SetAside{Verdict::Wild};
  addend = std::max(addend, report.largestAddend);
}

void Checker::expectPrimal(Property property, const char *what,
                           const Memory &memory, const Memory &expected) {
  Arrays arrays(memory.arrays.begin(),
                memory.arrays.begin() + long(before.arrays.size()));
  std::string text = difference(kernel, arrays, expected.arrays, 0);
  if (!text.empty())
    throw Mismatch{property, what + (": " + text)};
}

/// What the last bit of some operations may change in the results.
double Checker::roundings() const { return half ? 0x1p-6 : 1e-6; }

double Checker::tolerance() const {
  return (single ? 1e-3 : 1e-9) + (single ? 1e-5 : 1e-13) * addend;
}

//===-- Text and passes ---------------------------------------------------===//

static std::string textOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

static std::string lineAt(std::string &text, std::string::iterator place) {
  auto isEnd = [](char c) { return c == '\n'; };
  auto begin =
      std::find_if(std::make_reverse_iterator(place), text.rend(), isEnd)
          .base();
  return "`" + std::string(begin, std::find_if(place, text.end(), isEnd)) + "`";
}

void Checker::prints(ir::KernelOp of) {
  std::string text = textOf(*moduleWith(of));
  OwningOpRef<ModuleOp> read;
  Session::Report report =
      session.reportOf([&] { read = session.parse(text); });
  if (!read)
    throw Mismatch{Property::Prints, report.text};
  std::string again = textOf(*read);
  auto [old, changed] = std::ranges::mismatch(text, again);
  if (old != text.end() || changed != again.end())
    throw Mismatch{Property::Prints,
                   "the text changes when it is read: " + lineAt(text, old) +
                       " becomes " + lineAt(again, changed)};
}

OwningOpRef<ModuleOp> Checker::moduleWith(ir::KernelOp of) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(of.getLoc());
  for (auto function : module.getOps<func::FuncOp>())
    copy->getBody()->push_back(function->clone());
  copy->getBody()->push_back(of->clone());
  return copy;
}

void Checker::apply(Session::Change &change, ModuleOp to, Property property) {
  bool done = false;
  Session::Report report =
      session.reportOf([&] { done = succeeded(change.passes->run(to)); });
  if (!done)
    throw Mismatch{property, change.name + " fails: " + report.text};
}

void Checker::passes() {
  Session::Change &change = random.pick(session.changes());
  OwningOpRef<ModuleOp> changed = moduleWith(kernel);
  apply(change, *changed, Property::Passes);
  Launchable launchable = translate(kernelOf(*changed), Property::Passes);
  Memory memory = before;
  launch(launchable, memory, Property::Passes);
  std::string text = difference(kernel, memory.arrays, after.arrays,
                                change.rounds ? roundings() : 0);
  // A rounding may flip a comparison, but not one of several.
  if (!text.empty() && (!change.rounds || differsNearby(launchable)))
    throw Mismatch{Property::Passes, "after " + change.name + ", " + text};
}

/// Whether `launchable` and the kernel disagree for three inputs near the one
/// that is looked at.
bool Checker::differsNearby(const Launchable &launchable) {
  Launchable original = translate(kernel, Property::Runs);
  for (int k = 0; k < 3; ++k) {
    Memory one = nudged(), other = one;
    if (!original.run(one, {.steps = 20000, .races = false}) ||
        !launchable.run(other, {.steps = 20000, .races = false}) ||
        difference(kernel, other.arrays, one.arrays, roundings()).empty())
      return false;
  }
  return true;
}

/// The input, with floats that are no whole numbers.
Memory Checker::nudged() {
  Memory memory = before;
  Arrays direction = randomLike(kernel, before, allFloats(kernel), random);
  addTo(kernel, memory.arrays, direction, 0.05);
  return memory;
}

/// A debug kernel looks only at accesses that are marked. `race` says which
/// argument the work items of a range do not share as they should.
void Checker::watches(StringRef race) {
  unsigned argument = 0;
  race = race.split("of argument ").second;
  race.consumeInteger(10, argument);
  OwningOpRef<ModuleOp> marked = moduleWith(kernel);
  apply(session.watch(), *marked, Property::Watches);
  WalkResult found = marked->walk([&](Operation *op) {
    bool isWatched = op->hasAttr(ir::watchedAttr) &&
                     llvm::any_of(op->getOperands(), [&](Value operand) {
                       auto array = dyn_cast<BlockArgument>(operand);
                       return array && isa<ir::ArrayType>(array.getType()) &&
                              array.getArgNumber() + 1 == argument;
                     });
    return isWatched ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found.wasInterrupted())
    throw Mismatch{Property::Watches, "argument " + std::to_string(argument) +
                                          race.str() + " is not watched"};
}

void Checker::prepared() {
  Session::Change &change = session.primal(random.chance(50));
  OwningOpRef<ModuleOp> changed = moduleWith(kernel);
  apply(change, *changed, Property::Prepared);
  Properties inner = Properties::of({Property::Forward, Property::Records,
                                     Property::Gradient, Property::KeepsMemory,
                                     Property::Refuses, Property::Optimised});
  Checker checker(session, *changed, before, isSingular, seed, inner);
  Verdict verdict = checker.run();
  if (verdict.kind == Verdict::Wrong)
    throw Mismatch{Property::Prepared, "after " + change.name + ", " +
                                           nameOf(verdict.property).str() +
                                           ": " + verdict.text};
}

//===-- Sections ----------------------------------------------------------===//

bool Checker::isInside(const ArraySection &section,
                       const interpreter::HostArray &array, size_t at) const {
  for (size_t d = section.dims.size(); d-- > 0;) {
    int64_t index = int64_t(at % size_t(array.extents[d]));
    at /= size_t(array.extents[d]);
    auto matches = [&](const SliceIndex &slice) {
      int64_t base =
          slice.scalar < 0 ? 0 : before.scalars[slice.scalar].integer;
      return base + slice.offset == index;
    };
    if (!section.dims[d].empty() && llvm::none_of(section.dims[d], matches))
      return false;
  }
  return true;
}

void Checker::sections() {
  std::vector<ArraySection> written = autodiff::writtenSections(kernel);
  SmallVector<bool> writes(before.arrays.size(), false);
  kernel.walk([&](ir::ElementAccess op) {
    if (ir::writesElement(op))
      writes[cast<BlockArgument>(op.getArray()).getArgNumber()] = true;
  });
  forElements([&](size_t k, Type element, size_t at) {
    double old = get(before.arrays[k], element, at);
    if (isClose(old, get(after.arrays[k], element, at), 0))
      return;
    if (!writes[k] || !isInside(written[k], before.arrays[k], at))
      throw Mismatch{Property::Sections,
                     placeText(k, at) + " is written outside of the section"};
  });
}

Verdict check(Session &session, const Case &subject, uint64_t seed,
              Properties wanted) {
  return Checker(session, subject.module.get(), subject.memory,
                 subject.isSingular, seed, wanted)
      .run();
}

} // namespace costate::fuzz
