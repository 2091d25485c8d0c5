#include "run/Arguments.h"

#include <charconv>
#include <cstring>

namespace costate::run {

static Failure bad(const std::string &text) {
  return Failure{ErrorCode::BadArgument, text};
}

static std::string number(size_t value) { return std::to_string(value); }

static std::optional<uint32_t> parseNumber(std::string_view text) {
  uint32_t value;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

Result<std::pair<uint32_t, std::string>>
parseNumbered(const std::string &text) {
  size_t equals = text.find('=');
  std::optional<uint32_t> argument;
  if (equals != text.npos)
    argument = parseNumber(std::string_view(text).substr(0, equals));
  if (!argument)
    return bad("`" + text + "`: write the number of an argument, `=` and more");
  return std::pair(*argument, text.substr(equals + 1));
}

static std::string describe(const syntax::Argument &argument) {
  std::string text = nameOf(argument.type);
  if (!argument.isArray())
    return text;
  text += '[';
  std::vector<int64_t> extents = argument.extents;
  extents.resize(argument.rank, -1);
  for (int d = 0; d < argument.rank; ++d)
    text +=
        (d ? "," : "") + (extents[d] < 0 ? "_" : std::to_string(extents[d]));
  return text + ']';
}

Result<> checkArguments(const std::vector<syntax::Argument> &declared,
                        const std::vector<Tensor> &given) {
  if (declared.size() != given.size())
    return bad("the kernel takes " + number(declared.size()) +
               " arguments, not " + number(given.size()));
  for (size_t k = 0; k < given.size(); ++k) {
    bool fits = given[k].isScalar ? !declared[k].isArray()
                                  : declared[k].takes(given[k].shape);
    if (!fits || given[k].type != declared[k].type)
      return bad("argument " + number(k) + " is " + describe(given[k]) +
                 "; the kernel declares " + describe(declared[k]));
  }
  return {};
}

Result<std::vector<bool>>
activeArguments(const std::vector<syntax::Argument> &declared,
                const std::string &list) {
  std::vector<bool> active(declared.size());
  auto isFloatArray = [&](size_t k) {
    return declared[k].isArray() && isFloat(declared[k].type);
  };
  if (list.empty()) {
    for (size_t k = 0; k < declared.size(); ++k)
      active[k] = isFloatArray(k);
    return active;
  }
  std::string_view rest = list;
  while (!rest.empty()) {
    size_t comma = std::min(rest.find(','), rest.size());
    std::optional<uint32_t> k = parseNumber(rest.substr(0, comma));
    if (!k || *k >= declared.size() || !isFloatArray(*k))
      return bad("`" + list + "`: `" + std::string(rest.substr(0, comma)) +
                 "` is not the number of a float array");
    active[*k] = true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return active;
}

static Result<> addSeed(const std::string &spec,
                        const std::vector<Tensor> &given, ByArgument &seeds) {
  auto numbered = parseNumbered(spec);
  if (!numbered)
    return numbered.error();
  auto [argument, text] = *numbered;
  auto seed = seeds.find(argument);
  if (seed == seeds.end())
    return bad("`" + spec + "`: argument " + number(argument) +
               " has no adjoint or tangent");
  Result<Tensor> value = parseTensor(text);
  if (!value)
    return value.error();
  const Tensor &primal = given[argument];
  if (value->type != derivativeOf(primal.type) ||
      value->shape != primal.shape || value->isScalar)
    return bad("`" + spec + "` is " + describe(*value) + "; argument " +
               number(argument) + " is " + describe(primal) +
               (value->type == primal.type ? "; seeds of f16 are f32" : ""));
  seed->second = *value;
  return {};
}

Result<ByArgument> makeSeeds(const std::vector<std::string> &specs,
                             const std::vector<Tensor> &given,
                             const std::vector<bool> &active) {
  ByArgument seeds;
  for (uint32_t k = 0; k < active.size(); ++k)
    if (active[k])
      seeds[k] = zeros(derivativeOf(given[k].type), given[k].shape);
  for (const std::string &spec : specs)
    if (Result<> added = addSeed(spec, given, seeds); !added)
      return added.error();
  return seeds;
}

Result<> checkOutputs(const std::vector<runtime::Access> &accesses,
                      const std::vector<bool> &active) {
  for (size_t k = 0; k < active.size(); ++k)
    if (accesses[k].activeWrite && !active[k])
      return Failure{ErrorCode::MissingGradient,
                     "argument " + number(k) +
                         " is written with values that depend on active "
                         "arguments; add it to --active"};
  return {};
}

Tensor &Tensors::of(const runtime::Parameter &parameter) {
  using Role = runtime::Parameter::Role;
  Tensor &argument = primal[parameter.argument];
  switch (parameter.role) {
  case Role::Primal:
    return parameter.order ? derived.at(parameter.argument) : argument;
  case Role::Adjoint:
    return derived.at(parameter.argument);
  case Role::Version:
    return copies.try_emplace({parameter.argument, parameter.part}, argument)
        .first->second;
  case Role::Scratch:
    return copies.try_emplace({parameter.argument, -1}, argument).first->second;
  case Role::Owners:
    return copies
        .try_emplace({parameter.argument, -2},
                     zeros(DType::I64, argument.shape))
        .first->second;
  case Role::Marks:
    return copies
        .try_emplace({parameter.argument, -3}, zeros(DType::I8, argument.shape))
        .first->second;
  }
  return argument;
}

static void append(std::vector<uint64_t> &slots, Tensor &tensor) {
  if (tensor.isScalar) {
    uint64_t slot = 0;
    std::memcpy(&slot, tensor.bytes.data(), tensor.bytes.size());
    slots.push_back(slot);
    return;
  }
  slots.push_back(reinterpret_cast<uintptr_t>(tensor.bytes.data()));
  for (int64_t extent : tensor.shape)
    slots.push_back(static_cast<uint64_t>(extent));
}

std::vector<uint64_t> slots(const std::vector<runtime::Parameter> &parameters,
                            Tensors &tensors) {
  std::vector<uint64_t> slots;
  for (const runtime::Parameter &parameter : parameters)
    append(slots, tensors.of(parameter));
  return slots;
}

template <class T> static T scalar(const Tensor &tensor) {
  T value;
  std::memcpy(&value, tensor.bytes.data(), sizeof(T));
  return value;
}

static interpreter::InterpreterArgument scalarArgument(const Tensor &tensor) {
  interpreter::InterpreterArgument argument;
  if (tensor.type == DType::F32)
    argument.real = scalar<float>(tensor);
  else if (tensor.type == DType::F64)
    argument.real = scalar<double>(tensor);
  else
    std::memcpy(&argument.integer, tensor.bytes.data(), tensor.bytes.size());
  return argument;
}

InterpreterArguments::InterpreterArguments(
    const std::vector<runtime::Parameter> &parameters, Tensors &all)
    : arrays(parameters.size()), arguments(parameters.size()) {
  for (size_t k = 0; k < parameters.size(); ++k) {
    tensors.push_back(&all.of(parameters[k]));
    const Tensor &tensor = *tensors[k];
    if (tensor.isScalar) {
      arguments[k] = scalarArgument(tensor);
      continue;
    }
    arrays[k] = {tensor.shape, tensor.bytes};
    arguments[k].array = &arrays[k];
  }
}

void InterpreterArguments::copyBack() {
  for (size_t k = 0; k < tensors.size(); ++k)
    if (arguments[k].array)
      tensors[k]->bytes = arrays[k].bytes;
}

} // namespace costate::run
