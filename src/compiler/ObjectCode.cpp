#include "compiler/ObjectCode.h"

#include "compiler/Jit.h"
#include "compiler/TreeFields.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

using costate::runtime::KernelCode;
using costate::runtime::LineCost;
using costate::runtime::gpu::DeviceCode;

COSTATE_FIELDS(costate::SliceIndex, scalar, offset);
COSTATE_FIELDS(costate::ArraySection, dims);
COSTATE_FIELDS(costate::runtime::Parameter, role, argument, rank, part, order);
COSTATE_FIELDS(costate::runtime::RangeLanes, site, lanes, remark, additions);
COSTATE_FIELDS(costate::runtime::Access, read, written, activeWrite, needed,
               reloaded, passedOn, neededSection, writtenSection);
COSTATE_FIELDS(costate::runtime::gpu::SortCosts, iteration, uncoalescedWorkItem,
               uncoalescedIteration);
COSTATE_FIELDS(costate::runtime::gpu::DeviceFunction, symbol, measure, pushes,
               counts, dryRun, obstacle, needWord, budgetWord, measuredInPlace,
               serial, afterPivot, effects, ordered, collective, blockBytes,
               addsUp, accumulates, tiles, expensive, moderatelyExpensive,
               iterationRows, sharedSymbol, drainSymbol, sorts, sortSymbol,
               sortCosts, sums, least, sumSlot, oneSum, words, site, tapeSite,
               blockDim, hasBlocks, sharedBytes);

/// But for its place.
template <> struct costate::cache::Fields<LineCost> {
  static auto of(auto &self) {
    auto &[file, line, savedBits, computed, loaded, condition, tripCount,
           runsAgain, runsInTiles, staysWhole, keepsAll, checkpoints,
           stateBytes, iterationBytes, loopAbove] = self;
    return std::tie(savedBits, computed, loaded, condition, tripCount,
                    runsAgain, runsInTiles, staysWhole, keepsAll, checkpoints,
                    stateBytes, iterationBytes, loopAbove);
  }
};

/// But for what only a process has.
template <> struct costate::cache::Fields<DeviceCode> {
  static auto of(auto &self) {
    auto &[image, addresses, functions, frameSlots, pushes, knowsNeeds,
           countedFrom, countedSlots, countsFromAll, countsWritten, mayFail,
           prints] = self;
    return std::tie(image, functions, frameSlots, pushes, knowsNeeds,
                    countedFrom, countedSlots, countsFromAll, countsWritten,
                    mayFail, prints);
  }
};

/// The same.
template <> struct costate::cache::Fields<KernelCode> {
  static auto of(auto &self) {
    auto &[name, entry, parameters, accesses, arguments, componentDims,
           sections, missing, watched, sites, texts, objectBytes, objectHash,
           isLoaded, growsTape, recordBytes, lines, ranges, fitsBudget,
           leftToChance, overwritten, device, owner] = self;
    return std::tie(name, parameters, accesses, arguments, componentDims,
                    sections, missing, watched, sites, texts, objectBytes,
                    growsTape, recordBytes, lines, ranges, fitsBudget,
                    leftToChance, overwritten);
  }
};

namespace costate::compiler {

namespace {

std::vector<Loc> placesOf(const std::vector<LineCost> &lines) {
  std::vector<Loc> places;
  for (const LineCost &line : lines)
    places.emplace_back(line.file.c_str(), line.line, 0);
  return places;
}

void setPlaces(std::vector<LineCost> &lines, const std::vector<Loc> &places) {
  for (size_t k = 0; k < lines.size() && k < places.size(); ++k) {
    lines[k].file = places[k].file;
    lines[k].line = places[k].line;
  }
}

/// Where the kernel must stand because texts say so; 0: anywhere.
uint32_t fixedLine(const KernelCode &code, Loc origin) {
  return code.overwritten.empty() ? 0 : origin.line;
}

} // namespace

std::string bytesOf(const ObjectCode &object, Loc origin) {
  cache::Writer writer(origin);
  writer(object.code, placesOf(object.code.lines),
         fixedLine(object.code, origin), object.symbol, object.object,
         object.device != nullptr);
  if (object.device)
    writer(*object.device);
  return writer.take();
}

std::optional<ObjectCode> objectCodeOf(std::string_view bytes, Loc origin) {
  ObjectCode object;
  std::vector<Loc> places;
  uint32_t line = 0;
  bool hasDevice = false;
  cache::Reader reader(bytes, object.files.get(), origin);
  reader(object.code, places, line, object.symbol, object.object, hasDevice);
  if (hasDevice) {
    object.device = std::make_shared<DeviceCode>();
    reader(*object.device);
  }
  if (!reader.isComplete() || line != fixedLine(object.code, origin))
    return std::nullopt;
  setPlaces(object.code.lines, places);
  return object;
}

namespace {

/// What code needs as long as it lives.
struct CodeOwner {
  std::shared_ptr<void> code;
  std::shared_ptr<cache::Names> files;
};

/// Of device functions that run on the host.
std::vector<std::string> symbolsOf(const DeviceCode *code) {
  std::vector<std::string> symbols;
  if (!code || !code->image.empty())
    return symbols;
  for (const runtime::gpu::DeviceFunction &function : code->functions) {
    symbols.push_back(function.symbol);
    if (!function.measure.empty())
      symbols.push_back(function.measure);
  }
  return symbols;
}

} // namespace

Result<KernelCode> link(ObjectCode object) {
  Result<LoadedCode> loaded =
      load(llvm::MemoryBuffer::getMemBufferCopy(object.object, "kernel"),
           object.symbol, symbolsOf(object.device.get()));
  if (!loaded)
    return loaded.error();
  KernelCode code = std::move(object.code);
  code.entry = loaded->entry;
  code.objectHash = llvm::xxh3_64bits(object.object);
  if (object.device)
    object.device->addresses = std::move(loaded->addresses);
  code.device = std::move(object.device);
  code.owner = std::make_shared<CodeOwner>(
      CodeOwner{std::move(loaded->owner), std::move(object.files)});
  return code;
}

} // namespace costate::compiler
