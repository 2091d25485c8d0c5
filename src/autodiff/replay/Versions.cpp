#include "autodiff/replay/Versions.h"

#include "ir/Operations.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace costate::autodiff {

/// The number of a load of the primal, on its copies.
static constexpr llvm::StringLiteral originAttr = "costate.origin";

/// What a part leaves is what the next one finds.
static std::pair<unsigned, unsigned> placeOf(const ArrayAccess &access) {
  return {argumentOf(access.array),
          partNumber(access.op) + readsAfterPart(access.op)};
}

SmallVector<ir::LoadOp> neededLoads(ir::KernelOp marked,
                                    ir::KernelOp gradient) {
  SmallVector<ir::LoadOp> all = ir::all<ir::LoadOp>(marked), needed;
  llvm::DenseSet<unsigned> seen;
  for (ir::LoadOp load : ir::all<ir::LoadOp>(gradient))
    if (auto origin = integerOf(load, originAttr))
      if (seen.insert(*origin).second)
        needed.push_back(all[*origin]);
  return needed;
}

void Versions::mark(ir::KernelOp kernel) const {
  OpBuilder builder(kernel.getContext());
  for (auto [number, load] : llvm::enumerate(ir::all<ir::LoadOp>(kernel)))
    if (!ir::holdsOwners(load.getArray()))
      load->setAttr(originAttr, builder.getI64IntegerAttr(number));
  if (scratch.empty())
    return;
  for (const ArrayAccess &access : accessesIn(kernel))
    if (Place place = placeOf(access);
        scratch.contains(place) && !readsAfterPart(access.op))
      access.op->setAttr(ir::replayedAttr,
                         builder.getI64IntegerAttr(place.second));
}

/// The version before a part is that of an earlier part if nothing between
/// writes the array.
unsigned Versions::add(Place place) {
  while (place.second > 0 && !written.contains({place.first, place.second - 1}))
    --place.second;
  Version version{place.first, place.second};
  auto known = llvm::find(versions, version);
  if (known != versions.end())
    return known - versions.begin();
  versions.push_back(version);
  reads.emplace_back();
  return versions.size() - 1;
}

bool Versions::isRepeated(ir::LoadOp load) const {
  return scratch.contains(placeOf(*accessOf(load))) && !readsAfterPart(load);
}

static void refuseVersions(const Overwrite &overwrite, Operation *around) {
  InFlightDiagnostic error = emitOverwritten(overwrite);
  error.attachNote(around->getLoc())
      << "of serial loops and branches around ranges, like this one, only what "
         "they find is kept";
  error.attachNote()
      << "give the array a time index and write element t+1 from element t; or "
         "launch the range as a kernel of its own, from a loop on the host, "
         "and record the launches with a `Tape`";
}

FailureOr<bool> Versions::resolve(ir::KernelOp primal,
                                  ArrayRef<ir::LoadOp> needed,
                                  Refusal &refusal) {
  Writes writes = writesOf(primal);
  for (auto &[array, accesses] : writes)
    for (const ArrayAccess &access : accesses)
      written.insert(placeOf(access));
  versions.clear();
  reads.clear();
  versionOf.clear();
  finalLoads.clear();
  size_t known = scratch.size();
  for (ir::LoadOp load : needed) {
    Place place = placeOf(*accessOf(load));
    if (isRepeated(load))
      continue;
    std::optional<Overwrite> reason = findOverwrite(writes, load);
    if (!reason) {
      finalLoads.push_back(load);
      continue;
    }
    if (!overwrite)
      overwrite = reason;
    bool after = readsAfterPart(load), rerun = mayFollowOwnWrite(writes, load);
    Operation *around = statementOf(load);
    bool isUnkept = holdsRanges(around) && (after || rerun);
    if (isUnkept && unkept == Unkept::FromMemory) {
      finalLoads.push_back(load);
      continue;
    }
    if (isUnkept) {
      refusal.code = ErrorCode::CannotReplay;
      refuseVersions(*reason, around);
      return failure();
    }
    if (!after && rerun)
      scratch.insert(place);
    else
      versionOf[*integerOf(load, originAttr)] = add(place);
  }
  return scratch.size() == known;
}

static Value appendVersion(ir::KernelOp kernel, Version version) {
  Value of = kernel.getArgument(version.argument);
  BlockArgument array =
      appendArray(kernel, of, of.getType(), ir::versionOfAttr);
  OpBuilder b(kernel.getContext());
  kernel.setArgAttr(array.getArgNumber(), ir::partAttr,
                    b.getI64IntegerAttr(version.part));
  return array;
}

Value Versions::arrayOf(ir::KernelOp gradient, unsigned version) {
  Value &array = versionArrays[version];
  if (!array)
    array = appendVersion(gradient, versions[version]);
  return array;
}

Value Versions::scratchOf(ir::KernelOp gradient, unsigned argument) {
  Value &array = scratchArrays[argument];
  if (!array) {
    Value of = gradient.getArgument(argument);
    array = appendArray(gradient, of, of.getType(), ir::scratchOfAttr);
  }
  return array;
}

/// Puts the version that a range or a serial run starts from into its scratch
/// arrays.
void Versions::fillScratch(ir::KernelOp gradient) {
  llvm::DenseSet<Place> filled;
  for (Operation &op : gradient.getBodyRegion().front()) {
    llvm::SetVector<Place> places;
    for (const ArrayAccess &access : accessesIn(&op))
      if (auto part = integerOf(access.op, ir::replayedAttr);
          part && !ir::holdsOwners(access.array))
        places.insert(Place(argumentOf(access.array), *part));
    for (Place place : places) {
      if (!isa<ir::RangeOp>(op) && !filled.insert(place).second)
        continue;
      Value from = arrayOf(gradient, add(place));
      Value to = scratchOf(gradient, place.first);
      OpBuilder builder(&op);
      ir::CopyOp::create(builder, op.getLoc(), from, to);
    }
  }
}

void Versions::redirect(ir::KernelOp gradient) {
  fillScratch(gradient);
  for (const ArrayAccess &access : accessesIn(gradient)) {
    if (ir::holdsOwners(access.array))
      continue;
    auto origin = integerOf(access.op, originAttr);
    unsigned argument = argumentOf(access.array);
    if (auto part = integerOf(access.op, ir::replayedAttr)) {
      if (access.isLoad())
        widen(reads[add(Place(argument, *part))], access);
      access.redirect(scratchOf(gradient, argument));
    } else if (origin && versionOf.contains(*origin)) {
      widen(reads[versionOf[*origin]], access);
      access.redirect(arrayOf(gradient, versionOf[*origin]));
    }
    access.op->removeAttr(originAttr);
  }
}

/// The first operation of part `part`.
static void moveToPart(OpBuilder &builder, ir::KernelOp kernel, unsigned part) {
  Block &block = kernel.getBodyRegion().front();
  SmallVector<Operation *> own;
  for (Operation &op : block)
    if (isOwnPart(&op))
      own.push_back(&op);
  if (part % 2)
    builder.setInsertionPoint(own[part / 2]);
  else if (part > 0)
    builder.setInsertionPointAfter(own[part / 2 - 1]);
  else
    builder.setInsertionPointToStart(&block);
}

ir::KernelOp recordVersions(ir::KernelOp primal, ArrayRef<Version> versions) {
  OpBuilder builder(primal->getContext());
  ir::KernelOp recording = copyOf(primal, ".record");
  for (Version version : versions) {
    Value to = appendVersion(recording, version);
    moveToPart(builder, recording, version.part);
    ir::CopyOp::create(builder, recording.getLoc(),
                       recording.getArgument(version.argument), to);
  }
  return recording;
}

} // namespace costate::autodiff
