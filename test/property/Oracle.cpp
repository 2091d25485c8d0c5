#include "property/Oracle.h"

#include "api/KernelImpl.h"

namespace costate::property {

using compiler::Mode;
using Role = runtime::Parameter::Role;
using Versions = std::map<std::pair<int, int>, ir::HostArray>;

/// More operations than any program of the generator needs.
static constexpr uint64_t mostOperations = 50'000'000;

Oracle::Oracle(const Kernel &kernel, const Inputs &inputs)
    : kernel(kernel), inputs(inputs) {}

Oracle::Result &Oracle::code(Mode mode) {
  auto known = codes.find(mode);
  if (known != codes.end())
    return known->second;
  std::vector<bool> active = inputs.active;
  active.resize(active.size() + 2); // p and q
  if (mode == Mode::Primal)
    active.clear();
  auto code = kernel.shared()->program->interpret(mode, active,
                                                  /*compiledFunctions=*/true);
  return codes.emplace(mode, code).first->second;
}

std::optional<Failure> Oracle::refusal() {
  Result &gradient = code(Mode::Gradient);
  return gradient ? std::nullopt : std::optional(gradient.error());
}

bool Oracle::overwrites() {
  return !code(Mode::Gradient)->code.overwritten.empty();
}

namespace {

/// The arguments of one run, in the order of its parameters.
class Arguments {
public:
  Arguments(const Inputs &inputs, Memory &memory, Values *derived,
            Versions &versions)
      : inputs(inputs), memory(memory), derived(derived), versions(versions),
        derivedArrays(memory.size()) {}

  void add(const runtime::Parameter &parameter) {
    if (parameter.rank >= 0)
      list.push_back({arrayOf(parameter)});
    else if (parameter.argument == memory.size())
      list.push_back({nullptr, 0, inputs.p});
    else
      list.push_back({nullptr, inputs.q, 0});
  }

  void copyBack() {
    for (size_t k = 0; k < memory.size(); ++k)
      if (!derivedArrays[k].bytes.empty())
        (*derived)[k] = toDoubles(derivedArrays[k], arrays()[k].type);
  }

  std::vector<ir::InterpreterArgument> list;

private:
  ir::HostArray *arrayOf(const runtime::Parameter &parameter) {
    uint32_t k = parameter.argument;
    switch (parameter.role) {
    case Role::Primal:
      if (parameter.order == 0)
        return &memory[k];
      [[fallthrough]];
    case Role::Adjoint:
      derivedArrays[k].extents = memory[k].extents;
      fromDoubles(derivedArrays[k], arrays()[k].type, (*derived)[k]);
      return &derivedArrays[k];
    case Role::Version:
      return &versions.try_emplace({k, parameter.part}, memory[k])
                  .first->second;
    case Role::Scratch:
      return &versions.try_emplace({k, -1}, memory[k]).first->second;
    }
    return nullptr;
  }

  const Inputs &inputs;
  Memory &memory;
  Values *derived;
  Versions &versions;
  Memory derivedArrays;
};

} // namespace

ir::InterpreterReport Oracle::run(Mode mode, Memory &memory, Values *derived,
                                  Versions &versions, uint64_t order) {
  Result &made = code(mode);
  if (!made)
    throw Stopped{made.error()};
  Arguments arguments(inputs, memory, derived, versions);
  for (const runtime::Parameter &parameter : made->code.parameters)
    arguments.add(parameter);
  auto report = made->interpreter.run(
      arguments.list, {.order = order, .steps = mostOperations});
  if (!report)
    throw Stopped{report.error(), mode == Mode::Primal};
  arguments.copyBack();
  return *report;
}

ir::InterpreterReport Oracle::primal(Memory &memory, uint64_t order) {
  Versions none;
  return run(Mode::Primal, memory, nullptr, none, order);
}

void Oracle::tangent(Memory &memory, Values &tangents) {
  Versions none;
  run(Mode::Tangent, memory, &tangents, none, 0);
}

ir::InterpreterReport Oracle::gradient(Memory &memory, Values &adjoints) {
  Versions versions;
  if (refusal())
    throw Stopped{*refusal()};
  run(overwrites() ? Mode::Recording : Mode::Primal, memory, nullptr, versions,
      0);
  return run(Mode::Gradient, memory, &adjoints, versions, 0);
}

} // namespace costate::property
