#include "property/Oracle.h"

#include <functional>
#include <numeric>
#include <tuple>

namespace costate::property {

using compiler::Mode;
using runtime::Parameter;
using Role = Parameter::Role;

/// What a copy of argument `k`, or a tangent of one, starts with.
static interpreter::HostArray copyOf(const Memory &memory, uint32_t k,
                                     uint32_t order) {
  interpreter::HostArray copy = memory[k];
  DType type = storedArrays()[k].type;
  if (order)
    copy.bytes.resize(copy.bytes.size() / sizeOf(type) *
                      sizeOf(derivativeOf(type)));
  return copy;
}

/// More operations than any program of the generator needs.
static constexpr uint64_t mostOperations = 50'000'000;

/// What the kernels of one gradient or tangent work on.
struct Oracle::State {
  Memory &memory;
  Variant variant = {};
  Derivatives derivatives = {};
  /// By argument, part (-1: scratch, -2: owners of elements) and order.
  std::map<std::tuple<uint32_t, int, uint32_t>, interpreter::HostArray>
      versions = {};
};

Oracle::Oracle(std::shared_ptr<compiler::Program> program, const Inputs &inputs,
               bool compiledFunctions)
    : program(std::move(program)), inputs(inputs),
      compiledFunctions(compiledFunctions) {}

compiler::Derivation Oracle::derivation(Mode mode, unsigned order) const {
  std::vector<bool> active = inputs.active;
  active.resize(active.size() + 2); // p and q
  compiler::Derivation derivation;
  derivation.mode = mode;
  derivation.order = order;
  if (mode != Mode::Primal)
    derivation.adjoint = active;
  if (order)
    derivation.tangent = active;
  return derivation;
}

Oracle::Result &Oracle::code(Mode mode, unsigned order) {
  auto known = codes.find({mode, order});
  if (known != codes.end())
    return known->second;
  auto code = program->interpret(derivation(mode, order), compiledFunctions);
  return codes.emplace(std::pair(mode, order), code).first->second;
}

std::optional<Failure> Oracle::refusal() {
  Result &gradient = code(Mode::Gradient);
  return gradient ? std::nullopt : std::optional(gradient.error());
}

bool Oracle::overwrites() {
  return !code(Mode::Gradient)->code.overwritten.empty();
}

namespace {

/// The derivative arrays of one run, while it runs.
class Converted {
public:
  explicit Converted(Derivatives &derivatives) : derivatives(derivatives) {}

  interpreter::HostArray *at(const Parameter &parameter, const Memory &memory) {
    uint32_t k = parameter.argument;
    interpreter::HostArray &array =
        arrays[{parameter.role, parameter.order}][k];
    array.extents = memory[k].extents;
    fromDoubles(array, derivativeOf(property::storedArrays()[k].type),
                values(parameter));
    return &array;
  }

  void copyBack() {
    for (auto &[kind, byArgument] : arrays)
      for (auto &[k, array] : byArgument)
        derivatives.at(kind)[k] =
            toDoubles(array, derivativeOf(property::storedArrays()[k].type));
  }

private:
  const std::vector<double> &values(const Parameter &parameter) {
    return derivatives.at(
        {parameter.role, parameter.order})[parameter.argument];
  }

  Derivatives &derivatives;
  std::map<std::pair<Role, uint32_t>,
           std::map<uint32_t, interpreter::HostArray>>
      arrays;
};

/// What tells apart the arrays that belong to one argument.
int partOf(const Parameter &parameter) {
  switch (parameter.role) {
  case Role::Scratch:
    return -1;
  case Role::Owners:
    return -2;
  default:
    return static_cast<int>(parameter.part);
  }
}

interpreter::HostArray ownersOf(const interpreter::HostArray &array) {
  interpreter::HostArray owners{array.extents, {}};
  int64_t size = std::accumulate(array.extents.begin(), array.extents.end(),
                                 int64_t(1), std::multiplies<>());
  owners.bytes.resize(static_cast<size_t>(size) * sizeof(int64_t));
  return owners;
}

} // namespace

interpreter::InterpreterReport Oracle::run(Mode mode, unsigned order,
                                           State &state) {
  Result &made = code(mode, order);
  if (!made)
    throw Stopped{made.error()};
  Converted derivatives(state.derivatives);
  auto arrayOf = [&](const Parameter &of) {
    if (of.isArgument())
      return &state.memory[of.argument];
    if (of.role == Role::Primal || of.role == Role::Adjoint)
      return derivatives.at(of, state.memory);
    interpreter::HostArray like =
        of.role == Role::Owners ? ownersOf(state.memory[of.argument])
                                : copyOf(state.memory, of.argument, of.order);
    return &state.versions
                .try_emplace({of.argument, partOf(of), of.order}, like)
                .first->second;
  };
  std::vector<interpreter::InterpreterArgument> arguments;
  for (const Parameter &parameter : made->code.parameters) {
    bool isArray = parameter.rank >= 0;
    arguments.push_back(
        {isArray ? arrayOf(parameter) : nullptr, inputs.q, inputs.p});
  }
  auto report =
      made->interpreter.run(arguments, {.order = state.variant.order,
                                        .roundings = state.variant.roundings,
                                        .steps = mostOperations});
  if (!report)
    throw Stopped{report.error(), mode == Mode::Primal};
  derivatives.copyBack();
  return *report;
}

interpreter::InterpreterReport Oracle::primal(Memory &memory, Variant variant) {
  State state{memory, variant};
  return run(Mode::Primal, 0, state);
}

void Oracle::tangent(Memory &memory, Values &tangents, Variant variant) {
  State state{memory, variant};
  state.derivatives[{Role::Primal, 1}] = tangents;
  run(Mode::Primal, 1, state);
  tangents = state.derivatives[{Role::Primal, 1}];
}

interpreter::InterpreterReport Oracle::runGradient(unsigned order,
                                                   State &state) {
  if (refusal())
    throw Stopped{*refusal()};
  run(overwrites() ? Mode::Recording : Mode::Primal, order, state);
  return run(Mode::Gradient, order, state);
}

interpreter::InterpreterReport
Oracle::gradient(Memory &memory, Values &adjoints, Variant variant) {
  State state{memory, variant};
  state.derivatives[{Role::Adjoint, 0}] = adjoints;
  interpreter::InterpreterReport report = runGradient(0, state);
  adjoints = state.derivatives[{Role::Adjoint, 0}];
  return report;
}

Values Oracle::hessianProduct(const Values &direction, Variant variant) {
  Memory memory = inputs.memory;
  State state{memory, variant};
  state.derivatives = {{{Role::Primal, 1}, direction},
                       {{Role::Adjoint, 0}, inputs.weights},
                       {{Role::Adjoint, 1}, zerosLike(inputs.weights)}};
  runGradient(1, state);
  return state.derivatives[{Role::Adjoint, 1}];
}

Values Oracle::curvature(const Values &direction) {
  Memory memory = inputs.memory;
  State state{memory};
  state.derivatives = {{{Role::Primal, 1}, direction},
                       {{Role::Primal, 2}, zerosLike(direction)}};
  run(Mode::Primal, 2, state);
  return state.derivatives[{Role::Primal, 2}];
}

} // namespace costate::property
