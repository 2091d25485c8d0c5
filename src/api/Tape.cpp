#include "costate/tape.h"

#include "api/Checked.h"
#include "api/Recording.h"
#include "api/Reversal.h"
#include "runtime/Text.h"

#include <ostream>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::VersionLog;

void TapeImpl::append(std::unique_ptr<TapeEntry> entry) {
  log.countBytes(entry->overwritten().bytes());
  entries.push_back(std::move(entry));
  if (isRecording)
    log.beginEntry(std::this_thread::get_id(), entries.size());
}

std::string TapeImpl::entryText(size_t index) const {
  return entries[index]->title() + " (entry " + std::to_string(index + 1) +
         " of the recording)";
}

std::string TapeImpl::writerText(const VersionLog::Copy &copy) const {
  return copy.entry ? copy.writer + " (entry " +
                          std::to_string(*copy.entry + 1) + " of the recording)"
                    : copy.writer + " outside of the recording";
}

Tape::Tape(TapeOptions options) : impl(std::make_shared<TapeImpl>()) {
  if (!options.snapshot)
    impl->log.forbidCopies();
}

size_t Tape::size() const { return impl->entries.size(); }
Tape::Recording Tape::record() { return Recording(impl); }

void Tape::clear() {
  requireIdle(*impl, "`clear`");
  impl->entries.clear();
  impl->log.clear();
}

static const ArrayStorage &storageOf(const AnyArray &array, const char *what) {
  if (!array)
    raise(ErrorCode::BadArgument,
          std::string("the array given to `") + what +
              "` has no storage; make one with device.array<T>(...)");
  return *array.storage();
}

void Tape::never_copy(const AnyArray &array) {
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
  Protected changed;
  {
    RecordingPause pause;
    Reversal reversal(tape);
    reversal.run(loss, options);
    changed = reversal.changed();
  }
  recordDerivatives("`backward` of another tape", std::move(changed));
}

void Tape::backward(const AnyArray &loss, BackwardOptions options) {
  if (!loss || !loss.has_grad())
    raise(ErrorCode::MissingGradient,
          "the array given to `backward` has no gradient; make it with "
          "device.array<T>({}, grad)");
  reverse(impl, &loss, options);
}

void Tape::backward(BackwardOptions options) {
  reverse(impl, nullptr, options);
}

static std::string arrayText(const ArrayStorage &array) {
  return std::string(nameOf(array.dtype)) + " array of shape " +
         runtime::shapeText(array.extents);
}

static std::string elementsText(const VersionLog::Copy &copy) {
  const ArrayStorage &array = *copy.array;
  std::string text = arrayText(array);
  if (copy.elements.size() == array.size)
    return text;
  std::string parts;
  for (const runtime::Box &box : copy.elements.boxes())
    parts += (parts.empty() ? "" : " and ") + runtime::boxText(box);
  return "elements " + parts + " of an " + text;
}

/// The last entry that needs `copy`: its gradient is the first to look at it.
static std::string neededBy(const TapeImpl &tape,
                            const VersionLog::Copy &copy) {
  for (size_t e = tape.entries.size(); e-- > 0;) {
    const TapeEntry &entry = *tape.entries[e];
    for (const Want &want : entry.wants)
      if (want.time <= copy.time &&
          entry.arguments[want.argument].array == copy.array &&
          copy.elements.meets(want.elements))
        return entry.argumentText(want.argument) + " of " + tape.entryText(e);
  }
  return "nothing any more";
}

/// What the entries themselves have overwritten.
static void addVersions(const TapeImpl &tape, TapeReport &report) {
  for (size_t e = 0; e < tape.entries.size(); ++e)
    for (const auto &[parameter, array] : tape.entries[e]->overwritten().all())
      report.copies.push_back(
          {arrayText(*array),
           tape.entries[e]->argumentText(parameter.argument) + " of " +
               tape.entryText(e),
           tape.entryText(e), array->buffer.bytes});
}

TapeReport Tape::report() const {
  TapeReport report;
  report.entries = impl->entries.size();
  for (const VersionLog::Copy *copy : impl->log.copies())
    if (copy->values)
      report.copies.push_back({elementsText(*copy), neededBy(*impl, *copy),
                               impl->writerText(*copy), copy->bytes()});
  addVersions(*impl, report);
  report.bytes = impl->log.bytes();
  report.peak_bytes = impl->log.peakBytes();
  return report;
}

std::ostream &costate::operator<<(std::ostream &out, const TapeReport &report) {
  out << "tape: " << report.entries << " entries, " << report.copies.size()
      << " copies, " << runtime::bytesText(report.bytes) << " (at most "
      << runtime::bytesText(report.peak_bytes) << ")\n";
  for (const TapeReport::Copy &copy : report.copies)
    out << "  " << runtime::bytesText(copy.bytes) << ": " << copy.array
        << "\n    needed by " << copy.needed_by << "\n    overwritten by "
        << copy.overwritten_by << "\n";
  return out;
}
