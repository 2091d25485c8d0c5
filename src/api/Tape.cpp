#include "costate/tape.h"

#include "api/Checked.h"
#include "api/WriteIndex.h"

#include <map>
#include <set>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::Access;
using runtime::ArrayStorage;

static thread_local TapeImpl *recordingTape = nullptr;

void detail::recordLaunch(const std::shared_ptr<KernelImpl> &kernel,
                          const Call &call, const runtime::KernelCode &code) {
  if (!recordingTape)
    return;
  TapeEntry entry{kernel, call, code.accesses, {}};
  for (const BoundArgument &argument : call.arguments)
    entry.versions.push_back(argument.array ? argument.array->version.load()
                                            : 0);
  recordingTape->entries.push_back(std::move(entry));
}

void detail::recordDerivatives(
    const std::shared_ptr<KernelImpl> &kernel, Mode mode,
    std::vector<std::shared_ptr<ArrayStorage>> arrays) {
  if (!recordingTape)
    return;
  std::vector<TapeEntry> &entries = recordingTape->entries;
  if (mode == Mode::Gradient)
    entries.push_back({kernel, {}, {}, {}});
  entries.back().derivatives = std::move(arrays);
}

bool detail::isRecording() { return recordingTape; }

void detail::recordHostWrite(const std::shared_ptr<ArrayStorage> &array) {
  if (!recordingTape)
    return;
  TapeEntry entry;
  entry.call.arguments.push_back({array});
  entry.accesses.emplace_back().written = true;
  entry.versions.push_back(array->version.load());
  recordingTape->entries.push_back(std::move(entry));
}

RecordingPause::RecordingPause() : paused(recordingTape) {
  recordingTape = nullptr;
}
RecordingPause::~RecordingPause() { recordingTape = paused; }

Tape::Tape() : impl(std::make_shared<TapeImpl>()) {}
void Tape::clear() { impl->entries.clear(); }
size_t Tape::size() const { return impl->entries.size(); }
Tape::Recording Tape::record() { return Recording(impl); }

Tape::Recording::Recording(std::shared_ptr<TapeImpl> tape)
    : tape(std::move(tape)) {
  if (recordingTape)
    raise(ErrorCode::BadArgument,
          "this thread is recording already; end that recording first");
  recordingTape = this->tape.get();
}

Tape::Recording::Recording(Recording &&other) noexcept = default;

Tape::Recording::~Recording() {
  if (tape)
    recordingTape = nullptr;
}

namespace {
/// One pass backwards over a recording. Everything that can be checked is
/// checked before the first gradient changes.
class Reversal {
public:
  explicit Reversal(std::vector<TapeEntry> &entries)
      : entries(entries), writes(entries) {}
  void prepare();
  void requireWritten(const ArrayStorage &loss) const;
  void seed(ArrayStorage &loss);
  void run();

private:
  std::string entryText(size_t index) const;
  void compile(size_t index);
  void checkContinuity(size_t index);
  void checkCarriers(size_t index);
  void checkReplay(size_t index);
  void checkNeeded(size_t index, size_t argument);

  std::vector<TapeEntry> &entries;
  WriteIndex writes;
  std::vector<Compiled *> gradients; ///< by entry; null: nothing to reverse
  std::set<const ArrayStorage *> adjoints;
  std::map<const ArrayStorage *, uint64_t> versions; ///< after the last entry
  /// Arrays without gradient that hold differentiable values, by the entry
  /// that wrote them.
  std::map<const ArrayStorage *, size_t> carriers;
};
} // namespace

std::string Reversal::entryText(size_t index) const {
  std::string place =
      " (entry " + std::to_string(index + 1) + " of the recording)";
  return entries[index].kernel ? entries[index].kernel->title() + place
                               : "a write by the host" + place;
}

void Reversal::compile(size_t index) {
  TapeEntry &entry = entries[index];
  std::vector<bool> active = activeArguments(Mode::Gradient, entry.call);
  bool any = false;
  for (size_t i = 0; i < active.size(); ++i) {
    any |= active[i];
    if (active[i])
      adjoints.insert(entry.call.arguments[i].array->grad.get());
  }
  gradients.push_back(entry.kernel && any
                          ? &entry.kernel->compiled(Mode::Gradient, active)
                          : nullptr);
  if (gradients[index])
    checkOverlaps(*entry.kernel, entry.call, *gradients[index]->code);
}

/// A write between two entries that is not among them would have to clear the
/// adjoint of what it overwrites.
void Reversal::checkContinuity(size_t index) {
  const TapeEntry &entry = entries[index];
  for (size_t i = 0; i < entry.call.arguments.size(); ++i) {
    const ArrayStorage *array = entry.call.arguments[i].array.get();
    if (!array || !array->grad)
      continue;
    uint64_t before = entry.versions[i] - (entry.accesses[i].written ? 1 : 0);
    auto [known, isNew] = versions.try_emplace(array, before);
    if (known->second != before)
      raise(ErrorCode::CannotReplay,
            "argument " + std::to_string(i + 1) + " of " + entryText(index) +
                " was written outside of the recording since the entry that "
                "used it last; record that write too, or call `backward` and "
                "`clear` before it");
    known->second = entry.versions[i];
  }
}

void Reversal::checkCarriers(size_t index) {
  const TapeEntry &entry = entries[index];
  for (size_t i = 0; i < entry.call.arguments.size(); ++i) {
    const ArrayStorage *array = entry.call.arguments[i].array.get();
    if (!array || !isFloat(array->dtype) || array->grad)
      continue;
    if (!entry.kernel) {
      carriers.erase(array);
      continue;
    }
    if (gradients[index] && gradients[index]->code->accesses[i].activeWrite)
      carriers.emplace(array, index);
    auto carrier = carriers.find(array);
    if (carrier != carriers.end() && entry.accesses[i].read)
      raise(ErrorCode::MissingGradient,
            "argument " + std::to_string(i + 1) + " of " + entryText(index) +
                " has no gradient, but holds values of " +
                entryText(carrier->second) +
                " that depend on arrays with one; " +
                (entries[carrier->second].derivatives.empty()
                     ? "make it with device.array<T>(..., grad)"
                     : "if it is a gradient or a tangent, launch this kernel "
                       "outside of the recording: second derivatives are not "
                       "supported yet"));
  }
  for (const std::shared_ptr<ArrayStorage> &array : entry.derivatives)
    carriers.emplace(array.get(), index);
}

/// An array may have been written since only by entries of the recording, and
/// only where the gradient does not need it.
void Reversal::checkNeeded(size_t index, size_t argument) {
  const TapeEntry &entry = entries[index];
  const ArrayStorage &array = *entry.call.arguments[argument].array;
  const Access &access = gradients[index]->code->accesses[argument];
  auto refuse = [&](const std::string &why) {
    raise(ErrorCode::CannotReplay,
          "the gradient of " + entryText(index) + " needs argument " +
              std::to_string(argument + 1) + ", which " + why);
  };
  Elements needed = resolve(access.neededSection, *entry.kernel, entry.call);
  if (std::optional<size_t> later = writes.firstAfter(index, array, needed))
    refuse("has been overwritten by " + entryText(*later) +
           "; give the array a time index, or write to another array");
  if (array.version !=
      entry.versions[argument] + writes.countAfter(index, array))
    refuse("has been written outside of the recording since; call `backward` "
           "before that, or write to another array");
  if (adjoints.count(&array))
    refuse("is itself a gradient that `backward` changes; copy it first");
}

void Reversal::checkReplay(size_t index) {
  if (!gradients[index])
    return;
  for (size_t i = 0; i < entries[index].call.arguments.size(); ++i)
    if (entries[index].call.arguments[i].array &&
        gradients[index]->code->accesses[i].needed)
      checkNeeded(index, i);
}

void Reversal::prepare() {
  for (size_t i = 0; i < entries.size(); ++i)
    compile(i);
  for (size_t i = 0; i < entries.size(); ++i) {
    checkContinuity(i);
    checkCarriers(i);
    checkReplay(i);
  }
}

static void fillStorage(ArrayStorage &array, double value) {
  float narrow = static_cast<float>(value);
  const void *pattern = array.dtype == DType::F32
                            ? static_cast<const void *>(&narrow)
                            : static_cast<const void *>(&value);
  array.version.fetch_add(1);
  checked(array.device->fill(array.buffer, pattern, sizeOf(array.dtype)));
}

void Reversal::requireWritten(const ArrayStorage &loss) const {
  for (const TapeEntry &entry : entries)
    for (size_t i = 0; i < entry.call.arguments.size(); ++i)
      if (entry.call.arguments[i].array.get() == &loss &&
          (!entry.kernel || entry.accesses[i].written))
        return;
  raise(ErrorCode::BadArgument,
        entries.empty()
            ? "`backward` of a tape on which nothing is recorded; launch "
              "kernels while the object that `record` returns is alive"
            : "nothing on the tape writes the array given to `backward`, so "
              "all gradients would be 0; record the launch that computes it");
}

void Reversal::seed(ArrayStorage &loss) {
  std::set<ArrayStorage *> cleared;
  for (const TapeEntry &entry : entries)
    for (size_t i = 0; i < entry.call.arguments.size(); ++i) {
      ArrayStorage *array = entry.call.arguments[i].array.get();
      if (array && array->grad && entry.accesses[i].written &&
          cleared.insert(array).second)
        fillStorage(*array->grad, 0);
    }
  fillStorage(*loss.grad, 1);
}

void Reversal::run() {
  for (size_t i = entries.size(); i-- > 0;) {
    TapeEntry &entry = entries[i];
    if (gradients[i]) {
      detail::run(*entry.kernel, Mode::Gradient, entry.call, *gradients[i]);
      continue;
    }
    ArrayStorage *written =
        entry.kernel ? nullptr : entry.call.arguments[0].array.get();
    if (written && written->grad)
      fillStorage(*written->grad, 0);
  }
}

void Tape::backward(const AnyArray &loss) {
  if (!loss || !loss.has_grad())
    raise(ErrorCode::MissingGradient,
          "the array given to `backward` has no gradient; make it with "
          "device.array<T>({}, grad)");
  RecordingPause pause;
  Reversal reversal(impl->entries);
  reversal.requireWritten(*loss.storage());
  reversal.prepare();
  reversal.seed(*loss.storage());
  reversal.run();
}

void Tape::backward() {
  RecordingPause pause;
  Reversal reversal(impl->entries);
  reversal.prepare();
  reversal.run();
}
