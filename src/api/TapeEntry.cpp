#include "api/TapeEntry.h"

#include "api/Checked.h"
#include "api/CustomScope.h"
#include "api/Recording.h"
#include "api/Sections.h"

#include <algorithm>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;
using runtime::VersionLog;
using Arrays = std::vector<std::shared_ptr<ArrayStorage>>;
using Role = runtime::Parameter::Role;

std::string TapeEntry::argumentText(size_t argument) const {
  return "argument " + std::to_string(argument + 1);
}

void TapeEntry::begin(VersionLog &log) {
  for (TapeArgument &argument : arguments)
    if (argument.array)
      argument.before = argument.array->version.load();
  wantBefore(log);
}

void TapeEntry::end(VersionLog &log) {
  for (TapeArgument &argument : arguments)
    if (argument.array)
      argument.after = argument.array->version.load();
  over = log.tick();
  wantAfter(log);
  added = {};
}

void TapeEntry::abandon(VersionLog &log) const {
  for (size_t i = 0; i < wants.size(); ++i)
    log.drop(*arguments[wants[i].argument].array, added[i]);
}

void TapeEntry::want(VersionLog &log, size_t argument, Box elements,
                     bool inPlace, bool optional) {
  uint64_t time = log.want(arguments[argument].array, elements,
                           &added.emplace_back(), optional);
  wants.push_back({argument, std::move(elements), time, inPlace, optional});
}

const VersionArrays &TapeEntry::overwritten() const {
  static const VersionArrays none;
  return none;
}

LaunchEntry::LaunchEntry(std::shared_ptr<KernelImpl> launched, Chain chain,
                         const Call &call, Compiled &compiled, TapeImpl &tape)
    : kernel(std::move(launched)), chain(chain), call(call),
      compiled(&compiled) {
  for (size_t i = 0; i < call.arguments.size(); ++i)
    arguments.push_back({call.arguments[i].array,
                         compiled.code->accesses[i].read,
                         compiled.code->accesses[i].written});
  std::vector<bool> active = activeArguments(Mode::Gradient, call);
  if (std::find(active.begin(), active.end(), true) == active.end())
    return;
  try {
    gradient = &kernel->compiled(Mode::Gradient, active, *call.device);
  } catch (const Error &error) {
    refusal = Failure{error.code(), error.what()};
    return;
  }
  const std::vector<runtime::Parameter> &parameters =
      gradient->code->parameters;
  if (std::any_of(parameters.begin(), parameters.end(),
                  [](runtime::Parameter parameter) {
                    return parameter.role == Role::Version &&
                           parameter.part > 0;
                  }))
    recordParts(active, tape);
}

/// Small versions share memory with others of the recording.
static std::shared_ptr<runtime::CopyMemory>
memoryFor(const Call &call, const runtime::KernelCode &code, VersionLog &log) {
  constexpr size_t small = 4096;
  return VersionArrays::bytesOf(call, code) <= small
             ? log.memoryOf(call.device)
             : std::make_shared<runtime::CopyMemory>(call.device);
}

/// Makes a recording launch of it, or says why that cannot be.
void LaunchEntry::recordParts(const std::vector<bool> &active, TapeImpl &tape) {
  auto refuse = [&](const std::string &why) {
    refusal = Failure{ErrorCode::CannotReplay,
                      "the gradient of " + title() +
                          " needs values that the launch itself overwrites, " +
                          why + ": " + gradient->code->overwritten};
  };
  if (chain.order)
    return refuse("and a tangent launch keeps no copy of them; record a primal "
                  "launch");
  for (runtime::Parameter parameter : gradient->code->parameters)
    if (parameter.role == Role::Version &&
        !tape.log.mayCopy(*call.arguments[parameter.argument].array))
      return refuse("and the tape may not keep a copy of them "
                    "(TapeOptions::snapshot, never_copy)");
  try {
    versions = VersionArrays(call, *gradient->code,
                             memoryFor(call, *gradient->code, tape.log));
  } catch (const Error &error) {
    raise(error.code(), title() +
                            " overwrites values that its gradient needs, and "
                            "there is no memory to keep them: " +
                            error.what() +
                            "; nothing has been written; call `backward` and "
                            "`clear` before, or give the array a time index");
  }
  chain.mode = Mode::Recording;
  compiled = &kernel->compiled(Mode::Recording, active, *call.device);
}

void LaunchEntry::run() {
  detail::run(*kernel, chain.mode, call, *compiled, versions);
}

void LaunchEntry::wantBefore(VersionLog &log) {
  if (!gradient || chain.mode == Mode::Recording)
    return;
  const runtime::KernelCode &code = *gradient->code;
  for (size_t k = 0; k < code.parameters.size(); ++k) {
    if (code.parameters[k].role != Role::Version)
      continue;
    before.push_back({code.parameters[k], wants.size()});
    size_t argument = code.parameters[k].argument;
    want(log, argument, boxOf(code.sections[k], *kernel, call, argument),
         /*inPlace=*/false);
  }
}

/// The arrays that hold what was there before the launch.
VersionArrays LaunchEntry::versionsBefore(const Reversing &with) const {
  std::shared_ptr<runtime::CopyMemory> &memory =
      with.scratch[call.device.get()];
  if (!memory)
    memory = std::make_shared<runtime::CopyMemory>(call.device);
  memory->reuse();
  VersionArrays arrays(call, *gradient->code, memory);
  for (const Before &one : before) {
    const Want &want = wants[one.want];
    checked(with.log.read(*arguments[want.argument].array, want.elements,
                          want.time, arrays.find(one.parameter)));
  }
  return arrays;
}

void LaunchEntry::wantAfter(VersionLog &log) {
  if (!gradient)
    return;
  const std::vector<runtime::Access> &accesses = gradient->code->accesses;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].array && accesses[i].needed)
      want(log, i, boxOf(accesses[i].neededSection, *kernel, call, i));
}

std::string LaunchEntry::argumentText(size_t argument) const {
  return nameOf(*kernel, argument);
}

void LaunchEntry::requireGradient() const {
  if (refusal)
    raise(*refusal);
  if (!gradient)
    return;
  checkCompanions(*kernel, call, *gradient->code);
  checkOverlaps(*kernel, call, *gradient->code);
}

bool LaunchEntry::writesActive(size_t argument) const {
  return gradient && gradient->code->accesses[argument].activeWrite;
}

void LaunchEntry::reverse(const Reversing &with) const {
  if (gradient)
    detail::run(*kernel, Mode::Gradient, call, *gradient,
                before.empty() ? versions : versionsBefore(with));
}

std::string detail::reverserText() { return "`backward` of a Tape"; }

void detail::fillGradient(ArrayStorage &gradient, double value) {
  fillGradient(gradient, value, Box::whole(gradient.extents));
}

void detail::fillGradient(ArrayStorage &gradient, double value,
                          const Box &elements) {
  float narrow = static_cast<float>(value);
  const void *pattern = gradient.dtype == DType::F32
                            ? static_cast<const void *>(&narrow)
                            : static_cast<const void *>(&value);
  announceWrite(gradient, elements, reverserText);
  gradient.countWrite();
  const size_t width = sizeOf(gradient.dtype);
  auto fill = [&](int64_t first, int64_t count) {
    runtime::Buffer run{gradient.buffer.address +
                            static_cast<size_t>(first) * width,
                        static_cast<size_t>(count) * width};
    checked(gradient.device->fill(run, pattern, width));
  };
  runtime::forEachRuns(elements, gradient.extents,
                       [&](const runtime::Runs &runs) {
                         for (int64_t k = 0; k < runs.count; ++k)
                           fill(runs.first + k * runs.pitch, runs.length);
                       });
}

std::string detail::hostWriteText(Loc loc) {
  std::string text = "a write by the host";
  if (loc.line)
    text += std::string(" (") + loc.file + ":" + std::to_string(loc.line) + ")";
  return text;
}

HostWriteEntry::HostWriteEntry(std::shared_ptr<ArrayStorage> array, Box written,
                               Loc loc)
    : elements(std::move(written)), loc(loc) {
  uint64_t version = array->version.load();
  bool replaced = elements.size() == array->size;
  arguments.push_back({std::move(array), false, true, replaced, version - 1});
}

std::string HostWriteEntry::title() const { return hostWriteText(loc); }

void HostWriteEntry::reverse(const Reversing &) const {
  if (arguments[0].array->grad)
    fillGradient(*arguments[0].array->grad, 0, elements);
}

std::string detail::titleOf(const CustomLaunch &launch) {
  std::string text = "custom launch `" + launch.name + "`";
  if (launch.loc.line)
    text += std::string(" (") + launch.loc.file + ":" +
            std::to_string(launch.loc.line) + ")";
  return text;
}

CustomEntry::CustomEntry(CustomLaunch custom) : launch(std::move(custom)) {
  if (launch.finds_arrays &&
      launch.reads.size() + launch.writes.size() + launch.unneeded.size())
    raise(ErrorCode::BadArgument,
          title() + " names arrays, but finds them by itself; leave out one");
  auto add = [&](const AnyArray &array) -> TapeArgument & {
    if (!array)
      raise(ErrorCode::BadArgument,
            title() + " names an array without storage; make one with "
                      "device.array<T>(...)");
    for (TapeArgument &known : arguments)
      if (known.array == array.storage())
        return known;
    return arguments.emplace_back(TapeArgument{array.storage()});
  };
  for (const AnyArray &array : launch.reads)
    add(array).read = true;
  for (const AnyArray &array : launch.writes)
    add(array).written = true;
  size_t named = arguments.size();
  for (const AnyArray &array : launch.unneeded)
    add(array);
  if (arguments.size() != named)
    raise(ErrorCode::BadArgument,
          title() + ": an array in `unneeded` is in neither `reads` nor "
                    "`writes`; name it there too");
}

std::string CustomEntry::title() const { return titleOf(launch); }

std::string CustomEntry::argumentText(size_t argument) const {
  if (findsArrays())
    return "an array of " + runtime::contentsText(*arguments[argument].array);
  auto numberIn = [&](const std::vector<AnyArray> &list) {
    size_t k = 0;
    while (list[k].storage() != arguments[argument].array)
      ++k;
    return std::to_string(k + 1);
  };
  return arguments[argument].read
             ? "array " + numberIn(launch.reads) + " of `reads`"
             : "array " + numberIn(launch.writes) + " of `writes`";
}

void CustomEntry::setFound(std::vector<TapeArgument> found) {
  for (TapeArgument &argument : found) {
    bool isTemporary = argument.array.use_count() == 1;
    if (isTemporary)
      continue;
    argument.replaced = argument.written; // as the user says
    argument.written &= launch.gradient != nullptr;
    positions[argument.array->identity] = arguments.size();
    arguments.push_back(std::move(argument));
  }
}

std::optional<size_t> CustomEntry::find(const ArrayStorage &array) const {
  if (findsArrays()) {
    auto known = positions.find(array.identity);
    return known == positions.end() ? std::nullopt
                                    : std::optional(known->second);
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].array.get() == &array)
      return i;
  return std::nullopt;
}

bool CustomEntry::isNeeded(size_t argument) const {
  return std::none_of(launch.unneeded.begin(), launch.unneeded.end(),
                      [&](const AnyArray &array) {
                        return array.storage() == arguments[argument].array;
                      });
}

void CustomEntry::wantBefore(VersionLog &log) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].read && isNeeded(i))
      want(log, i, Box::whole(arguments[i].array->extents));
}

void CustomEntry::wantAfter(VersionLog &log) {
  writesAfter = runtime::writeCount();
  bool optional = findsArrays();
  if (optional && !launch.gradient)
    return;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].read && isNeeded(i))
      want(log, i, Box::whole(arguments[i].array->extents), /*inPlace=*/true,
           optional);
}

void CustomEntry::requireGradient() const {
  if (!launch.gradient && !findsArrays())
    raise(ErrorCode::NotDifferentiable,
          title() + " has no `gradient`; give it one, or launch it outside of "
                    "the recording");
}

bool CustomEntry::writesActive(size_t argument) const {
  const TapeArgument &written = arguments[argument];
  return written.written && isFloat(written.array->dtype) &&
         std::any_of(arguments.begin(), arguments.end(),
                     [](const TapeArgument &other) {
                       return other.read && other.array->grad;
                     });
}

void CustomEntry::reverse(const Reversing &with) const {
  if (!launch.gradient)
    return;
  Guard guard(with);
  CustomScope scope(*this, CustomScope::Part::Gradient, &guard);
  launch.gradient();
}
