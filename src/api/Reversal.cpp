#include "api/Reversal.h"

#include "api/Checked.h"
#include "api/LaunchEntry.h"
#include "api/Recording.h"
#include "api/Replay.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;
using runtime::VersionLog;
using Loss = VersionLog::Loss;

/// Entries that are fetched early.
static constexpr size_t distance = 4;

/// Gradients of up to this size are copied if memory is not short.
static constexpr size_t snapshotLimit = 1u << 20;

Reversal::Reversal(std::shared_ptr<TapeImpl> impl)
    : tape(std::move(impl)), entries(tape->entries) {
  requireIdle(*tape, "`backward`");
  for (const TapeImpl::Use &use : tape->uses)
    if (use.wanted)
      noteStrangers(*use.array);
  if (!tape->checkpoints)
    tape->log.beginUse(/*observed=*/tape->isForeign);
  tape->isReversing = true;
}

Reversal::~Reversal() {
  tape->log.restore();
  tape->log.endUse();
  tape->isReversing = false;
}

void detail::requireIdle(const TapeImpl &tape, const std::string &what) {
  if (tape.isRecording)
    raise(ErrorCode::BadArgument,
          what +
              " of a `Tape` that is still recording; end the recording first, "
              "by leaving the block of the object that `record` returned");
  if (tape.isReversing)
    raise(ErrorCode::BadArgument,
          what +
              " of a `Tape` inside of its own `backward`; use another `Tape`");
}

void Reversal::collectAdjoints() {
  for (const TapeImpl::Use &use : tape->uses)
    if (use.array->grad && isAdjoint.insert(use.array->grad.get()).second)
      adjoints.push_back(use.array->grad);
}

/// A write between two entries that is not among them would have to clear the
/// adjoint of what it overwrites.
void Reversal::checkContinuity(size_t index) {
  TapeEntry &entry = *entries[index];
  for (size_t i = 0; i < entry.arguments.size(); ++i) {
    TapeArgument &argument = entry.arguments[i];
    if (!argument.array)
      continue;
    TapeArgument *&last = lastUse[argument.array.get()];
    if (argument.array->grad && last && last->after != argument.before)
      raise(ErrorCode::CannotReplay,
            entry.argumentText(i) + " of " + tape->entryText(index) +
                " was written outside of the recording since the entry that "
                "used it last; record that write too, or call `backward` and "
                "`clear` before it");
    last = &argument;
  }
}

void Reversal::checkCarriers(size_t index) {
  const TapeEntry &entry = *entries[index];
  for (size_t i = 0; i < entry.arguments.size(); ++i) {
    const TapeArgument &argument = entry.arguments[i];
    const ArrayStorage *array = argument.array.get();
    if (!array || !isFloat(array->dtype) || array->grad)
      continue;
    if (argument.replaced)
      carriers.erase(array);
    if (entry.writesActive(i))
      carriers.emplace(array, index);
    auto carrier = carriers.find(array);
    if (carrier != carriers.end() && argument.read)
      raise(ErrorCode::MissingGradient,
            entry.argumentText(i) + " of " + tape->entryText(index) +
                " has no gradient, but holds values of " +
                tape->entryText(carrier->second) +
                " that depend on arrays with one; " +
                (entries[carrier->second]->derivatives.empty()
                     ? "make it with device.array<T>(..., grad)"
                     : "if it is a gradient or a tangent, launch this kernel "
                       "outside of the recording: second derivatives are not "
                       "supported yet"));
  }
  for (const std::shared_ptr<ArrayStorage> &array : entry.derivatives)
    carriers.emplace(array.get(), index);
}

static std::string lossText(const TapeImpl &tape,
                            const VersionLog::Copy &copy) {
  if (copy.loss == Loss::Unseen)
    return "has been overwritten by " + tape.writerText(copy) +
           ", when it was too late to keep a copy; copy the array into one of "
           "its own memory before that (`clone()` in PyTorch), or in C++ say "
           "so with written_outside (and adopt it as `announced`) where others "
           "write it";
  return "has been overwritten by " + tape.writerText(copy) +
         (copy.loss == Loss::Memory
              ? ", when there was no memory to keep a copy"
              : ", and the recording may not keep a copy of it "
                "(TapeOptions::snapshot,"
                " never_copy)") +
         "; let it keep one, give the array a time index, or write to another "
         "array";
}

/// What an entry looks at must be in memory or in a copy.
void Reversal::checkWants(size_t index) const {
  for (const Want &want : entries[index]->wants) {
    if (want.optional)
      continue;
    const ArrayStorage &array = *entries[index]->arguments[want.argument].array;
    std::string why;
    if (isAdjoint.contains(&array))
      why = "is itself a gradient that `backward` changes; copy it first";
    else if (auto *loss = tape->log.loss(array, want.elements, want.time))
      why = lossText(*tape, *loss);
    else
      continue;
    raise(ErrorCode::CannotReplay,
          "the gradient of " + tape->entryText(index) + " needs " +
              entries[index]->argumentText(want.argument) + ", which " + why);
  }
}

/// A pass over many entries would wait for memory. Past the last one nothing
/// happens.
static void fetchAhead(const std::vector<std::unique_ptr<TapeEntry>> &entries,
                       size_t index) {
  if (index >= entries.size())
    return;
  constexpr size_t line = 64, lines = sizeof(LaunchEntry) / line;
  auto *start = reinterpret_cast<const char *>(entries[index].get());
  for (size_t k = 0; k < lines; ++k)
    __builtin_prefetch(start + k * line);
}

void Reversal::prepare() {
  collectAdjoints();
  for (size_t i = 0; i < entries.size(); ++i) {
    fetchAhead(entries, i + distance);
    entries[i]->requireGradient();
    checkContinuity(i);
    checkCarriers(i);
    checkWants(i);
  }
}

void Reversal::requireWritten(const ArrayStorage &loss) const {
  if (tape->computes(loss))
    return;
  raise(ErrorCode::BadArgument,
        entries.empty()
            ? "`backward` of a `Tape` that has recorded nothing; launch "
              "kernels while the object that `record` returns is alive"
            : "nothing in the recording writes the array given to `backward` "
              "in a "
              "launch, so all gradients would be 0; record the launch that "
              "computes it");
}

/// Clears gradients of arrays that the recording writes, and of others.
void Reversal::clear(bool written, bool others) {
  for (const TapeImpl::Use &use : tape->uses)
    if (use.array->grad && (use.written ? written : others))
      fillGradient(*use.array->grad, 0);
}

void Reversal::runEntries(const AnyArray *loss,
                          const BackwardOptions &options) {
  clear(loss && options.clear_written, options.clear_inputs);
  if (loss)
    fillGradient(*loss->storage()->grad, 1);
  const Reversing with{tape->log, scratch, lastUse, lastWrites};
  if (tape->checkpoints)
    return Replay(*tape, with, [this](size_t index) { checkWants(index); })
        .run(options.progress);
  for (size_t i = entries.size(); i-- > 0;) {
    fetchAhead(entries, i - distance); // wraps at the begin
    entries[i]->reverse(with);
    if (options.progress)
      options.progress(entries.size() - i, entries.size());
  }
}

static size_t
totalBytes(const std::vector<std::shared_ptr<ArrayStorage>> &arrays) {
  size_t bytes = 0;
  for (const std::shared_ptr<ArrayStorage> &array : arrays)
    bytes += array->buffer.bytes;
  return bytes;
}

/// Copies the gradients if that is asked for, or costs little.
bool Reversal::copyGradients(VersionLog &before, bool asked) const {
  size_t bytes = totalBytes(adjoints);
  for (const std::shared_ptr<ArrayStorage> &adjoint : adjoints) {
    runtime::Device &device = *adjoint->device;
    size_t used = device.memory().current, limit = device.info().memoryLimit;
    bool isShort = tape->checkpoints && tape->checkpoints->hasBudget();
    bool cheap =
        !isShort && bytes <= snapshotLimit && bytes <= (limit - used) / 4;
    if (!asked && !cheap)
      return false;
    Box all = Box::whole(adjoint->extents);
    before.want(adjoint, all);
    Result<bool> copied = before.beforeWrite({*adjoint, all, reverserText});
    if (!copied && asked)
      raise(copied.error());
    if (!copied)
      return false;
  }
  return true;
}

void Reversal::run(const AnyArray *loss, const BackwardOptions &options) {
  if (loss)
    requireWritten(*loss->storage());
  prepare();
  VersionLog before(VersionLog::Purpose::Undo);
  bool copied = copyGradients(before, options.all_or_nothing);
  if (!copied)
    before.clear();
  try {
    runEntries(loss, options);
  } catch (const Error &error) {
    before.rollBack();
    if (copied)
      throw;
    raise(error.code(),
          std::string(error.what()) +
              "; `backward` has not come to its end, so the gradients of this "
              "recording are not usable; clear them, or ask for "
              "BackwardOptions::all_or_nothing");
  } catch (...) {
    before.rollBack();
    throw;
  }
}
