#include "api/Launch.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"
#include "api/Intact.h"
#include "api/LaunchCode.h"
#include "api/LaunchEntry.h"
#include "api/PastLaunch.h"
#include "api/Recording.h"

#include <algorithm>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;

/// Others may have written arguments since they were used last.
static void noteStrangersOf(const Call &call) {
  if (Capture::current())
    return;
  for (const BoundArgument &argument : call.arguments)
    if (argument.array)
      noteStrangers(*argument.array);
}

static void recordGradient(const BoundLaunch &gradient) {
  if (recordingTape())
    recordDerivatives("the gradient of " + gradient.call.kernel->title(),
                      gradient.derivatives());
}

/// A primal or tangent launch as an entry of the recording.
static void runRecorded(const BoundLaunch &launch, TapeImpl &tape) {
  auto entry = std::make_unique<LaunchEntry>(launch, tape);
  LaunchEntry &launched = *entry;
  recordEntry(tape, std::move(entry), [&] { launched.run(); });
}

static BoundLaunch launchByHand(const Call &call, Chain chain) {
  compiler::Derivation derivation = derivationByHand(call, chain);
  BoundLaunch launch(call, chain, codeFor(call, derivation));
  launch.fromMemory = derivation.fromMemory;
  return launch;
}

static void runByHand(const BoundLaunch &launch) {
  launch.tellCustomLaunches();
  VersionArrays versions;
  if (launch.isGradient())
    versions = requireReplayable(launch);
  if (Capture *capture = Capture::current())
    return capture->append(launch);
  if (launch.isGradient()) {
    launch.run(versions);
    return recordGradient(launch);
  }
  if (std::shared_ptr<TapeImpl> tape = recordingTape())
    runRecorded(launch, *tape);
  else
    launch.run();
  rememberLaunch(launch);
}

void detail::launch(const Call &call, Chain chain) {
  noteStrangersOf(call);
  runByHand(launchByHand(call, chain));
}

//===-- From the initial state --------------------------------------------===//

namespace {
/// Copies of what a launch is going to write; puts them back, and takes the
/// writes out of the version counters, when it ends.
class WrittenArrays {
public:
  explicit WrittenArrays(const AccessSet &accesses) {
    for (const ArrayUse &use : accesses.all())
      if (use.written)
        keep(*use.array);
  }
  ~WrittenArrays() {
    for (Kept &kept : arrays) {
      // A copy between two buffers of one device that exist cannot fail.
      (void)kept.array.device->copy(kept.array.buffer, kept.copy->buffer);
      kept.array.version.store(kept.version);
      kept.array.noteChange();
    }
  }
  WrittenArrays(const WrittenArrays &) = delete;
  WrittenArrays &operator=(const WrittenArrays &) = delete;

private:
  struct Kept {
    ArrayStorage &array;
    std::shared_ptr<ArrayStorage> copy;
    uint64_t version;
  };

  void keep(ArrayStorage &array) {
    auto copy = checked(runtime::makeArray(array.device, array.dtype,
                                           array.extents, false, false));
    checked(array.device->copy(copy->buffer, array.buffer));
    arrays.push_back({array, copy, array.version.load()});
  }

  std::vector<Kept> arrays;
};
} // namespace

static void prepareFromStart(const Call &call) {
  noteStrangersOf(call);
  if (Capture::current())
    requireNoCapture("take the gradient of " + call.kernel->title() +
                     " from the initial state, which copies arrays");
}

static BoundLaunch gradientFromStart(const Call &call, Chain chain) {
  return BoundLaunch(call, chain, codeFor(call, derivationOf(call, chain)));
}

static BoundLaunch recordingFor(const BoundLaunch &gradient) {
  const Call &call = gradient.call;
  compiler::Derivation derivation = derivationOf(call, gradient.chain);
  derivation.mode = compiler::Mode::Recording;
  return BoundLaunch(call, {Mode::Recording}, codeFor(call, derivation));
}

static void runFromStart(const BoundLaunch &gradient,
                         const BoundLaunch &recording) {
  using Part = AccessSet::Part;
  const Call &call = gradient.call;
  recording.requireApart();
  recording.tellCustomLaunches(Part::Reads);
  gradient.tellCustomLaunches(Part::Writes);
  recording.tellWatchers(Part::Reads);
  WrittenArrays written(recording);
  VersionArrays versions(call, gradient.code,
                         std::make_shared<runtime::CopyMemory>(call.device));
  recording.execute(versions);
  gradient.run(versions);
  recordGradient(gradient);
}

void detail::launchFromInitialState(const Call &call, Chain chain) {
  prepareFromStart(call);
  BoundLaunch gradient = gradientFromStart(call, chain);
  runFromStart(gradient, recordingFor(gradient));
}

//===-- Again and again ---------------------------------------------------===//

static std::unique_ptr<BoundLaunch> kept(BoundLaunch launch) {
  launch.keep();
  return std::make_unique<BoundLaunch>(std::move(launch));
}

void KeptLaunches::launch(Chain chain) {
  if (Capture::current()) // whose code is another one
    return detail::launch(call, chain);
  noteStrangersOf(call);
  auto found = std::ranges::find(byHand, chain, &Kept::chain);
  if (found == byHand.end())
    found = byHand.insert(found, {chain, kept(launchByHand(call, chain)), {}});
  runByHand(*found->launch);
}

/// Where a tape grows, other code may run in the place of this.
bool KeptLaunches::gradientNeeds(size_t argument) const {
  auto isGradient = [](const Kept &one) { return one.launch->isGradient(); };
  auto found = std::ranges::find_if(byHand, isGradient);
  if (found == byHand.end())
    return true;
  const runtime::KernelCode &code = found->launch->code;
  return code.accesses[argument].needed || found->launch->mayLackTapes() ||
         code.device;
}

void KeptLaunches::forgetMemory() {
  for (std::vector<Kept> *all : {&byHand, &fromStart})
    for (Kept &one : *all) {
      one.launch->forgetMemory();
      if (one.recording)
        one.recording->forgetMemory();
    }
}

void KeptLaunches::launchFromInitialState(Chain chain) {
  prepareFromStart(call);
  auto found = std::ranges::find(fromStart, chain, &Kept::chain);
  if (found == fromStart.end()) {
    auto gradient = kept(gradientFromStart(call, chain));
    auto recording = kept(recordingFor(*gradient));
    found = fromStart.insert(
        found, {chain, std::move(gradient), std::move(recording)});
  }
  runFromStart(*found->launch, *found->recording);
}
