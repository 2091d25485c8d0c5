#include "costate/kernel.h"

#include "api/Checked.h"
#include "api/KernelImpl.h"
#include "api/Launch.h"
#include "runtime/Text.h"
#include "syntax/Trace.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

static compiler::Options optionsOf(const KernelOptions &options) {
  return {options.debug, options.deterministic, options.fast_math};
}

static KernelOptions withEnvironment(KernelOptions options) {
  const char *debug = std::getenv("COSTATE_DEBUG");
  options.debug |= debug && *debug && std::string(debug) != "0";
  return options;
}

Kernel detail::make_kernel(const TracedKernel &traced, KernelOptions options) {
  if (traced.failure)
    raise(*traced.failure);
  options = withEnvironment(options);
  return Kernel(std::make_shared<KernelImpl>(
      checked(compiler::Program::lower(traced.kernel, optionsOf(options))),
      options, traced.kernel.loc));
}

Kernel Kernel::from_ir(const std::string &text, const std::string &name,
                       KernelOptions options, const std::string &file) {
  options = withEnvironment(options);
  return Kernel(std::make_shared<KernelImpl>(
      checked(compiler::Program::parse(text, file, name, optionsOf(options))),
      options, Loc()));
}

static KernelImpl &implOf(const std::shared_ptr<KernelImpl> &impl) {
  if (!impl)
    raise(ErrorCode::BadArgument,
          "this kernel is empty; make one with kernel(name, lambda)");
  return *impl;
}

void Kernel::launch_with(Mode mode,
                         std::span<const ArgumentValue> values) const {
  Call call = bind(implOf(impl), values);
  detail::launch(impl, mode, call);
}

void Kernel::grad_with(InitialState,
                       std::span<const ArgumentValue> values) const {
  gradFromInitialState(impl, bind(implOf(impl), values));
}

const std::string &Kernel::name() const { return implOf(impl).program->name(); }
std::string Kernel::report() const { return implOf(impl).report(); }

std::vector<ArgumentType> Kernel::arguments() const {
  std::vector<ArgumentType> types;
  for (const syntax::Argument &argument : implOf(impl).program->arguments())
    types.push_back({argument.type, argument.rank});
  return types;
}

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
  }
  return compiler::Mode::Primal;
}

std::string Kernel::ir(Mode mode, bool llvm) const {
  std::vector<bool> active;
  for (const ArgumentType &type : arguments())
    active.push_back(type.rank >= 0 && isFloat(type.dtype));
  return checked(implOf(impl).program->print(compilerMode(mode), active, llvm));
}

Compiled &KernelImpl::compiled(Mode mode, const std::vector<bool> &active) {
  Compiled *entry;
  {
    std::lock_guard lock(mutex);
    entry = &codes[{mode, active}];
  }
  std::lock_guard lock(entry->mutex);
  if (!entry->code) {
    auto start = std::chrono::steady_clock::now();
    entry->code = checked(program->compile(compilerMode(mode), active));
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

std::string KernelImpl::title() const {
  std::string text = "kernel `" + program->name() + "`";
  if (loc.line)
    text += std::string(" (") + loc.file + ":" + std::to_string(loc.line) + ")";
  return text;
}

std::string detail::typeText(const syntax::Argument &argument) {
  std::string name = nameOf(argument.type);
  return argument.isArray()
             ? name + " array of rank " + std::to_string(argument.rank)
             : name + " scalar";
}

static std::string codeText(Mode mode, const std::vector<bool> &active,
                            const Compiled &compiled) {
  const char *names[] = {"primal", "gradient", "tangent"};
  std::string text = std::string("  ") + names[static_cast<int>(mode)];
  std::string with;
  for (size_t i = 0; i < active.size(); ++i)
    if (active[i])
      with += (with.empty() ? "" : ", ") + std::to_string(i + 1);
  if (!with.empty())
    text += " with respect to arguments " + with;
  char time[32];
  std::snprintf(time, sizeof time, "%.1f ms", compiled.milliseconds);
  text += std::string(": compiled in ") + time + ", " +
          runtime::bytesText(compiled.code->objectBytes);
  if (mode == Mode::Gradient)
    text += ", " + runtime::bytesText(compiled.code->recordBytes) +
            " per record, largest tape of the last launch " +
            runtime::bytesText(compiled.tapeBytes.load());
  return text + "\n";
}

std::string KernelImpl::report() {
  std::string text = title() + "\n  arguments: ";
  const std::vector<syntax::Argument> &arguments = program->arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", " : "") + typeText(arguments[i]);
  text += "\n";
  std::lock_guard lock(mutex);
  for (auto &[key, compiled] : codes) {
    std::lock_guard entryLock(compiled.mutex);
    if (compiled.code)
      text += codeText(key.first, key.second, compiled);
  }
  return text;
}
