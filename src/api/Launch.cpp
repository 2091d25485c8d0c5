#include "api/Launch.h"

#include "api/Checked.h"
#include "api/CustomScope.h"
#include "api/GraphImpl.h"
#include "api/Recording.h"
#include "api/Sections.h"
#include "runtime/Text.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::Access;
using runtime::ArrayStorage;
using runtime::KernelCode;
using Role = runtime::Parameter::Role;
/// By parameter; null for a scalar.
using Arrays = std::vector<std::shared_ptr<ArrayStorage>>;

std::vector<bool> detail::activeArguments(Mode mode, const Call &call) {
  std::vector<bool> active;
  if (mode == Mode::Primal)
    return active;
  for (const BoundArgument &argument : call.arguments) {
    const ArrayStorage *array = argument.array.get();
    active.push_back(array && (mode == Mode::Tangent ? array->hasTangent()
                                                     : array->grad != nullptr));
  }
  return active;
}

static std::string directionsText(int64_t directions) {
  return directions ? std::to_string(directions) + " directions"
                    : "one direction, without an extent for it";
}

/// Of the tangents of all arguments.
static unsigned directionsOf(const KernelImpl &kernel, const Call &call) {
  std::optional<size_t> first;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const ArrayStorage *array = call.arguments[i].array.get();
    if (!array || !array->hasTangent())
      continue;
    if (!first)
      first = i;
    int64_t expected = call.arguments[*first].array->directions;
    if (array->directions != expected)
      raise(ErrorCode::BadArgument,
            argumentText(kernel, i) + " has tangents in " +
                directionsText(array->directions) + ", but " +
                nameOf(kernel, *first) + " in " + directionsText(expected) +
                "; make all arrays with the same `directions`");
  }
  return first ? static_cast<unsigned>(call.arguments[*first].array->directions)
               : 0;
}

compiler::Derivation detail::derivationOf(const KernelImpl &kernel, Chain chain,
                                          const Call &call) {
  compiler::Derivation derivation;
  derivation.target = call.device->info().target;
  if (chain.mode == Mode::Gradient) {
    derivation.mode = compiler::Mode::Gradient;
    derivation.adjoint = activeArguments(Mode::Gradient, call);
  }
  derivation.order = chain.order;
  if (chain.order) {
    derivation.tangent = activeArguments(Mode::Tangent, call);
    derivation.directions = directionsOf(kernel, call);
  }
  return derivation;
}

static void requireSome(const KernelImpl &kernel,
                        const std::vector<bool> &active, const char *companion,
                        const char *flag) {
  for (bool one : active)
    if (one)
      return;
  raise(ErrorCode::MissingGradient,
        kernel.title() + ": no argument has a " + companion +
            "; make the arrays to differentiate with device.array<T>(..., " +
            flag + ")");
}

static void requireSomeActive(const KernelImpl &kernel,
                              const compiler::Derivation &derivation) {
  if (derivation.mode == compiler::Mode::Gradient)
    requireSome(kernel, derivation.adjoint, "gradient", "grad");
  if (derivation.order)
    requireSome(kernel, derivation.tangent, "tangent", "dual");
}

/// What to do about an array without a derivative.
static std::string remedyFor(const ArrayStorage &array,
                             const std::string &flag) {
  if (array.isCompanion)
    return "it is itself a gradient or a tangent, which has none: pass an "
           "array of your own, or take second derivatives with "
           "`k.gradient().jvp`";
  return "make it with device.array<T>(..., " + flag + ")";
}

/// Outputs must not drop a derivative.
static void requireOutputs(const KernelImpl &kernel, const KernelCode &code,
                           const Call &call) {
  if (code.missing.empty())
    return;
  runtime::Parameter missing = code.missing.front();
  bool isGradient = missing.role == Role::Adjoint;
  std::string has = isGradient && missing.order
                        ? ": its gradient has no tangent"
                    : isGradient ? " has no gradient"
                                 : " has no tangent";
  std::string flag = isGradient && missing.order ? "grad | dual"
                     : isGradient                ? "grad"
                                                 : "dual";
  raise(ErrorCode::MissingGradient,
        argumentText(kernel, missing.argument) + has + ", but the kernel " +
            (isGradient && missing.order ? "adds" : "writes") +
            " values to it that depend on arrays with one; " +
            remedyFor(*call.arguments[missing.argument].array, flag));
}

static std::string placeText(Loc loc) {
  return std::string(loc.file) + ":" + std::to_string(loc.line) + ":" +
         std::to_string(loc.column);
}

void detail::checkCompanions(const KernelImpl &kernel, const Call &call,
                             const KernelCode &code) {
  for (size_t k = 0; k < call.arguments.size(); ++k) {
    const std::shared_ptr<ArrayStorage> &array = call.arguments[k].array;
    Loc load = code.accesses[k].passedOn;
    bool isNamed = !kernel.program->arguments()[k].form.name.empty();
    if (!array || !array->isCompanion || !load.line || !isNamed)
      continue;
    raise(ErrorCode::NotDifferentiable,
          placeText(load) + ": error: the gradient of " + kernel.title() +
              " depends on what is read here from " + nameOf(kernel, k) +
              ", which is itself a gradient; derivatives of gradients are not "
              "known here, so a part of the result would be lost\n" +
              placeText(load) +
              ": note: if it counts as a constant, write "
              "`stop_gradient(...)` around it, or copy it into an array of "
              "your own; do not record a step of an optimiser; for second "
              "derivatives use `k.gradient().jvp`");
  }
}

/// Whether the launch and not its caller has the array.
static bool isProvided(runtime::Parameter parameter) {
  return parameter.role == Role::Version || parameter.role == Role::Scratch ||
         parameter.role == Role::Owners;
}

/// The array that the caller has passed for `parameter`; null for a scalar and
/// for what the launch itself provides.
static std::shared_ptr<ArrayStorage> storageOf(const Call &call,
                                               runtime::Parameter parameter) {
  std::shared_ptr<ArrayStorage> array =
      call.arguments[parameter.argument].array;
  if (isProvided(parameter))
    return nullptr;
  if (parameter.role == Role::Adjoint)
    array = array->grad;
  for (uint32_t order = 0; order < parameter.order; ++order)
    array = checked(array->tangent());
  return array;
}

/// Whether memory of `parameter` changes when the kernel or its derivative
/// runs.
static bool isWritten(const KernelCode &code, runtime::Parameter parameter) {
  if (isProvided(parameter))
    return false;
  const Access &access = code.accesses[parameter.argument];
  return access.written || (parameter.role == Role::Adjoint && access.read);
}

/// Whether a gradient has no part in an argument: it writes none, and reads
/// what it needs.
static bool isLeftOut(const KernelCode &code, runtime::Parameter parameter) {
  auto isAdjoint = [](runtime::Parameter p) { return p.role == Role::Adjoint; };
  return parameter.isArgument() && !code.accesses[parameter.argument].needed &&
         std::ranges::any_of(code.parameters, isAdjoint);
}

/// What a version or a scratch array is of.
static std::shared_ptr<ArrayStorage> originalOf(const Call &call,
                                                runtime::Parameter parameter) {
  parameter.role = Role::Primal;
  return storageOf(call, parameter);
}

/// A new array of the shape of `parameter`.
static std::shared_ptr<ArrayStorage> arrayLike(const Call &call,
                                               runtime::Parameter parameter) {
  std::shared_ptr<ArrayStorage> like = originalOf(call, parameter);
  bool isOfNumbers = parameter.role == Role::Owners;
  return checked(runtime::makeArray(
      like->device, isOfNumbers ? DType::I64 : like->dtype, like->extents,
      /*withGrad=*/false, /*withDual=*/false));
}

VersionArrays::VersionArrays(const Call &call, const KernelCode &code,
                             std::shared_ptr<runtime::CopyMemory> room)
    : memory(std::move(room)) {
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Version)
      arrays.push_back(
          {parameter,
           checked(memory->take(originalOf(call, parameter)->buffer.bytes))});
}

size_t VersionArrays::bytesOf(const Call &call, const KernelCode &code) {
  size_t sum = 0;
  for (runtime::Parameter parameter : code.parameters)
    if (parameter.role == Role::Version)
      sum += originalOf(call, parameter)->buffer.bytes;
  return sum;
}

runtime::Buffer VersionArrays::find(runtime::Parameter parameter) const {
  for (const Version &version : arrays)
    if (version.parameter == parameter)
      return version.buffer;
  return {};
}

size_t VersionArrays::bytes() const {
  size_t sum = 0;
  for (const Version &version : arrays)
    sum += version.buffer.bytes;
  return sum;
}

static Arrays givenArrays(const Call &call, const KernelCode &code) {
  Arrays arrays;
  arrays.reserve(code.parameters.size());
  for (runtime::Parameter parameter : code.parameters)
    arrays.push_back(storageOf(call, parameter));
  return arrays;
}

/// Arrays over memory of others may have a part in common.
static bool overlap(const ArrayStorage &one, const ArrayStorage *other) {
  if (!other || other->buffer.bytes == 0)
    return false;
  const runtime::Buffer &a = one.buffer, &b = other->buffer;
  return a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

static void requireApart(const KernelImpl &kernel, const KernelCode &code,
                         const Arrays &arrays) {
  const std::vector<runtime::Parameter> &parameters = code.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!arrays[i] || arrays[i]->buffer.bytes == 0 ||
        isLeftOut(code, parameters[i]))
      continue;
    for (size_t j = i + 1; j < parameters.size(); ++j)
      if (overlap(*arrays[i], arrays[j].get()) &&
          !isLeftOut(code, parameters[j]) &&
          (isWritten(code, parameters[i]) || isWritten(code, parameters[j])))
        raise(ErrorCode::BadArgument,
              kernel.title() + ": " +
                  runtime::parameterText(code, parameters[i]) + " and " +
                  runtime::parameterText(code, parameters[j]) +
                  (arrays[i] == arrays[j] ? " are the same array"
                                          : " have memory in common") +
                  ", and it is written; pass two arrays");
  }
}

void detail::checkOverlaps(const KernelImpl &kernel, const Call &call,
                           const KernelCode &code) {
  requireApart(kernel, code, givenArrays(call, code));
}

/// Adds what the launch itself provides, but for versions.
static void provide(Arrays &arrays, const Call &call, const KernelCode &code) {
  for (size_t i = 0; i < arrays.size(); ++i)
    if (runtime::Parameter parameter = code.parameters[i];
        isProvided(parameter) && parameter.role != Role::Version)
      arrays[i] = arrayLike(call, parameter);
}

/// What the code is given: scalars, addresses and extents.
static std::vector<uint64_t> packSlots(const Call &call, const KernelCode &code,
                                       const Arrays &arrays,
                                       const VersionArrays &versions) {
  std::vector<uint64_t> slots;
  for (size_t i = 0; i < arrays.size(); ++i) {
    runtime::Parameter parameter = code.parameters[i];
    const bool isVersion = parameter.role == Role::Version;
    std::shared_ptr<ArrayStorage> array =
        isVersion ? originalOf(call, parameter) : arrays[i];
    if (!array) {
      slots.push_back(call.arguments[parameter.argument].bits);
      continue;
    }
    runtime::Buffer buffer =
        isVersion ? versions.find(parameter) : array->buffer;
    slots.push_back(reinterpret_cast<uint64_t>(buffer.address));
    for (int64_t extent : array->extents)
      slots.push_back(static_cast<uint64_t>(extent));
  }
  return slots;
}

/// Whether a launch writes to `parameter`: a gradient leaves memory of the
/// primal as it is.
static bool changes(Mode mode, const KernelCode &code,
                    runtime::Parameter parameter) {
  bool isKept = mode == Mode::Gradient && parameter.role == Role::Primal;
  return !isKept && isWritten(code, parameter);
}

/// Whether a launch looks at the values of an argument.
static bool looksAt(Mode mode, const KernelCode &code,
                    runtime::Parameter parameter) {
  const Access &access = code.accesses[parameter.argument];
  return parameter.isArgument() &&
         (mode == Mode::Gradient ? access.needed : access.read);
}

/// Tells custom launches around this one what it looks at, and what it changes.
/// What it does both to it may well have written first.
static void noteReads(const KernelImpl &kernel, Mode mode, const Call &call,
                      const KernelCode &code) {
  for (runtime::Parameter parameter : code.parameters)
    if (looksAt(mode, code, parameter)) {
      auto note = changes(mode, code, parameter) ? noteUpdate : noteRead;
      note(storageOf(call, parameter), [&] {
        return runtime::parameterText(code, parameter) + " of " +
               kernel.title();
      });
    }
}

static void noteWrites(const KernelImpl &kernel, Mode mode, const Call &call,
                       const KernelCode &code) {
  for (runtime::Parameter parameter : code.parameters)
    if (changes(mode, code, parameter))
      noteWrite(storageOf(call, parameter), [&] {
        return runtime::parameterText(code, parameter) + " of " +
               kernel.title();
      });
}

static void announceReads(const KernelImpl &kernel, Mode mode,
                          const KernelCode &code, const Arrays &arrays) {
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i] && arrays[i]->isWatched() &&
        looksAt(mode, code, code.parameters[i]))
      announceRead(*arrays[i], [&] { return kernel.title(); });
}

/// Tells the recordings that need what the launch is about to overwrite.
static void announceWrites(const KernelImpl &kernel, Mode mode,
                           const Call &call, const KernelCode &code,
                           const Arrays &arrays) {
  auto writer = [&] {
    return (mode == Mode::Gradient ? "the gradient of " : "") + kernel.title();
  };
  for (size_t i = 0; i < arrays.size(); ++i) {
    runtime::Parameter parameter = code.parameters[i];
    if (!arrays[i] || !arrays[i]->isWatched() ||
        !changes(mode, code, parameter))
      continue;
    // Sections are those of the argument; directions add a dimension.
    bool isAlike =
        arrays[i]->extents == call.arguments[parameter.argument].array->extents;
    if (parameter.role != Role::Adjoint && isAlike)
      announceWrite(*arrays[i],
                    boxOf(code.accesses[parameter.argument].writtenSection,
                          kernel, call, parameter.argument),
                    writer);
    else
      announceWrite(*arrays[i], writer);
  }
}

/// Counts a write to whatever the launch has written.
static void bumpVersions(Mode mode, const KernelCode &code,
                         const Arrays &arrays) {
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i] && changes(mode, code, code.parameters[i]))
      arrays[i]->countWrite();
}

static runtime::KeptLaunch launchOf(const KernelImpl &kernel, const Call &call,
                                    const KernelCode &code,
                                    const Arrays &arrays,
                                    const VersionArrays &versions = {}) {
  runtime::KeptLaunch launch{&code,
                             packSlots(call, code, arrays, versions),
                             {},
                             kernel.options.deterministic};
  for (size_t i = 0; i < arrays.size(); ++i)
    if (code.parameters[i].role == Role::Adjoint)
      launch.adjoints.push_back(arrays[i]->buffer);
  return launch;
}

/// Without checks, and without a word to anybody.
static void execute(const KernelImpl &kernel, Mode mode, const Call &call,
                    Compiled &compiled, const VersionArrays &versions,
                    Arrays arrays) {
  const KernelCode &code = *compiled.code;
  provide(arrays, call, code);
  Result<runtime::LaunchReport> report = call.device->launch(
      launchOf(kernel, call, code, arrays, versions).request());
  bumpVersions(mode, code, arrays);
  compiled.tapeBytes = checked(std::move(report)).tapeBytes;
  compiled.versionBytes = versions.bytes();
}

void detail::run(const KernelImpl &kernel, Mode mode, const Call &call,
                 Compiled &compiled, const VersionArrays &versions) {
  const KernelCode &code = *compiled.code;
  Arrays arrays = givenArrays(call, code);
  requireApart(kernel, code, arrays);
  announceReads(kernel, mode, code, arrays);
  announceWrites(kernel, mode, call, code, arrays);
  execute(kernel, mode, call, compiled, versions, std::move(arrays));
}

static std::vector<uint64_t> identitiesOf(const Call &call) {
  std::vector<uint64_t> identities;
  for (const BoundArgument &argument : call.arguments)
    identities.push_back(argument.array ? argument.array->identity : 0);
  return identities;
}

/// In a graph: what it will be, counted from the beginning of a replay.
static uint64_t versionOf(const ArrayStorage &array) {
  Capture *capture = Capture::current();
  return capture ? capture->writes[&array] : array.version.load();
}

static void remember(KernelImpl &kernel, const Call &call, PastLaunch past) {
  if (Capture *capture = Capture::current())
    capture->past[{&kernel, identitiesOf(call)}] = std::move(past);
  else
    kernel.remember(identitiesOf(call), std::move(past));
}

static std::optional<PastLaunch> recall(KernelImpl &kernel, const Call &call) {
  Capture *capture = Capture::current();
  if (!capture)
    return kernel.recall(identitiesOf(call));
  auto found = capture->past.find({&kernel, identitiesOf(call)});
  return found == capture->past.end() ? std::nullopt
                                      : std::optional(found->second);
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
  past.versions.resize(call.arguments.size());
  for (const BoundArgument &argument : call.arguments)
    past.scalars.push_back(argument.bits);
  for (runtime::Parameter parameter : code.parameters)
    if (auto array = storageOf(call, parameter))
      past.versions[parameter.argument].push_back(versionOf(*array));
  remember(kernel, call, std::move(past));
}

namespace {
/// Is memory as the last launch of a kernel left it, where a gradient reloads
/// what the kernel stored?
class ReplayCheck {
public:
  ReplayCheck(KernelImpl &kernel, const Call &call, const KernelCode &code,
              unsigned order)
      : kernel(kernel), call(call), code(code), order(order) {}

  void run() {
    if (!code.overwritten.empty())
      raise(ErrorCode::CannotReplay, code.overwritten);
    while (reloaded < code.accesses.size() && !code.accesses[reloaded].reloaded)
      ++reloaded;
    if (reloaded == code.accesses.size())
      return;
    std::optional<PastLaunch> past = recall(kernel, call);
    if (!past)
      refuse(kernel.title() + " has not run on these arrays" +
             (Capture::current() ? " in this graph" : ""));
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (!call.arguments[i].array)
        checkScalar(i, past->scalars[i]);
      else if (code.accesses[i].needed)
        checkArray(i, past->versions[i]);
    }
  }

private:
  [[noreturn]] void refuse(const std::string &situation) const {
    std::string what = "what the kernel stored in " + nameOf(kernel, reloaded);
    std::string launch = "jvp";
    for (unsigned k = 1; k < order; ++k)
      launch = "tangent()." + launch;
    raise(ErrorCode::CannotReplay,
          situation + ", and this gradient reads back " + what +
              (order ? " and its tangent; launch `" + launch + "`"
                     : "; run the kernel") +
              " on these arguments right before" +
              (order ? "" : ", or record both with a Tape"));
  }

  void checkScalar(size_t i, uint64_t bits) const {
    if (call.arguments[i].bits != bits)
      refuse(argumentText(kernel, i) +
             " has another value than when the kernel last ran");
  }

  void checkArray(size_t i, const std::vector<uint64_t> &versions) const {
    if (call.arguments[i].array->strangers > 0 && !Capture::current())
      refuse(argumentText(kernel, i) +
             " has memory that others may have written since the kernel last "
             "ran");
    runtime::Parameter parameter{Role::Primal, static_cast<uint32_t>(i)};
    for (; parameter.order <= order; ++parameter.order) {
      std::shared_ptr<ArrayStorage> array = storageOf(call, parameter);
      if (!array)
        return;
      const char *tangent = parameter.order ? ": its tangent" : "";
      if (parameter.order >= versions.size())
        refuse(argumentText(kernel, i) + tangent +
               " was not computed when the kernel last ran");
      if (versionOf(*array) != versions[parameter.order])
        refuse(argumentText(kernel, i) + tangent +
               " was written since the kernel last ran");
    }
  }

  KernelImpl &kernel;
  const Call &call;
  const KernelCode &code;
  const unsigned order;
  size_t reloaded = 0;
};
} // namespace

/// The adjoints and tangents that a launch writes.
static Arrays derivativesOf(Mode mode, const Call &call,
                            const KernelCode &code) {
  Arrays arrays;
  for (runtime::Parameter parameter : code.parameters)
    if (!parameter.isArgument() && changes(mode, code, parameter))
      arrays.push_back(storageOf(call, parameter));
  return arrays;
}

static void recordGradient(const KernelImpl &kernel, const Call &call,
                           const KernelCode &code) {
  if (recordingTape())
    recordDerivatives("the gradient of " + kernel.title(),
                      derivativesOf(Mode::Gradient, call, code));
}

namespace {
/// Copies of what a launch is going to write; puts them back, and takes the
/// writes out of the version counters, when it ends.
class WrittenArrays {
public:
  WrittenArrays(const Call &call, const KernelCode &code) {
    for (runtime::Parameter parameter : code.parameters)
      if (code.accesses[parameter.argument].written)
        if (std::shared_ptr<ArrayStorage> array = storageOf(call, parameter))
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
    auto copy = checked(runtime::makeArray(array->device, array->dtype,
                                           array->extents, false, false));
    checked(array->device->copy(copy->buffer, array->buffer));
    arrays.push_back({array, copy, array->version.load()});
  }

  std::vector<Kept> arrays;
};
} // namespace

/// Others may have written arguments since they were used last.
static void noteStrangersOf(const Call &call) {
  if (Capture::current())
    return;
  for (const BoundArgument &argument : call.arguments)
    if (argument.array)
      noteStrangers(*argument.array);
}

void detail::launchFromInitialState(const std::shared_ptr<KernelImpl> &kernel,
                                    Chain chain, const Call &call) {
  noteStrangersOf(call);
  requireNoCapture("take the gradient of " + kernel->title() +
                   " from the initial state, which copies arrays");
  compiler::Derivation derivation = derivationOf(*kernel, chain, call);
  requireSomeActive(*kernel, derivation);
  Compiled &gradient = kernel->compiled(derivation);
  requireOutputs(*kernel, *gradient.code, call);
  checkCompanions(*kernel, call, *gradient.code);
  derivation.mode = compiler::Mode::Recording;
  Compiled &recording = kernel->compiled(derivation);
  requireOutputs(*kernel, *recording.code, call);
  Arrays arrays = givenArrays(call, *recording.code);
  requireApart(*kernel, *recording.code, arrays);
  if (CustomScope::isActive()) {
    noteReads(*kernel, Mode::Recording, call, *recording.code);
    noteWrites(*kernel, Mode::Gradient, call, *gradient.code);
  }
  announceReads(*kernel, Mode::Recording, *recording.code, arrays);
  WrittenArrays written(call, *recording.code);
  VersionArrays versions(call, *gradient.code,
                         std::make_shared<runtime::CopyMemory>(call.device));
  execute(*kernel, Mode::Recording, call, recording, versions, arrays);
  run(*kernel, Mode::Gradient, call, gradient, versions);
  recordGradient(*kernel, call, *gradient.code);
}

/// A primal or tangent launch as an entry of `tape`.
static void launchOn(TapeImpl &tape, const std::shared_ptr<KernelImpl> &kernel,
                     Chain chain, const Call &call, Compiled &compiled) {
  auto entry =
      std::make_unique<LaunchEntry>(kernel, chain, call, compiled, tape);
  entry->derivatives = derivativesOf(chain.mode, call, *compiled.code);
  LaunchEntry &launched = *entry;
  recordEntry(tape, std::move(entry), [&] { launched.run(); });
}

/// A launch as a step of a graph.
static void captureLaunch(Capture &capture,
                          const std::shared_ptr<KernelImpl> &kernel, Mode mode,
                          const Call &call, const KernelCode &code) {
  Arrays given = givenArrays(call, code), all = given;
  requireApart(*kernel, code, given);
  provide(all, call, code);
  auto before = [=, &code] {
    if (CustomScope::isActive()) {
      noteReads(*kernel, mode, call, code);
      noteWrites(*kernel, mode, call, code);
    }
    announceReads(*kernel, mode, code, given);
    announceWrites(*kernel, mode, call, code, given);
  };
  auto after = [=, &code] {
    bumpVersions(mode, code, all);
    if (mode != Mode::Gradient)
      rememberLaunch(*kernel, call, code);
  };
  capture.append(*call.device,
                 {launchOf(*kernel, call, code, all), before, after});
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] && changes(mode, code, code.parameters[i]))
      ++capture.writes[given[i].get()];
  if (mode != Mode::Gradient)
    rememberLaunch(*kernel, call, code);
}

void detail::launch(const std::shared_ptr<KernelImpl> &kernel, Chain chain,
                    const Call &call) {
  noteStrangersOf(call);
  compiler::Derivation derivation = derivationOf(*kernel, chain, call);
  requireSomeActive(*kernel, derivation);
  Compiled &compiled = kernel->compiled(derivation);
  requireOutputs(*kernel, *compiled.code, call);
  checkCompanions(*kernel, call, *compiled.code);
  if (CustomScope::isActive()) {
    noteReads(*kernel, chain.mode, call, *compiled.code);
    noteWrites(*kernel, chain.mode, call, *compiled.code);
  }
  if (chain.mode == Mode::Gradient)
    ReplayCheck(*kernel, call, *compiled.code, chain.order).run();
  if (Capture *capture = Capture::current())
    return captureLaunch(*capture, kernel, chain.mode, call, *compiled.code);
  if (chain.mode == Mode::Gradient) {
    run(*kernel, chain.mode, call, compiled);
    return recordGradient(*kernel, call, *compiled.code);
  }
  if (std::shared_ptr<TapeImpl> tape = recordingTape())
    launchOn(*tape, kernel, chain, call, compiled);
  else
    run(*kernel, chain.mode, call, compiled);
  rememberLaunch(*kernel, call, *compiled.code);
}
