#include "api/Launch.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"
#include "api/Intact.h"
#include "api/LaunchCode.h"
#include "api/LaunchEntry.h"
#include "api/PastLaunch.h"
#include "api/Recording.h"

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

void detail::launch(const Call &call, Chain chain) {
  noteStrangersOf(call);
  compiler::Derivation derivation = derivationByHand(call, chain);
  BoundLaunch launch(call, chain, codeFor(call, derivation));
  launch.fromMemory = derivation.fromMemory;
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

void detail::launchFromInitialState(const Call &call, Chain chain) {
  using Part = AccessSet::Part;
  noteStrangersOf(call);
  requireNoCapture("take the gradient of " + call.kernel->title() +
                   " from the initial state, which copies arrays");
  compiler::Derivation derivation = derivationOf(call, chain);
  BoundLaunch gradient(call, chain, codeFor(call, derivation));
  derivation.mode = compiler::Mode::Recording;
  BoundLaunch recording(call, {Mode::Recording}, codeFor(call, derivation));
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
