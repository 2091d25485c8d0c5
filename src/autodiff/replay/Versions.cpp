#include "autodiff/replay/Versions.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace costate::autodiff {

/// The number of a load of the primal, on its copies.
static constexpr llvm::StringLiteral originAttr = "costate.origin";

static SmallVector<ir::LoadOp> loadsOf(ir::KernelOp kernel) {
  SmallVector<ir::LoadOp> loads;
  kernel.walk([&](ir::LoadOp load) { loads.push_back(load); });
  return loads;
}

static unsigned argumentOf(Value array) {
  return cast<BlockArgument>(array).getArgNumber();
}

/// What a part leaves is what the next one finds.
static std::pair<unsigned, unsigned> placeOf(const ArrayAccess &access) {
  return {argumentOf(access.array),
          partNumber(access.op) + readsAfterPart(access.op)};
}

static std::optional<unsigned> numberOf(Operation *op, StringRef attribute) {
  auto number = op->getAttrOfType<IntegerAttr>(attribute);
  if (!number)
    return std::nullopt;
  return number.getInt();
}

SmallVector<ir::LoadOp> neededLoads(ir::KernelOp marked,
                                    ir::KernelOp gradient) {
  SmallVector<ir::LoadOp> all = loadsOf(marked), needed;
  llvm::DenseSet<unsigned> seen;
  for (ir::LoadOp load : loadsOf(gradient))
    if (std::optional<unsigned> origin = numberOf(load, originAttr))
      if (seen.insert(*origin).second)
        needed.push_back(all[*origin]);
  return needed;
}

void Versions::mark(ir::KernelOp kernel) const {
  Builder builder(kernel.getContext());
  for (auto [number, load] : llvm::enumerate(loadsOf(kernel)))
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
      versionOf[*numberOf(load, originAttr)] = add(place);
  }
  return scratch.size() == known;
}

/// Appends an array like argument `argument`.
static Value appendArray(ir::KernelOp kernel, unsigned argument,
                         DictionaryAttr attributes) {
  unsigned last = kernel.getNumArguments();
  BlockArgument like = kernel.getArgument(argument);
  (void)kernel.insertArgument(last, like.getType(), attributes, like.getLoc());
  return kernel.getArgument(last);
}

static Value appendVersion(ir::KernelOp kernel, Version version) {
  Builder b(kernel.getContext());
  return appendArray(
      kernel, version.argument,
      b.getDictionaryAttr(
          {b.getNamedAttr(ir::versionOfAttr,
                          b.getI64IntegerAttr(version.argument)),
           b.getNamedAttr(ir::partAttr, b.getI64IntegerAttr(version.part))}));
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
    Builder b(gradient.getContext());
    array = appendArray(gradient, argument,
                        b.getDictionaryAttr(b.getNamedAttr(
                            ir::scratchOfAttr, b.getI64IntegerAttr(argument))));
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
      if (std::optional<unsigned> part = numberOf(access.op, ir::replayedAttr);
          part && !ir::holdsOwners(access.array))
        places.insert({argumentOf(access.array), *part});
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

void Versions::noteRead(unsigned version, const ArrayAccess &access) {
  reads.resize(versions.size());
  widen(reads[version], access);
}

std::vector<ArraySection> Versions::sections() const {
  std::vector<ArraySection> all(versions.size());
  for (auto [section, read] : llvm::zip(all, reads))
    section = read.value_or(ArraySection());
  return all;
}

void Versions::redirect(ir::KernelOp gradient) {
  fillScratch(gradient);
  for (const ArrayAccess &access : accessesIn(gradient)) {
    if (ir::holdsOwners(access.array))
      continue;
    OpOperand &array =
        *llvm::find_if(access.op->getOpOperands(), [&](OpOperand &operand) {
          return operand.get() == access.array;
        });
    std::optional<unsigned> origin = numberOf(access.op, originAttr);
    unsigned argument = argumentOf(access.array);
    if (auto part = numberOf(access.op, ir::replayedAttr)) {
      if (access.isLoad())
        noteRead(add({argument, *part}), access);
      array.set(scratchOf(gradient, argument));
    } else if (origin && versionOf.contains(*origin)) {
      noteRead(versionOf[*origin], access);
      array.set(arrayOf(gradient, versionOf[*origin]));
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
  builder.setInsertionPointAfter(primal);
  auto recording = cast<ir::KernelOp>(builder.clone(*primal));
  recording.setSymName((primal.getSymName() + ".record").str());
  for (Version version : versions) {
    Value to = appendVersion(recording, version);
    moveToPart(builder, recording, version.part);
    ir::CopyOp::create(builder, recording.getLoc(),
                       recording.getArgument(version.argument), to);
  }
  return recording;
}

} // namespace costate::autodiff
