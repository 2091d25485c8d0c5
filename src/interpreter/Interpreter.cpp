#include "interpreter/Interpreter.h"

#include "interpreter/Machine.h"
#include "interpreter/Translate.h"

#include <new>

namespace costate::interpreter {
namespace {

Failure bad(int64_t name, const std::string &text) {
  return {ErrorCode::BadArgument,
          "argument " + std::to_string(name) + " " + text};
}

uint64_t bitsOf(Kind kind, const InterpreterArgument &argument) {
  switch (kind) {
  case Kind::I1:
    return argument.integer != 0;
  case Kind::I32:
    return static_cast<uint32_t>(argument.integer);
  case Kind::I64:
    return argument.integer;
  case Kind::F32:
    return Machine::asBits(static_cast<float>(argument.real));
  case Kind::F64:
    return Machine::asBits(argument.real);
  }
  return 0;
}

/// The number of elements, unless bytes are missing or left over.
std::optional<size_t> sizeOf(const HostArray &array, size_t elementSize) {
  unsigned __int128 bytes = elementSize;
  for (int64_t extent : array.extents) {
    if (extent < 0)
      return {};
    bytes *= extent;
    if (bytes > SIZE_MAX)
      return {};
  }
  if (bytes != array.bytes.size())
    return {};
  return array.bytes.size() / elementSize;
}

Result<Array> bind(const Parameter &parameter, HostArray &host) {
  if (host.extents.size() != static_cast<size_t>(parameter.rank))
    return bad(parameter.name, "has " + std::to_string(host.extents.size()) +
                                   " dimensions where the kernel declares " +
                                   std::to_string(parameter.rank));
  for (size_t dim = 0; dim < parameter.extents.size(); ++dim)
    if (int64_t known = parameter.extents[dim];
        known >= 0 && known != host.extents[dim])
      return bad(parameter.name,
                 "has extent " + std::to_string(host.extents[dim]) +
                     " where the kernel declares " + std::to_string(known));
  Array array;
  array.elementSize = parameter.elementBytes;
  std::optional<size_t> size = sizeOf(host, array.elementSize);
  if (!size)
    return bad(parameter.name, "has " + std::to_string(host.bytes.size()) +
                                   " bytes, which do not fit its extents");
  array.size = *size;
  array.data = host.bytes.data();
  array.extents = host.extents;
  return array;
}

/// Whether an array that the kernel writes is passed twice.
bool overlaps(const Code &code, std::span<InterpreterArgument> arguments,
              size_t k) {
  for (size_t other = 0; other < k; ++other)
    if (arguments[other].array == arguments[k].array &&
        (code.parameters[other].written || code.parameters[k].written))
      return true;
  return false;
}

Result<> bind(Machine &machine, std::span<InterpreterArgument> arguments) {
  const Code &code = machine.code;
  if (arguments.size() != code.parameters.size())
    return Failure{ErrorCode::BadArgument,
                   "kernel `" + code.name + "` takes " +
                       std::to_string(code.parameters.size()) +
                       " arguments, not " + std::to_string(arguments.size())};
  machine.arrays.resize(arguments.size());
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Parameter &parameter = code.parameters[k];
    bool isArray = parameter.rank >= 0;
    if (isArray != (arguments[k].array != nullptr))
      return bad(parameter.name, isArray ? "is an array" : "is a scalar");
    if (!isArray) {
      machine.slots[k] = bitsOf(parameter.kind, arguments[k]);
      continue;
    }
    if (overlaps(code, arguments, k))
      return bad(parameter.name, "is written, or the same array is");
    Result<Array> array = bind(parameter, *arguments[k].array);
    if (!array)
      return array.error();
    machine.arrays[k] = std::move(*array);
  }
  return {};
}

bool execute(Machine &machine) {
  if (!machine.run(0))
    return false;
  Instruction end; // its place is the kernel's
  return machine.checkEmpty(end, machine.serialTape);
}

} // namespace

Result<Interpreter> Interpreter::make(ir::KernelOp kernel,
                                      Functions functions) {
  Result<Code> code = translate(kernel, functions);
  if (!code)
    return code.error();
  return Interpreter(std::make_shared<const Code>(std::move(*code)));
}

Result<InterpreterReport>
Interpreter::run(std::span<InterpreterArgument> arguments,
                 const InterpreterOptions &options) const {
  try {
    Machine machine(*code, options);
    if (Result<> bound = bind(machine, arguments); !bound)
      return bound.error();
    if (!execute(machine))
      return *machine.failure;
    return machine.report;
  } catch (const std::bad_alloc &) {
    return Failure{ErrorCode::OutOfMemory,
                   "kernel `" + code->name +
                       "`: the interpreter is out of memory"};
  }
}

} // namespace costate::interpreter
