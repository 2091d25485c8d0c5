#include "api/LaunchCode.h"

#include "api/Checked.h"

#include <algorithm>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::KernelCode;
using Role = runtime::Parameter::Role;

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
static unsigned directionsOf(const Call &call) {
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
            argumentText(*call.kernel, i) + " has tangents in " +
                directionsText(array->directions) + ", but " +
                nameOf(*call.kernel, *first) + " in " +
                directionsText(expected) +
                "; make all arrays with the same `directions`");
  }
  return first ? static_cast<unsigned>(call.arguments[*first].array->directions)
               : 0;
}

static void requireSome(const KernelImpl &kernel,
                        const std::vector<bool> &active, const char *companion,
                        const char *flag) {
  if (std::find(active.begin(), active.end(), true) == active.end())
    raise(ErrorCode::MissingGradient,
          kernel.title() + ": no argument has a " + companion +
              "; make the arrays to differentiate with device.array<T>(..., " +
              flag + ")");
}

compiler::Derivation detail::derivationOf(const Call &call, Chain chain) {
  compiler::Derivation derivation;
  derivation.target = call.device->info().target;
  if (chain.order) {
    derivation.tangent = activeArguments(Mode::Tangent, call);
    derivation.directions = directionsOf(call);
  }
  derivation.order = chain.order;
  if (chain.mode == Mode::Gradient) {
    derivation.mode = compiler::Mode::Gradient;
    derivation.adjoint = activeArguments(Mode::Gradient, call);
    requireSome(*call.kernel, derivation.adjoint, "gradient", "grad");
  }
  if (chain.order)
    requireSome(*call.kernel, derivation.tangent, "tangent", "dual");
  return derivation;
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
static void requireOutputs(const Call &call, const KernelCode &code) {
  if (code.missing.empty())
    return;
  runtime::Parameter missing = code.missing.front();
  bool isGradient = missing.role == Role::Adjoint;
  bool isOfGradient = isGradient && missing.order;
  std::string has = isOfGradient ? ": its gradient has no tangent"
                    : isGradient ? " has no gradient"
                                 : " has no tangent";
  std::string flag = isOfGradient ? "grad | dual"
                     : isGradient ? "grad"
                                  : "dual";
  raise(ErrorCode::MissingGradient,
        argumentText(*call.kernel, missing.argument) + has +
            ", but the kernel " + (isOfGradient ? "adds" : "writes") +
            " values to it that depend on arrays with one; " +
            remedyFor(*call.arguments[missing.argument].array, flag));
}

static std::string placeText(Loc loc) {
  return std::string(loc.file) + ":" + std::to_string(loc.line) + ":" +
         std::to_string(loc.column);
}

void detail::checkCompanions(const Call &call, const KernelCode &code) {
  const KernelImpl &kernel = *call.kernel;
  for (size_t k = 0; k < call.arguments.size(); ++k) {
    const std::shared_ptr<ArrayStorage> &array = call.arguments[k].array;
    if (!array || !array->isCompanion)
      continue;
    Loc load = code.accesses[k].passedOn;
    bool isNamed = !kernel.program->arguments()[k].form.name.empty();
    if (!load.line || !isNamed)
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

Compiled &detail::codeFor(const Call &call,
                          const compiler::Derivation &derivation) {
  Compiled &compiled = call.kernel->compiled(derivation);
  requireOutputs(call, *compiled.code);
  checkCompanions(call, *compiled.code);
  return compiled;
}
