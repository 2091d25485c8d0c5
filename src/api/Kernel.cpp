#include "costate/kernel.h"

#include "api/Cache.h"
#include "api/Checked.h"
#include "api/Environment.h"
#include "api/KernelImpl.h"
#include "api/Launch.h"
#include "base/HostCode.h"
#include "costate/cache.h"
#include "costate/detail/bound_arguments.h"
#include "runtime/Interrupt.h"
#include "syntax/Trace.h"

#include <atomic>
#include <chrono>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

static compiler::Options optionsOf(const KernelOptions &options, Calls calls) {
  compiler::Options result{options.debug, options.deterministic,
                           options.fast_math, options.find_nan};
  result.calls = calls;
  result.lanes = static_cast<unsigned>(options.lanes);
  return result;
}

static KernelOptions withEnvironment(KernelOptions options) {
  checked(chosenVectors());
  checked(wantsQuickCode());
  options.debug |= isOn("COSTATE_DEBUG");
  options.find_nan |= isOn("COSTATE_FIND_NAN");
  if (options.lanes == 0)
    options.lanes = numberIn("COSTATE_LANES");
  for (int lanes : {0, 1, 2, 4, 8, 16, 32, 64})
    if (options.lanes == lanes)
      return options;
  raise({ErrorCode::BadKernel,
         "a kernel cannot have " + std::to_string(options.lanes) +
             " lanes; use a power of 2 up to 64, or 0 for what pays"});
}

Kernel detail::make_kernel(const TracedKernel &traced, KernelOptions options) {
  return make_kernel(traced, options, checked(chosenCalls()));
}

Kernel detail::make_kernel(const TracedKernel &traced, KernelOptions options,
                           Calls calls) {
  if (traced.failure)
    raise(*traced.failure);
  options = withEnvironment(options);
  ForeignWork work;
  checked(checkNotTorn());
  std::shared_ptr<cache::Store> cache = currentCache();
  auto impl = std::make_shared<KernelImpl>(
      checked(compiler::Program::lower(traced.outlined(calls),
                                       optionsOf(options, calls), cache)),
      cache, options, traced.kernel.loc);
  impl->limit = traced.kernel.limit;
  return Kernel(std::move(impl));
}

Kernel Kernel::from_ir(const std::string &text, const std::string &name,
                       KernelOptions options, const std::string &file) {
  options = withEnvironment(options);
  ForeignWork work;
  checked(checkNotTorn());
  std::shared_ptr<cache::Store> cache = currentCache();
  return Kernel(std::make_shared<KernelImpl>(
      checked(compiler::Program::parse(
          text, file, name, optionsOf(options, checked(chosenCalls())), cache)),
      cache, options, Loc()));
}

/// Throws if derivatives of the order of `chain` are not known.
static void checkOrder(const KernelImpl &kernel, Chain chain) {
  unsigned order = chain.order + (chain.mode == Mode::Gradient);
  const syntax::OrderLimit &limit = kernel.limit;
  if (limit.order && order > static_cast<unsigned>(limit.order))
    raise(ErrorCode::NotDifferentiable,
          kernel.title() + " has no derivative of order " +
              std::to_string(order) + ": that of `" + limit.what + "` at " +
              limit.loc.file + ":" + std::to_string(limit.loc.line) +
              " is not known; derivatives up to order " +
              std::to_string(limit.order) + " are");
}

/// The chain with one more derivative.
static Chain extended(const KernelImpl &kernel, Chain chain, Mode mode) {
  bool reverses = mode == Mode::Gradient || mode == Mode::Recording;
  if (reverses && (chain.mode == Mode::Gradient || chain.order))
    raise(ErrorCode::NotDifferentiable,
          kernel.title() + ": a " +
              (chain.mode == Mode::Gradient ? "gradient" : "tangent") +
              " has no gradient; the tangent of the gradient, "
              "`k.gradient().jvp(...)`, gives second derivatives: the Hessian "
              "times `.dual()`");
  if (reverses)
    chain.mode = mode;
  else if (mode == Mode::Tangent)
    ++chain.order;
  checkOrder(kernel, chain);
  return chain;
}

static Chain extended(InitialState, const KernelImpl &kernel, Chain chain,
                      Mode mode) {
  Chain wanted = extended(kernel, chain, mode);
  if (wanted.mode != Mode::Gradient)
    raise(
        ErrorCode::BadArgument,
        kernel.title() +
            ": only a gradient runs from the initial state; launch the kernel "
            "or its tangent without `initial_state`");
  return wanted;
}

void Kernel::launch_with(Mode mode,
                         std::span<const ArgumentValue> values) const {
  Busy busy;
  checked(checkNotTorn());
  Chain wanted = extended(*impl, chain, mode);
  detail::launch(detail::bind(impl.get(), values), wanted);
}

void Kernel::launch_with(InitialState state, Mode mode,
                         std::span<const ArgumentValue> values) const {
  Busy busy;
  checked(checkNotTorn());
  Chain wanted = extended(state, *impl, chain, mode);
  launchFromInitialState(detail::bind(impl.get(), values), wanted);
}

/// Has launches of its own.
class BoundArguments::User {
public:
  explicit User(BoundArguments &arguments)
      : arguments(arguments), isFirst(!arguments.isUsed.test_and_set()),
        launches(isFirst ? arguments.own
                         : std::make_shared<KeptLaunches>(*arguments.given)) {}
  ~User() {
    if (isFirst)
      arguments.isUsed.clear();
  }
  User(const User &) = delete;
  User &operator=(const User &) = delete;

private:
  BoundArguments &arguments;
  const bool isFirst;

public:
  const std::shared_ptr<KeptLaunches> launches;
};

void BoundArguments::launch(Mode mode, std::span<const ArgumentValue> scalars) {
  Busy busy;
  checked(checkNotTorn());
  Chain wanted = extended(*kernel.shared(), kernel.derivation(), mode);
  User user(*this);
  setScalars(user.launches->call, scalars);
  user.launches->launch(wanted);
}

void BoundArguments::launch(InitialState state, Mode mode,
                            std::span<const ArgumentValue> scalars) {
  Busy busy;
  checked(checkNotTorn());
  Chain wanted = extended(state, *kernel.shared(), kernel.derivation(), mode);
  User user(*this);
  setScalars(user.launches->call, scalars);
  user.launches->launchFromInitialState(wanted);
}

const std::string &Kernel::name() const { return impl->program->name(); }
std::string Kernel::report() const { return impl->report(); }

std::vector<ArgumentType> Kernel::arguments() const {
  std::vector<ArgumentType> types;
  for (const syntax::Argument &argument : impl->program->arguments())
    types.push_back({argument.type, argument.rank});
  return types;
}

Kernel Kernel::derived(Mode mode) const {
  return Kernel(impl.get(), extended(*impl, chain, mode));
}

void costate::set_interrupt_check(bool (*check)()) {
  runtime::setInterruptCheck(check);
}

static std::atomic<CompilationWatch> compilationWatch = nullptr;

void costate::watch_compilation(CompilationWatch watch) {
  compilationWatch = watch;
}

namespace {
/// As long as it lives, code of a kernel is looked for.
class WatchedCompilation {
public:
  explicit WatchedCompilation(const std::string &kernel)
      : kernel(kernel), watch(compilationWatch) {
    if (watch)
      watch(kernel, true);
  }
  ~WatchedCompilation() {
    if (watch)
      watch(kernel, false);
  }
  WatchedCompilation(const WatchedCompilation &) = delete;

private:
  const std::string &kernel;
  const CompilationWatch watch;
};
} // namespace

static compiler::Mode compilerMode(Mode mode) {
  switch (mode) {
  case Mode::Primal:
    return compiler::Mode::Primal;
  case Mode::Gradient:
    return compiler::Mode::Gradient;
  case Mode::Tangent:
    return compiler::Mode::Tangent;
  case Mode::Recording:
    return compiler::Mode::Recording;
  case Mode::Check:
    return compiler::Mode::Check;
  }
  return compiler::Mode::Primal;
}

std::string Kernel::ir(Mode mode, bool llvm) const {
  Chain wanted = extended(*impl, chain, mode);
  compiler::Derivation derivation;
  derivation.mode = compilerMode(wanted.mode);
  derivation.order = wanted.order;
  for (const ArgumentType &type : arguments())
    derivation.adjoint.push_back(type.rank >= 0 && isFloat(type.dtype));
  derivation.tangent = derivation.adjoint;
  ForeignWork work;
  return checked(impl->program->print(derivation, llvm));
}

KernelImpl::~KernelImpl() {
  ForeignWork work;
  codes.clear();
  program.reset();
}

Compiled &KernelImpl::compiled(Mode mode, const std::vector<bool> &active,
                               const runtime::Device &device) {
  compiler::Derivation derivation(compilerMode(mode), active);
  derivation.target = device.info().target;
  return compiled(derivation);
}

static void noteCompilation(const KernelImpl &kernel,
                            const compiler::Derivation &derivation,
                            bool isLoaded, int64_t begin) {
  profile::Span span = kernel.span(profile::Kind::Compile,
                                   derivation.mode == compiler::Mode::Gradient,
                                   derivation.order);
  span.name = (isLoaded ? "load " : "compile ") + span.name;
  profile::add(span, begin, profile::now());
}

Compiled &KernelImpl::compiled(const compiler::Derivation &derivation) {
  Compiled *entry;
  {
    std::lock_guard lock(mutex);
    entry = &codes[derivation];
  }
  std::lock_guard lock(entry->mutex);
  checked(checkNotTorn());
  if (entry->failure)
    raise(*entry->failure);
  if (!entry->code) {
    WatchedCompilation watched(program->name());
    ForeignWork work;
    auto start = std::chrono::steady_clock::now();
    int64_t begin = profile::now();
    Result<runtime::KernelCode> code = program->compile(derivation);
    if (profile::isOn())
      noteCompilation(*this, derivation, code && code->isLoaded, begin);
    if (!code && code.error().code == ErrorCode::OutOfMemory)
      raise(code.error()); // there may be memory another time
    if (!code)
      raise(entry->failure.emplace(code.error()));
    entry->code = std::move(*code);
    entry->milliseconds = std::chrono::duration<double, std::milli>(
                              std::chrono::steady_clock::now() - start)
                              .count();
  }
  return *entry;
}

void KernelImpl::remember(const std::vector<uint64_t> &identities,
                          PastLaunch launch) {
  constexpr size_t most = 256;
  std::lock_guard lock(mutex);
  past[identities] = std::move(launch);
  if (past.size() >
      most) // identities grow with age: the first has the oldest array
    past.erase(past.begin()->first == identities ? std::next(past.begin())
                                                 : past.begin());
}

std::optional<PastLaunch>
KernelImpl::recall(const std::vector<uint64_t> &identities) {
  std::lock_guard lock(mutex);
  auto found = past.find(identities);
  return found == past.end() ? std::nullopt : std::optional(found->second);
}

std::string detail::sourceText(Loc loc) {
  return loc.line ? std::string(" (") + loc.file + ":" +
                        std::to_string(loc.line) + ")"
                  : "";
}

std::string KernelImpl::title() const {
  return "kernel `" + program->name() + "`" + sourceText(loc);
}

profile::Span KernelImpl::span(profile::Kind kind, bool isGradient,
                               unsigned order) const {
  std::string name;
  for (unsigned k = 0; k < order; ++k)
    name += "tangent of ";
  name += (isGradient ? "gradient of " : "") + program->name();
  std::string source =
      loc.line ? std::string(loc.file) + ":" + std::to_string(loc.line) : "";
  return {kind, name, source};
}

/// ` whose extents are (any, 3)`; empty if none is known.
static std::string extentsText(const syntax::Argument &argument) {
  std::string text;
  for (int64_t extent : argument.extents)
    text += (text.empty() ? " whose extents are (" : ", ") +
            (extent < 0 ? "any" : std::to_string(extent));
  return text.empty() ? text : text + ")";
}

std::string detail::typeText(const syntax::Argument &argument) {
  std::string name = nameOf(argument.type);
  if (argument.form.count)
    return argument.form.name + " array of rank " +
           std::to_string(argument.rank - 1) +
           (argument.form.layout == SoA ? " in SoA layout" : "");
  return argument.isArray()
             ? name + " array of rank " + std::to_string(argument.rank) +
                   extentsText(argument)
             : name + " scalar";
}
