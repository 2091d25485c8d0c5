#include "api/Recording.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;

static thread_local std::shared_ptr<RecordingState> currentRecording;

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
  if (currentRecording &&
      (currentRecording->hasEnded || currentRecording->tape.expired()))
    currentRecording.reset();
  return currentRecording;
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
    raise(ErrorCode::BadArgument,
          "`record` of a tape inside of its own `backward`; use another Tape");
  if (tape.isRecording.exchange(true))
    raise(ErrorCode::BadArgument,
          "this tape is recording already, on another thread or outside of a "
          "custom launch; end that recording first, or use another Tape");
  tape.log.beginEntry(std::this_thread::get_id(), tape.entries.size());
  currentRecording = state;
}

void detail::announceWrite(ArrayStorage &array, const runtime::Box &elements,
                           std::function<std::string()> writer) {
  if (array.isWatched())
    checked(array.announce({array, elements, std::move(writer)}));
}

void detail::announceWrite(ArrayStorage &array,
                           std::function<std::string()> writer) {
  if (array.isWatched())
    announceWrite(array, runtime::Box::whole(array.extents), std::move(writer));
}

void detail::announceRead(ArrayStorage &array,
                          const std::function<std::string()> &reader) {
  if (array.isWatched())
    checked(array.announceRead(reader));
}

void detail::noteUnseenWrite(ArrayStorage &array,
                             std::function<std::string()> writer) {
  array.countWrite();
  runtime::ArrayWrite write{array, runtime::Box::whole(array.extents),
                            std::move(writer)};
  write.past = write.certain = true;
  if (array.isWatched())
    checked(array.announce(write));
}

static std::string strangersText() {
  return "others who share its memory and may have written it";
}

void detail::noteStrangers(ArrayStorage &array) {
  if (array.strangers > 0)
    noteUnseenWrite(array, strangersText);
}

/// What the gradient of an entry needs is copied now: strangers may write at
/// any time, and do not say so.
static void keepFromStrangers(const TapeEntry &entry) {
  for (const TapeArgument &argument : entry.arguments) {
    ArrayStorage *array = argument.array.get();
    if (!array || array->strangers == 0 || !array->isWatched())
      continue;
    runtime::ArrayWrite write{*array, runtime::Box::whole(array->extents),
                              strangersText};
    write.certain = true;
    checked(array->announce(write));
  }
}

void detail::recordEntry(TapeImpl &tape, std::unique_ptr<TapeEntry> entry,
                         const std::function<void()> &body) {
  entry->begin(tape.log);
  try {
    body();
  } catch (...) {
    entry->abandon(tape.log);
    throw;
  }
  entry->end(tape.log);
  keepFromStrangers(*entry);
  tape.append(std::move(entry));
}

void detail::recordHostWrite(const std::shared_ptr<ArrayStorage> &array,
                             const runtime::Box &elements, Loc loc) {
  std::shared_ptr<TapeImpl> tape = recordingTape();
  if (!tape)
    return;
  auto entry = std::make_unique<HostWriteEntry>(array, elements, loc);
  entry->end(tape->log);
  tape->append(std::move(entry));
}

void detail::recordDerivatives(
    const std::string &title,
    std::vector<std::shared_ptr<ArrayStorage>> arrays) {
  std::shared_ptr<TapeImpl> tape = recordingTape();
  if (!tape)
    return;
  auto entry = std::make_unique<DerivativeEntry>(title);
  entry->derivatives = std::move(arrays);
  tape->append(std::move(entry));
}

RecordingPause::RecordingPause() : paused(std::move(current())) {
  currentRecording.reset();
}
RecordingPause::~RecordingPause() { currentRecording = std::move(paused); }
