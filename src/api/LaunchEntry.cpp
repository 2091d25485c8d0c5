#include "api/LaunchEntry.h"

#include "api/Checked.h"
#include "api/LaunchCode.h"
#include "api/Sections.h"
#include "api/TapeImpl.h"

#include <algorithm>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;
using runtime::VersionLog;
using Role = runtime::Parameter::Role;

LaunchEntry::LaunchEntry(const BoundLaunch &launch, TapeImpl &tape)
    : call(launch.call), chain(launch.chain), compiled(&launch.compiled) {
  derivatives = launch.derivatives();
  for (size_t i = 0; i < call.arguments.size(); ++i)
    arguments.push_back({call.arguments[i].array, launch.code.accesses[i].read,
                         launch.code.accesses[i].written});
  std::vector<bool> active = activeArguments(Mode::Gradient, call);
  if (std::find(active.begin(), active.end(), true) == active.end())
    return;
  try {
    gradient = &call.kernel->compiled(Mode::Gradient, active, *call.device);
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
      return refuse("and the recording may not keep a copy of them "
                    "(TapeOptions::snapshot, never_copy)");
  recorder = &call.kernel->compiled(Mode::Recording, active, *call.device);
  if (!tape.checkpoints)
    keepParts(tape.log);
}

void LaunchEntry::keepParts(VersionLog &log) {
  try {
    versions = VersionArrays(call, *gradient->code,
                             memoryFor(call, *gradient->code, log));
  } catch (const Error &error) {
    raise(error.code(), title() +
                            " overwrites values that its gradient needs, and "
                            "there is no memory to keep them: " +
                            error.what() +
                            "; nothing has been written; call `backward` and "
                            "`clear` before, or give the array a time index");
  }
}

void LaunchEntry::run(bool quiet) {
  const bool keeps = !versions.all().empty();
  BoundLaunch launch(call, keeps ? Chain{Mode::Recording} : chain,
                     keeps ? *recorder : *compiled);
  launch.quiet = quiet;
  launch.run(versions);
}

void LaunchEntry::runToKeep(VersionLog &log) {
  if (recorder)
    keepParts(log);
  run(/*quiet=*/true);
  log.countBytes(versions.bytes());
}

void LaunchEntry::forEachUse(const Visit &visit) const {
  BoundLaunch launch(call, chain, *compiled);
  for (size_t i = 0; i < launch.all().size(); ++i) {
    const ArrayUse &use = launch.all()[i];
    if (!use.array ||
        (use.array->isCompanion && launch.code.parameters[i].isArgument()))
      continue;
    Box written = use.written ? launch.writtenElements(i) : Box();
    visit(use.array->shared_from_this(), use.written ? &written : nullptr);
  }
}

/// Whether work items run in any order.
static bool isParallel(const runtime::Device &device) {
  return device.info().threads > 1;
}

std::string LaunchEntry::obstacle() const {
  for (const TapeArgument &argument : arguments)
    if (argument.array && argument.array->isCompanion)
      return "it uses a gradient or a tangent as an array";
  return compiled->code->leftToChance && isParallel(*call.device)
             ? "what its atomics return depends on the order of work items"
             : "";
}

bool LaunchEntry::needsRun() const {
  if (recorder)
    return true;
  bool needs = false;
  forEachUse([&](const std::shared_ptr<ArrayStorage> &array, const Box *box) {
    for (const Want &want : wants)
      needs |= box && want.inPlace && arguments[want.argument].array == array &&
               meet(*box, want.elements);
  });
  return needs;
}

bool LaunchEntry::leavesAll() const {
  return obstacle().empty() &&
         (!gradient || std::ranges::none_of(gradient->code->parameters,
                                            [](runtime::Parameter parameter) {
                                              return parameter.role ==
                                                     Role::Version;
                                            }));
}

size_t LaunchEntry::partBytes() const {
  return recorder ? VersionArrays::bytesOf(call, *gradient->code) : 0;
}

void LaunchEntry::wantBefore(VersionLog *log) {
  readers.clear();
  if (!gradient || recorder)
    return;
  const runtime::KernelCode &code = *gradient->code;
  for (size_t k = 0; k < code.parameters.size(); ++k) {
    if (code.parameters[k].role != Role::Version)
      continue;
    readers.push_back(code.parameters[k]);
    size_t argument = code.parameters[k].argument;
    want(log, argument, boxOf(code.sections[k], call, argument),
         /*inPlace=*/false);
  }
}

std::byte *LaunchEntry::find(const Reversing &with, const Want &want) const {
  return with.log.findArray(*arguments[want.argument].array, want.elements,
                            want.time);
}

/// What the gradient reads: a copy may stand in for an array, else parts are
/// put in place, or together. That moves copies, so it comes first.
VersionArrays LaunchEntry::past(const Reversing &with) const {
  for (const Want &want : wants)
    if (!find(with, want))
      rewind(with, want);
  for (auto &[device, memory] : with.scratch)
    memory->reuse();
  VersionArrays arrays = versions;
  for (size_t i = 0; i < wants.size(); ++i) {
    const runtime::ArrayStorage &array = *arguments[wants[i].argument].array;
    if (std::byte *begin = find(with, wants[i]))
      arrays.put(readers[i], {begin, array.buffer.bytes});
    else if (!wants[i].inPlace)
      checked(with.log.read(
          array, wants[i].elements, wants[i].time,
          arrays.add(call, readers[i], memoryOf(with.scratch, call.device))));
  }
  return arrays;
}

void LaunchEntry::wantAfter(VersionLog *log) {
  if (!gradient)
    return;
  const runtime::KernelCode &code = *gradient->code;
  for (runtime::Parameter parameter : code.parameters) {
    size_t i = parameter.argument;
    if (!arguments[i].array || !parameter.isArgument() ||
        !code.accesses[i].needed)
      continue;
    readers.push_back(parameter);
    want(log, i, boxOf(code.accesses[i].neededSection, call, i));
  }
}

std::string LaunchEntry::argumentText(size_t argument) const {
  return nameOf(*call.kernel, argument);
}

void LaunchEntry::requireGradient() const {
  if (refusal)
    raise(*refusal);
  if (!gradient)
    return;
  checkCompanions(call, *gradient->code);
  BoundLaunch(call, Mode::Gradient, *gradient).requireApart();
}

bool LaunchEntry::writesActive(size_t argument) const {
  return gradient && gradient->code->accesses[argument].activeWrite;
}

void LaunchEntry::reverse(const Reversing &with) const {
  if (!gradient)
    return;
  BoundLaunch(call, Mode::Gradient, *gradient).run(past(with));
}
