#include "api/BoundLaunch.h"

#include "api/Checked.h"
#include "api/LaunchCode.h"
#include "api/Sections.h"
#include "runtime/Text.h"

#include <algorithm>
#include <bit>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::Access;
using runtime::ArrayStorage;
using Role = runtime::Parameter::Role;

/// Whether the launch and not its caller has the array.
static bool isProvided(const runtime::Parameter &parameter) {
  return parameter.role == Role::Version || parameter.role == Role::Scratch ||
         parameter.role == Role::Owners || parameter.role == Role::Marks;
}

/// Whether memory of `parameter` changes when the kernel or its derivative
/// runs.
static bool isWritten(const Access &access,
                      const runtime::Parameter &parameter) {
  return access.written || (parameter.role == Role::Adjoint && access.read);
}

BoundLaunch::BoundLaunch(const Call &call, Chain chain, Compiled &compiled)
    : call(call), chain(chain), compiled(compiled), code(*compiled.code) {
  uses.reserve(code.parameters.size());
  size_t place = 0;
  for (const runtime::Parameter &parameter : code.parameters) {
    hasAdjoints |= parameter.role == Role::Adjoint;
    ArrayStorage *array =
        isProvided(parameter) ? nullptr : arrayOf(call, parameter);
    const Access &access = code.accesses[parameter.argument];
    // A gradient leaves memory of the primal as it is, and a check all memory.
    bool keepsMemory = (isGradient() && parameter.role == Role::Primal) ||
                       chain.mode == Mode::Check;
    if (array) {
      add({array,
           parameter.isArgument() &&
               (isGradient() ? access.needed : access.read),
           !keepsMemory && isWritten(access, parameter)});
    } else {
      changing.push_back({uses.size(), place});
      add({});
    }
    place += 1 + static_cast<size_t>(std::max(parameter.rank, 0));
  }
  noteReloads();
}

void BoundLaunch::noteReloads() {
  for (size_t i = 0; i < code.accesses.size(); ++i) {
    const Access &access = code.accesses[i];
    canReload |= !isGradient() && access.read && access.written;
    if (isGradient() && access.reloaded && !reloaded)
      reloaded = i;
  }
}

std::vector<std::shared_ptr<ArrayStorage>> BoundLaunch::derivatives() const {
  std::vector<std::shared_ptr<ArrayStorage>> arrays;
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i].written && !code.parameters[i].isArgument())
      arrays.push_back(uses[i].array->shared_from_this());
  return arrays;
}

//===-- Arrays with a part in common --------------------------------------===//

/// Whether a gradient has no part in an argument: it writes none, and reads
/// what it needs.
bool BoundLaunch::isLeftOut(const runtime::Parameter &parameter) const {
  return hasAdjoints && parameter.isArgument() &&
         !code.accesses[parameter.argument].needed;
}

/// Arrays over memory of others may have a part in common.
static bool overlap(const ArrayStorage &one, const ArrayStorage &other) {
  const runtime::Buffer &a = one.buffer, &b = other.buffer;
  return a.bytes && b.bytes && a.address < b.address + b.bytes &&
         b.address < a.address + a.bytes;
}

bool BoundLaunch::mayShare(size_t one, size_t other) const {
  runtime::Parameter a = code.parameters[one], b = code.parameters[other];
  return !overlap(*uses[one].array, *uses[other].array) || isLeftOut(a) ||
         isLeftOut(b) ||
         !(isWritten(code.accesses[a.argument], a) ||
           isWritten(code.accesses[b.argument], b));
}

/// Whether no two arrays have memory in common, as is seen where they are in
/// order.
static bool areApart(const AccessSet::Uses &uses) {
  using Part = std::pair<const std::byte *, const std::byte *>;
  boost::container::small_vector<Part, 256> parts;
  parts.reserve(uses.size());
  for (const ArrayUse &use : uses)
    if (use.array && use.array->buffer.bytes) {
      const std::byte *begin = use.array->buffer.address;
      parts.push_back({begin, begin + use.array->buffer.bytes});
    }
  if (!std::ranges::is_sorted(parts))
    std::ranges::sort(parts);
  return std::ranges::adjacent_find(parts, [](Part one, Part next) {
           return next.first < one.second;
         }) == parts.end();
}

/// Whether each array is given once, and has memory that a device has made for
/// it. May say no though it is so.
static bool haveTheirOwn(const AccessSet::Uses &uses) {
  boost::container::small_vector<const ArrayStorage *, 512> places(
      std::bit_ceil(2 * uses.size()));
  for (const ArrayUse &use : uses) {
    if (!use.array)
      continue;
    size_t place = use.array->identity & (places.size() - 1);
    while (places[place] && places[place] != use.array)
      place = (place + 1) & (places.size() - 1);
    if (places[place] || use.array->owner)
      return false;
    places[place] = use.array;
  }
  return true;
}

void BoundLaunch::requireApart() const {
  if (isApart)
    return;
  if (haveTheirOwn(uses) || areApart(uses)) {
    isApart = isKept;
    return;
  }
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = i + 1; uses[i].array && j < uses.size(); ++j)
      if (uses[j].array && !mayShare(i, j))
        raise(ErrorCode::BadArgument,
              call.kernel->title() + ": " +
                  runtime::parameterText(code, code.parameters[i]) + " and " +
                  runtime::parameterText(code, code.parameters[j]) +
                  (uses[i].array == uses[j].array ? " are the same array"
                                                  : " have memory in common") +
                  ", and it is written; pass two arrays");
}

//===-- Running it --------------------------------------------------------===//

BoundLaunch::Workspace BoundLaunch::makeWorkspace() const {
  Workspace workspace;
  for (auto [i, _] : changing) {
    const runtime::Parameter &parameter = code.parameters[i];
    if (!isProvided(parameter) || parameter.role == Role::Version)
      continue;
    if (!workspace.memory)
      workspace.memory = std::make_shared<runtime::CopyMemory>(call.device);
    const ArrayStorage &like = *arrayOf(call, parameter);
    DType dtype = parameter.role == Role::Owners  ? DType::I64
                  : parameter.role == Role::Marks ? DType::I8
                                                  : like.dtype;
    Result<runtime::Buffer> buffer =
        workspace.memory->take(static_cast<size_t>(like.size) * sizeOf(dtype));
    if (!buffer)
      raise(buffer.error().code, "memory for an array like " +
                                     runtime::contentsText(like) + ": " +
                                     buffer.error().text);
    workspace.buffers.push_back(*buffer);
  }
  return workspace;
}

uint64_t BoundLaunch::slot(size_t i, const VersionArrays &versions,
                           OwnBuffer &own) const {
  const runtime::Parameter &parameter = code.parameters[i];
  const ArrayStorage *array = uses[i].array;
  if (!array && !isProvided(parameter))
    return call.arguments[parameter.argument].bits;
  runtime::Buffer buffer = versions.find(parameter);
  if (array && !buffer.address)
    buffer = array->buffer;
  if (!array && parameter.role != Role::Version)
    buffer = *own++;
  return reinterpret_cast<uint64_t>(buffer.address);
}

/// What the code is given: scalars, addresses and extents.
std::vector<uint64_t> BoundLaunch::slots(const VersionArrays &versions,
                                         const Workspace &workspace) const {
  std::vector<uint64_t> slots;
  slots.reserve(3 * uses.size());
  auto own = workspace.buffers.begin();
  for (size_t i = 0; i < uses.size(); ++i) {
    const runtime::Parameter &parameter = code.parameters[i];
    slots.push_back(slot(i, versions, own));
    if (parameter.rank < 0)
      continue;
    const ArrayStorage *array = uses[i].array;
    if (!array)
      array = arrayOf(call, parameter);
    for (int64_t extent : array->extents)
      slots.push_back(static_cast<uint64_t>(extent));
  }
  return slots;
}

/// What sizes of tapes of `code` follow from; empty if others may write there,
/// or it is kept elsewhere.
std::vector<uint64_t>
BoundLaunch::countedFrom(std::span<const uint64_t> slots,
                         const VersionArrays &versions) const {
  const runtime::gpu::DeviceCode *device = code.device.get();
  if (!device || device->knowsNeeds || device->countsFromAll)
    return {};
  std::vector<uint64_t> numbers;
  for (int64_t i : device->countedFrom) {
    const ArrayStorage *array = uses[i].array;
    if (!array || array->owner || array->strangers > 0 || array->isOpen ||
        versions.find(code.parameters[i]).address)
      return {};
    numbers.insert(numbers.end(), {array->identity, array->contents()});
  }
  for (int64_t slot : device->countedSlots)
    numbers.push_back(slots[static_cast<size_t>(slot)]);
  numbers.push_back(tapeBudget());
  return numbers;
}

size_t BoundLaunch::tapeBudget() const {
  size_t chosen = call.kernel->options.tape_budget;
  return chosen ? chosen : call.device->info().tapeBudget;
}

runtime::KeptLaunch BoundLaunch::request(const VersionArrays &versions,
                                         const Workspace &workspace) const {
  if (!isKept)
    return newRequest(versions, workspace);
  if (!known)
    return known.emplace(newRequest(versions, workspace));
  auto own = workspace.buffers.begin();
  for (auto [i, place] : changing)
    known->arguments[place] = slot(i, versions, own);
  return *known;
}

runtime::KeptLaunch BoundLaunch::newRequest(const VersionArrays &versions,
                                            const Workspace &workspace) const {
  runtime::KeptLaunch launch{&code, slots(versions, workspace),
                             {},    call.kernel->options.deterministic,
                             quiet, tapeBudget()};
  for (size_t i = 0; i < uses.size(); ++i)
    if (code.parameters[i].role == Role::Adjoint)
      launch.adjoints.push_back(uses[i].array->buffer);
  return launch;
}

/// A record of the tape holds the values of all lanes.
static bool hasLanes(const runtime::KernelCode &code) {
  return std::ranges::any_of(code.ranges, [](const runtime::RangeLanes &range) {
    return range.lanes > 1;
  });
}

std::vector<compiler::Derivation> BoundLaunch::waysToSaveLess() const {
  std::vector<compiler::Derivation> ways;
  bool isGpu = code.device != nullptr;
  if (!isGradient() || !(mayLackTapes() || isGpu))
    return ways;
  compiler::Derivation alone = derivationOf(call, chain);
  alone.fromMemory = fromMemory;
  bool mayDropLanes = hasLanes(code) && !call.kernel->options.lanes;
  bool mayCut = !chain.order && (!isGpu || code.device->pushes);
  compiler::Derivation cut = alone;
  alone.lanes = 1;
  if (mayDropLanes && !tapeBudget())
    ways.push_back(alone);
  cut.byBudget = true;
  if (mayCut)
    ways.push_back(cut);
  cut.lanes = 1;
  if (mayCut && mayDropLanes)
    ways.push_back(cut);
  if (mayDropLanes && tapeBudget())
    ways.push_back(alone);
  return ways;
}

bool BoundLaunch::mayLackTapes() const {
  return code.growsTape || (tapeBudget() && code.recordBytes > 0);
}

profile::Span BoundLaunch::span() const {
  return call.kernel->span(profile::Kind::Launch, isGradient(), chain.order);
}

static void noteTapes(Compiled &compiled, const runtime::LaunchReport &report,
                      size_t budget) {
  compiled.tapeBytes = report.tapeBytes;
  compiled.allTapeBytes = report.allBytes;
  compiled.tapeBudget = budget;
}

/// Whether memory and copies, which are as `code` needs them, are as `other`,
/// a derivative of the same kind, does.
bool BoundLaunch::mayRun(const runtime::KernelCode &other) const {
  auto covers = [&](size_t argument, const ArraySection &outer,
                    const ArraySection &inner) {
    return contains(boxOf(outer, call, argument), boxOf(inner, call, argument));
  };
  for (size_t i = 0; i < other.accesses.size(); ++i) {
    const Access &own = code.accesses[i], &theirs = other.accesses[i];
    bool isThere = own.needed && own.reloaded >= theirs.reloaded &&
                   covers(i, own.neededSection, theirs.neededSection);
    if (theirs.needed && !isThere)
      return false;
  }
  for (size_t k = 0; k < other.parameters.size(); ++k) {
    const runtime::Parameter &version = other.parameters[k];
    if (version.role != Role::Version)
      continue;
    auto own = std::ranges::find(code.parameters, version);
    if (own == code.parameters.end() ||
        !covers(version.argument,
                code.sections[size_t(own - code.parameters.begin())],
                other.sections[k]))
      return false;
  }
  return true;
}

Result<runtime::LaunchReport>
BoundLaunch::launch(runtime::KeptLaunch kept,
                    const VersionArrays &versions) const {
  std::string title = profile::isOn() ? span().name : "";
  size_t first = compiled.fitting.load();
  std::optional<Result<runtime::LaunchReport>> report;
  bool mayRepeat = true;
  bool isOther = false;
  auto run = [&](const BoundLaunch &bound, bool isLastResort) {
    mayRepeat = !code.device; // CPUs leave it as it is
    kept.countedFrom = bound.countedFrom(kept.arguments, versions);
    runtime::LaunchRequest request = kept.request();
    request.isUntouched = &mayRepeat;
    request.title = title;
    request.isLastResort = isLastResort;
    report = call.device->launch(request);
  };
  if (first == 0)
    run(*this, !mayLackTapes());
  auto isDone = [&] {
    return report && (*report || !mayRepeat ||
                      report->error().code != ErrorCode::OutOfMemory);
  };
  if (isDone())
    return *report;
  std::vector<compiler::Derivation> ways = waysToSaveLess();
  for (size_t way = std::max<size_t>(first, 1); way <= ways.size(); ++way) {
    const compiler::Derivation &derivation = ways[way - 1];
    Compiled &other = codeFor(call, derivation);
    if ((derivation.byBudget && !other.code->fitsBudget) ||
        !mayRun(*other.code))
      continue;
    BoundLaunch instead(call, chain, other);
    Workspace workspace = instead.makeWorkspace();
    instead.quiet = quiet;
    kept = instead.newRequest(versions, workspace);
    isOther = true;
    run(instead, false);
    if (isDone()) {
      compiled.fitting = *report ? way : first;
      noteTapes(other, *report ? **report : runtime::LaunchReport(),
                tapeBudget());
      return *report;
    }
  }
  if (!isOther && mayLackTapes() && !code.device)
    run(*this, true);
  else if (!report) // what has fitted before may not run this time
    run(*this, false);
  return *report;
}

void BoundLaunch::execute(const VersionArrays &versions) const {
  profile::Timed timed([&] { return span(); });
  Workspace workspace = makeWorkspace();
  runtime::KeptLaunch kept = request(versions, workspace);
  Result<runtime::LaunchReport> report = launch(std::move(kept), versions);
  countWrites();
  runtime::LaunchReport done = checked(std::move(report));
  noteTapes(compiled, done, tapeBudget());
  if (done.isInGraph)
    noteOthersWriting();
  compiled.versionBytes = versions.bytes();
}

void BoundLaunch::run(const VersionArrays &versions) const {
  requireApart();
  tellWatchers();
  execute(versions);
}

//===-- For messages ------------------------------------------------------===//

std::string BoundLaunch::useText(size_t use) const {
  return runtime::parameterText(code, code.parameters[use]) + " of " +
         call.kernel->title();
}

std::string BoundLaunch::readerText() const { return call.kernel->title(); }

std::string BoundLaunch::writerText() const {
  return (isGradient() ? "the gradient of " : "") + call.kernel->title();
}

/// Sections are those of the argument; directions add a dimension.
runtime::Box BoundLaunch::writtenElements(size_t use) const {
  runtime::Parameter parameter = code.parameters[use];
  const ArrayStorage &array = *uses[use].array;
  bool isAlike =
      array.extents == call.arguments[parameter.argument].array->extents;
  if (parameter.role == Role::Adjoint || !isAlike)
    return runtime::Box::whole(array.extents);
  return boxOf(code.accesses[parameter.argument].writtenSection, call,
               parameter.argument);
}
