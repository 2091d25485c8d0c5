#include "api/Launch.h"

#include "api/Checked.h"
#include "api/TapeImpl.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::Access;
using runtime::ArrayStorage;
using runtime::KernelCode;
using Role = runtime::Parameter::Role;

std::vector<bool> detail::activeArguments(Mode mode, const Call &call) {
  std::vector<bool> active;
  if (mode == Mode::Primal)
    return active;
  for (const BoundArgument &argument : call.arguments) {
    const ArrayStorage *array = argument.array.get();
    active.push_back(array &&
                     (mode == Mode::Tangent ? array->dual : array->grad));
  }
  return active;
}

static const char *flagOf(Mode mode) {
  return mode == Mode::Gradient ? "grad" : "dual";
}
static const char *companionOf(Mode mode) {
  return mode == Mode::Gradient ? "gradient" : "tangent";
}

static void requireSomeActive(const KernelImpl &kernel, Mode mode,
                              const std::vector<bool> &active) {
  for (bool one : active)
    if (one)
      return;
  raise(ErrorCode::MissingGradient,
        kernel.title() + ": no argument has a " + companionOf(mode) +
            "; make the arrays to differentiate with device.array<T>(..., " +
            flagOf(mode) + ")");
}

/// Outputs must not drop a derivative.
static void requireOutputs(const KernelImpl &kernel, Mode mode,
                           const KernelCode &code,
                           const std::vector<bool> &active) {
  for (size_t i = 0; i < active.size(); ++i)
    if (code.accesses[i].activeWrite && !active[i])
      raise(ErrorCode::MissingGradient,
            argumentText(kernel, i) + " has no " + companionOf(mode) +
                ", but the kernel writes values to it that depend on arrays "
                "with " +
                "one; make it with device.array<T>(..., " + flagOf(mode) + ")");
}

/// The array that the caller has passed for `parameter`; null for a scalar and
/// for what the launch itself provides.
static std::shared_ptr<ArrayStorage> storageOf(const Call &call,
                                               runtime::Parameter parameter) {
  const std::shared_ptr<ArrayStorage> &array =
      call.arguments[parameter.argument].array;
  switch (parameter.role) {
  case Role::Primal:
    return array;
  case Role::Adjoint:
    return array->grad;
  case Role::Tangent:
    return array->dual;
  case Role::Version:
  case Role::Scratch:
    return nullptr;
  }
  return array;
}

/// Whether memory of `parameter` changes when the kernel or its derivative
/// runs.
static bool isWritten(const KernelCode &code, runtime::Parameter parameter) {
  const Access &access = code.accesses[parameter.argument];
  return access.written || (parameter.role == Role::Adjoint && access.read);
}

static std::shared_ptr<ArrayStorage> arrayLike(const ArrayStorage &array) {
  return checked(runtime::makeArray(array.device, array.dtype, array.extents,
                                    /*withGrad=*/false, /*withDual=*/false));
}

VersionArrays::VersionArrays(const Call &call, const KernelCode &code) {
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Version)
      arrays.emplace_back(parameter,
                          arrayLike(*call.arguments[parameter.argument].array));
}

std::shared_ptr<ArrayStorage>
VersionArrays::find(runtime::Parameter parameter) const {
  for (const auto &[known, array] : arrays)
    if (known == parameter)
      return array;
  return nullptr;
}

size_t VersionArrays::bytes() const {
  size_t sum = 0;
  for (const auto &[parameter, array] : arrays)
    sum += array->buffer.bytes;
  return sum;
}

static std::string parameterText(runtime::Parameter parameter) {
  std::string argument = "argument " + std::to_string(parameter.argument + 1);
  switch (parameter.role) {
  case Role::Primal:
    return argument;
  case Role::Adjoint:
    return "the gradient of " + argument;
  case Role::Tangent:
    return "the tangent of " + argument;
  case Role::Version:
  case Role::Scratch:
    return "a copy of " + argument;
  }
  return argument;
}

void detail::checkOverlaps(const KernelImpl &kernel, const Call &call,
                           const KernelCode &code) {
  const std::vector<runtime::Parameter> &parameters = code.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ArrayStorage *one = storageOf(call, parameters[i]).get();
    if (!one || one->buffer.bytes == 0)
      continue;
    for (size_t j = i + 1; j < parameters.size(); ++j)
      if (storageOf(call, parameters[j]).get() == one &&
          (isWritten(code, parameters[i]) || isWritten(code, parameters[j])))
        raise(ErrorCode::BadArgument,
              kernel.title() + ": " + parameterText(parameters[i]) + " and " +
                  parameterText(parameters[j]) +
                  " are the same array, and it is written; pass two arrays");
  }
}

/// The arrays of all parameters of a launch; null for scalars.
static std::vector<std::shared_ptr<ArrayStorage>>
arraysOf(const Call &call, const KernelCode &code,
         const VersionArrays &versions) {
  std::vector<std::shared_ptr<ArrayStorage>> arrays;
  for (runtime::Parameter parameter : code.parameters) {
    if (parameter.role == Role::Version)
      arrays.push_back(versions.find(parameter));
    else if (parameter.role == Role::Scratch)
      arrays.push_back(arrayLike(*call.arguments[parameter.argument].array));
    else
      arrays.push_back(storageOf(call, parameter));
  }
  return arrays;
}

static std::vector<uint64_t>
packSlots(const Call &call, const KernelCode &code,
          std::span<const std::shared_ptr<ArrayStorage>> arrays) {
  std::vector<uint64_t> slots;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const ArrayStorage *array = arrays[i].get();
    runtime::Parameter parameter = code.parameters[i];
    if (!array) {
      slots.push_back(call.arguments[parameter.argument].bits);
      continue;
    }
    slots.push_back(reinterpret_cast<uint64_t>(array->buffer.address));
    for (int64_t extent : array->extents)
      slots.push_back(static_cast<uint64_t>(extent));
  }
  return slots;
}

/// Counts a write to whatever the launch has written.
static void bumpVersions(Mode mode, const Call &call, const KernelCode &code) {
  for (runtime::Parameter parameter : code.parameters) {
    bool primal = parameter.role == Role::Primal;
    std::shared_ptr<ArrayStorage> array = storageOf(call, parameter);
    if (array && isWritten(code, parameter) &&
        !(primal && mode == Mode::Gradient))
      array->version.fetch_add(1);
  }
}

void detail::run(const KernelImpl &kernel, Mode mode, const Call &call,
                 Compiled &compiled, const VersionArrays &versions) {
  const KernelCode &code = *compiled.code;
  checkOverlaps(kernel, call, code);
  std::vector<std::shared_ptr<ArrayStorage>> arrays =
      arraysOf(call, code, versions);
  std::vector<uint64_t> slots = packSlots(call, code, arrays);
  std::vector<runtime::Buffer> adjoints;
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Adjoint)
      adjoints.push_back(storageOf(call, parameter)->buffer);
  Result<runtime::LaunchReport> report = call.device->launch(
      {&code, slots, adjoints, kernel.options.deterministic});
  bumpVersions(mode, call, code);
  compiled.tapeBytes = checked(std::move(report)).tapeBytes;
}

static std::vector<uint64_t> identitiesOf(const Call &call) {
  std::vector<uint64_t> identities;
  for (const BoundArgument &argument : call.arguments)
    identities.push_back(argument.array ? argument.array->identity : 0);
  return identities;
}

/// Only kernels that read what they write can reload their own stores.
static void rememberLaunch(KernelImpl &kernel, const Call &call,
                           const KernelCode &code) {
  bool reloads = false;
  for (const Access &access : code.accesses)
    reloads |= access.read && access.written;
  if (!reloads)
    return;
  PastLaunch past;
  for (const BoundArgument &argument : call.arguments) {
    past.versions.push_back(argument.array ? argument.array->version.load()
                                           : 0);
    past.scalars.push_back(argument.bits);
  }
  kernel.remember(identitiesOf(call), std::move(past));
}

/// A gradient that reloads what the kernel stored must find it in memory.
static void requireReplay(KernelImpl &kernel, const Call &call,
                          const KernelCode &code) {
  if (!code.overwritten.empty())
    raise(ErrorCode::CannotReplay, code.overwritten);
  size_t reloaded = 0;
  while (reloaded < code.accesses.size() && !code.accesses[reloaded].reloaded)
    ++reloaded;
  if (reloaded == code.accesses.size())
    return;
  const std::string why =
      ", and this gradient reads back what the kernel stored in argument " +
      std::to_string(reloaded + 1) +
      "; run the kernel on these arguments right before, or record both with a "
      "Tape";
  std::optional<PastLaunch> past = kernel.recall(identitiesOf(call));
  if (!past)
    raise(ErrorCode::CannotReplay,
          kernel.title() + " has not run on these arrays" + why);
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const ArrayStorage *array = call.arguments[i].array.get();
    if (array && code.accesses[i].needed && array->version != past->versions[i])
      raise(ErrorCode::CannotReplay,
            argumentText(kernel, i) + " was written since the kernel last ran" +
                why);
    if (!array && call.arguments[i].bits != past->scalars[i])
      raise(ErrorCode::CannotReplay,
            argumentText(kernel, i) +
                " has another value than when the kernel last ran" + why);
  }
}

/// The adjoints or tangents that a launch writes.
static std::vector<std::shared_ptr<ArrayStorage>>
derivativesOf(const Call &call, const KernelCode &code) {
  std::vector<std::shared_ptr<ArrayStorage>> arrays;
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role != Role::Primal && isWritten(code, parameter))
      arrays.push_back(storageOf(call, parameter));
  return arrays;
}

namespace {
/// Copies of what a launch is going to write; puts them back, and takes the
/// writes out of the version counters, when it ends.
class WrittenArrays {
public:
  WrittenArrays(const Call &call, const KernelCode &code) {
    for (size_t i = 0; i < call.arguments.size(); ++i)
      if (const auto &array = call.arguments[i].array;
          array && code.accesses[i].written)
        keep(array);
  }
  ~WrittenArrays() {
    for (Kept &kept : arrays) {
      // A copy between two buffers of one device that exist cannot fail.
      (void)kept.array->device->copy(kept.array->buffer, kept.copy->buffer);
      kept.array->version.store(kept.version);
    }
  }
  WrittenArrays(const WrittenArrays &) = delete;
  WrittenArrays &operator=(const WrittenArrays &) = delete;

private:
  struct Kept {
    std::shared_ptr<ArrayStorage> array, copy;
    uint64_t version;
  };

  void keep(const std::shared_ptr<ArrayStorage> &array) {
    std::shared_ptr<ArrayStorage> copy = arrayLike(*array);
    checked(array->device->copy(copy->buffer, array->buffer));
    arrays.push_back({array, copy, array->version.load()});
  }

  std::vector<Kept> arrays;
};
} // namespace

void detail::gradFromInitialState(const std::shared_ptr<KernelImpl> &kernel,
                                  const Call &call) {
  std::vector<bool> active = activeArguments(Mode::Gradient, call);
  requireSomeActive(*kernel, Mode::Gradient, active);
  Compiled &gradient = kernel->compiled(Mode::Gradient, active);
  Compiled &recording = kernel->compiled(Mode::Recording, active);
  requireOutputs(*kernel, Mode::Gradient, *gradient.code, active);
  WrittenArrays written(call, *gradient.code);
  VersionArrays versions(call, *gradient.code);
  run(*kernel, Mode::Recording, call, recording, versions);
  run(*kernel, Mode::Gradient, call, gradient, versions);
  recordDerivatives(kernel, Mode::Gradient,
                    derivativesOf(call, *gradient.code));
}

void detail::launch(const std::shared_ptr<KernelImpl> &kernel, Mode mode,
                    const Call &call) {
  std::vector<bool> active = activeArguments(mode, call);
  if (mode != Mode::Primal)
    requireSomeActive(*kernel, mode, active);
  Compiled &compiled = kernel->compiled(mode, active);
  if (mode != Mode::Primal)
    requireOutputs(*kernel, mode, *compiled.code, active);
  if (mode == Mode::Gradient)
    requireReplay(*kernel, call, *compiled.code);
  run(*kernel, mode, call, compiled);
  if (mode != Mode::Gradient) {
    rememberLaunch(*kernel, call, *compiled.code);
    recordLaunch(kernel, call, *compiled.code);
  }
  if (mode != Mode::Primal)
    recordDerivatives(kernel, mode, derivativesOf(call, *compiled.code));
}
