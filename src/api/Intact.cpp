#include "api/Intact.h"

#include "api/Checked.h"
#include "api/GraphImpl.h"
#include "api/LaunchCode.h"
#include "api/PastLaunch.h"

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

/// The code that compares, or null if there is none.
static Compiled *checkOf(const BoundLaunch &gradient) {
  const Call &call = gradient.call;
  compiler::Derivation derivation = derivationOf(call, gradient.chain);
  derivation.mode = compiler::Mode::Check;
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
  std::optional<Failure> obstacle = findObstacle(gradient);
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
