#include "costate/tape.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"
#include "api/Recording.h"
#include "api/Reversal.h"

#include <filesystem>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::VersionLog;

void TapeImpl::append(std::unique_ptr<TapeEntry> entry) {
  log.countBytes(entry->overwritten().bytes());
  for (const TapeArgument &argument : entry->arguments)
    if (argument.array)
      useOf(argument.array).count(argument.written, !entry->isConstant());
  for (const Want &want : entry->wants)
    useOf(entry->arguments[want.argument].array).wanted = true;
  isForeign |= entry->isForeign();
  entries.push_back(std::move(entry));
  if (isRecording)
    log.beginEntry(std::this_thread::get_id(), entries.size());
}

TapeImpl::Use &TapeImpl::useOf(const std::shared_ptr<ArrayStorage> &array) {
  auto [known, isNew] = positions.try_emplace(array.get(), uses.size());
  if (isNew)
    uses.push_back({array});
  return uses[known->second];
}

void TapeImpl::clear() {
  entries.clear();
  uses.clear();
  positions.clear();
  isForeign = false;
  log.clear();
  if (checkpoints)
    checkpoints->clear();
}

std::string TapeImpl::entryText(size_t index) const {
  return entries[index]->title() + " (entry " + std::to_string(index + 1) +
         " of the recording)";
}

std::string TapeImpl::writerText(const VersionLog::Copy &copy) const {
  return copy.entry ? *copy.writer + " (entry " +
                          std::to_string(*copy.entry + 1) + " of the recording)"
                    : *copy.writer + " outside of the recording";
}

Tape::Tape(TapeOptions options) : impl(std::make_shared<TapeImpl>()) {
  const bool runsAgain = options.snapshots || options.budget;
  if (!options.snapshot && runsAgain)
    raise(ErrorCode::BadArgument,
          "a `Tape` that may not copy (`snapshot = false`) cannot take "
          "snapshots; leave out one of the options");
  if (!runsAgain && (options.on_host || !options.folder.empty()))
    raise(ErrorCode::BadArgument,
          "`on_host` and `folder` say where the snapshots of a `Tape` go, and "
          "it takes none; give `snapshots` or `budget` too");
  if (std::error_code none;
      !options.folder.empty() &&
      !std::filesystem::is_directory(options.folder, none))
    raise(ErrorCode::BadArgument,
          "the `folder` of a `Tape` is " + options.folder +
              ", which is no folder; make it, or name another one");
  if (!options.snapshot)
    impl->log.forbidCopies();
  if (runsAgain)
    impl->checkpoints = std::make_unique<Checkpoints>(options);
}

void Tape::step() {
  if (Checkpoints *checkpoints = impl->checkpoints.get())
    checkpoints->mark();
}

Tape::Steps Tape::steps(int64_t count) {
  if (count < 0)
    raise(ErrorCode::BadArgument, "a `Tape` cannot be told of " +
                                      std::to_string(count) +
                                      " steps; give how many follow");
  if (Checkpoints *checkpoints = impl->checkpoints.get())
    checkpoints->expect(static_cast<size_t>(count));
  return {impl.get(), count};
}

void Tape::Steps::mark(int64_t step) const {
  std::shared_ptr<TapeImpl> marked = tape.lock();
  if (!marked || !marked->checkpoints)
    return;
  step < count ? marked->checkpoints->mark() : marked->checkpoints->endMarks();
}

Tape::Steps::Iterator Tape::Steps::begin() const {
  mark(0);
  return {this, 0};
}

Tape::Steps::Iterator &Tape::Steps::Iterator::operator++() {
  steps->mark(++step);
  return *this;
}

size_t Tape::size() const { return impl->entries.size(); }
bool Tape::computes(const AnyArray &array) const {
  return array && impl->computes(*array.storage());
}
Tape::Recording Tape::record() { return Recording(impl.get()); }

void Tape::clear() {
  requireIdle(*impl, "`clear`");
  impl->clear();
}

static const ArrayStorage &storageOf(const AnyArray &array, const char *what) {
  if (!array)
    raise(ErrorCode::BadArgument,
          std::string("the array given to `") + what +
              "` has no storage; make one with device.array<T>(...)");
  return *array.storage();
}

void Tape::never_copy(const AnyArray &array) {
  if (impl->checkpoints)
    raise(ErrorCode::BadArgument,
          "`never_copy` of a `Tape` that takes snapshots, which may be needed "
          "to run launches again; leave it out");
  impl->log.forbidCopies(storageOf(array, "never_copy"));
}

Tape::Recording::Recording(const std::shared_ptr<TapeImpl> &tape)
    : state(std::make_shared<RecordingState>(tape)) {
  startRecording(state);
}

Tape::Recording::Recording(Recording &&other) noexcept = default;

Tape::Recording::~Recording() {
  if (state)
    state->end();
}

static void reverse(const std::shared_ptr<TapeImpl> &tape, const AnyArray *loss,
                    BackwardOptions options) {
  requireNoCapture("reverse a `Tape`");
  profile::Timed timed(
      [] { return profile::Span{profile::Kind::Work, "backward"}; });
  std::vector<std::shared_ptr<ArrayStorage>> changed;
  {
    RecordingPause pause;
    Reversal reversal(tape);
    reversal.run(loss, options);
    changed = reversal.changed();
  }
  recordDerivatives("`backward` of another `Tape`", std::move(changed));
}

void Tape::backward(const AnyArray &loss, BackwardOptions options) {
  if (!loss || !loss.has_grad())
    raise(ErrorCode::MissingGradient,
          "the array given to `backward` has no gradient; make it with "
          "device.array<T>({}, grad)");
  reverse(impl.get(), &loss, options);
}

void Tape::backward(BackwardOptions options) {
  reverse(impl.get(), nullptr, options);
}

TapeReport Tape::report() const { return reportOf(*impl); }
