#include "api/Intact.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"
#include "api/LaunchCode.h"
#include "api/PastLaunch.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

/// Why there is no such code, if it is because of what the kernel overwrites.
static std::optional<Failure>
refusalOf(const Call &call, const compiler::Derivation &derivation) {
  try {
    call.kernel->compiled(derivation);
  } catch (const Error &error) {
    if (error.code() == ErrorCode::CannotReplay)
      return Failure{error.code(), error.what()};
    throw;
  }
  return std::nullopt;
}

compiler::Derivation detail::derivationByHand(const Call &call, Chain chain) {
  compiler::Derivation derivation = derivationOf(call, chain);
  if (chain.mode == Mode::Gradient && !chain.order && !Capture::current())
    derivation.fromMemory = refusalOf(call, derivation).has_value();
  return derivation;
}

/// The code that compares, or null if there is none.
static Compiled *checkOf(const BoundLaunch &gradient) {
  const Call &call = gradient.call;
  compiler::Derivation derivation = derivationOf(call, gradient.chain);
  derivation.mode = compiler::Mode::Check;
  derivation.fromMemory = gradient.fromMemory;
  try {
    return &call.kernel->compiled(derivation);
  } catch (const Error &error) {
    if (error.code() != ErrorCode::CannotReplay)
      throw;
    return nullptr;
  }
}

/// What it has found; empty: memory is as it must be.
static std::string difference(const Call &call, Compiled &code) {
  using Part = AccessSet::Part;
  BoundLaunch check(call, {Mode::Check}, code);
  check.quiet = true;
  check.tellCustomLaunches(Part::Reads);
  check.tellWatchers(Part::Reads);
  try {
    check.execute({});
  } catch (const Error &error) {
    if (error.code() != ErrorCode::CannotReplay)
      throw;
    return error.what();
  }
  return "";
}

VersionArrays detail::requireReplayable(const BoundLaunch &gradient) {
  std::optional<Failure> obstacle =
      gradient.fromMemory
          ? refusalOf(gradient.call,
                      derivationOf(gradient.call, gradient.chain))
          : findObstacle(gradient);
  if (!obstacle)
    return {};
  const Call &call = gradient.call;
  if (Capture::current() || gradient.chain.order)
    raise(*obstacle);
  if (call.kernel->options.gradients == Gradients::Checked) {
    Compiled *check = checkOf(gradient);
    if (!check)
      raise(*obstacle);
    if (std::string found = difference(call, *check); !found.empty())
      raise(obstacle->code, obstacle->text + "\n" + found);
  }
  return VersionArrays::ofMemory(call, gradient.code);
}
