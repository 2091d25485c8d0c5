#include "api/Recording.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;

RecordingState::RecordingState(const std::shared_ptr<TapeImpl> &tape)
    : tape(tape) {}

void RecordingState::end() {
  hasEnded = true;
  if (std::shared_ptr<TapeImpl> recorded = tape.lock()) {
    recorded->log.endRecording();
    recorded->isRecording = false;
  }
}

/// Forgets a recording that has ended, perhaps on another thread, or whose Tape
/// is gone.
static std::shared_ptr<RecordingState> &current() {
  std::shared_ptr<RecordingState> &recording = thisThread().recording;
  if (recording && (recording->hasEnded || recording->tape.expired()))
    recording.reset();
  return recording;
}

std::shared_ptr<TapeImpl> detail::recordingTape() {
  const std::shared_ptr<RecordingState> &state = current();
  return state ? state->tape.lock() : nullptr;
}

void detail::startRecording(const std::shared_ptr<RecordingState> &state) {
  requireNoCapture("record a `Tape`");
  const std::shared_ptr<TapeImpl> held = state->tape.lock();
  TapeImpl &tape = *held;
  if (current())
    raise(ErrorCode::BadArgument,
          "this thread is recording already; end that recording first");
  if (tape.isReversing)
    raise(ErrorCode::BadArgument, "`record` of a `Tape` inside of its own "
                                  "`backward`; use another `Tape`");
  if (tape.isRecording.exchange(true))
    raise(ErrorCode::BadArgument,
          "this `Tape` is recording already, on another thread or outside of a "
          "custom launch; end that recording first, or use another `Tape`");
  tape.log.beginEntry(std::this_thread::get_id(), tape.entries.size());
  thisThread().recording = state;
}

void detail::recordEntry(TapeImpl &tape, std::unique_ptr<TapeEntry> entry,
                         const std::function<void()> &body) {
  if (tape.checkpoints)
    return tape.checkpoints->record(tape, std::move(entry), body);
  entry->begin(&tape.log);
  try {
    body();
  } catch (...) {
    entry->abandon(tape.log);
    throw;
  }
  entry->end(&tape.log);
  for (const TapeArgument &argument : entry->arguments)
    if (argument.array)
      keepFromStrangers(*argument.array);
  tape.append(std::move(entry));
}

void detail::recordHostWrite(const std::shared_ptr<ArrayStorage> &array,
                             const runtime::Box &elements, Loc loc,
                             std::span<const std::byte> values,
                             const std::function<void()> &body) {
  std::shared_ptr<TapeImpl> tape = recordingTape();
  if (!tape)
    return body();
  auto entry = std::make_unique<HostWriteEntry>(array, elements, loc);
  if (tape->checkpoints && tape->checkpoints->beginsWith(*entry))
    entry->beFirst();
  else if (tape->checkpoints)
    entry->keep(values);
  recordEntry(*tape, std::move(entry), body);
}

void detail::recordDerivatives(
    const std::string &title,
    std::vector<std::shared_ptr<ArrayStorage>> arrays) {
  std::shared_ptr<TapeImpl> tape = recordingTape();
  if (!tape)
    return;
  auto entry = std::make_unique<DerivativeEntry>(title);
  entry->derivatives = std::move(arrays);
  recordEntry(*tape, std::move(entry), [] {});
}

RecordingPause::RecordingPause() : paused(std::move(current())) {
  thisThread().recording.reset();
}
RecordingPause::~RecordingPause() {
  thisThread().recording = std::move(paused);
}
