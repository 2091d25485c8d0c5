#include "fuzz/Launch.h"

#include <limits>

using namespace mlir;

namespace costate::fuzz {

Result<Launchable> Launchable::make(ir::KernelOp kernel) {
  Result<interpreter::Interpreter> interpreter =
      interpreter::Interpreter::make(kernel);
  if (!interpreter)
    return interpreter.error();
  return Launchable(std::move(*interpreter), kernel);
}

Launchable::Launchable(interpreter::Interpreter interpreter,
                       ir::KernelOp kernel)
    : interpreter(std::move(interpreter)) {
  for (Type type : kernel.getArgumentTypes())
    isArray.push_back(isa<ir::ArrayType>(type));
}

Result<interpreter::InterpreterReport>
Launchable::run(Memory &memory,
                const interpreter::InterpreterOptions &options) const {
  std::vector<interpreter::InterpreterArgument> arguments = memory.scalars;
  for (size_t k = 0; k < arguments.size(); ++k)
    arguments[k].array = isArray[k] ? &memory.arrays[k] : nullptr;
  return interpreter.run(arguments, options);
}

//===-- Arguments of derivatives ------------------------------------------===//

/// The number in an attribute of argument `k` of `derived`.
static std::optional<unsigned> numberOf(ir::KernelOp derived, unsigned k,
                                        StringRef attribute) {
  auto number = derived.getArgAttrOfType<IntegerAttr>(k, attribute);
  if (!number)
    return std::nullopt;
  return unsigned(number.getInt());
}

/// The argument whose adjoint or tangent argument `k` is.
static std::optional<unsigned> originOf(ir::KernelOp derived, unsigned k) {
  auto adjoint = numberOf(derived, k, ir::adjointOfAttr);
  return adjoint ? adjoint : numberOf(derived, k, ir::tangentOfAttr);
}

static std::optional<autodiff::Version> versionOf(ir::KernelOp derived,
                                                  unsigned k) {
  auto argument = numberOf(derived, k, ir::versionOfAttr);
  if (!argument)
    return std::nullopt;
  return autodiff::Version{*argument, *numberOf(derived, k, ir::partAttr)};
}

void fillWithGarbage(interpreter::HostArray &array, Type element) {
  for (size_t at = 0; at < sizeOf(array); ++at)
    set(array, element, at,
        isa<FloatType>(element) ? std::numeric_limits<double>::quiet_NaN()
        : element.isInteger(1)  ? 1
                                : 987654321);
}

/// For argument `number` of `derived`, with the shape of `argument`.
static interpreter::HostArray garbageLike(const Memory &memory,
                                          ir::KernelOp derived, unsigned number,
                                          unsigned argument) {
  auto type = cast<ir::ArrayType>(derived.getArgumentTypes()[number]);
  interpreter::HostArray array =
      makeArray(type, memory.arrays[argument].extents);
  fillWithGarbage(array, type.getElementType());
  return array;
}

static interpreter::HostArray contentsOf(const Memory &memory,
                                         ir::KernelOp derived, unsigned k,
                                         const Arrays &extra,
                                         ArrayRef<Recorded> versions) {
  if (auto origin = originOf(derived, k))
    return extra[*origin];
  auto version = versionOf(derived, k);
  for (const Recorded &recorded : versions)
    if (version == recorded.version)
      return recorded.array;
  if (version)
    return garbageLike(memory, derived, k, version->argument);
  auto scratch = numberOf(derived, k, ir::scratchOfAttr);
  if (!scratch)
    scratch = numberOf(derived, k, ir::ownersOfAttr);
  return garbageLike(memory, derived, k, *scratch);
}

Memory extended(const Memory &memory, ir::KernelOp derived, const Arrays &extra,
                ArrayRef<Recorded> versions) {
  Memory result = memory;
  for (unsigned k = memory.arrays.size(); k < derived.getNumArguments(); ++k) {
    result.arrays.push_back(contentsOf(memory, derived, k, extra, versions));
    result.scalars.emplace_back();
  }
  return result;
}

Arrays extraOf(const Memory &memory, ir::KernelOp derived, size_t count) {
  Arrays extra(count);
  for (unsigned k = count; k < derived.getNumArguments(); ++k)
    if (auto origin = originOf(derived, k))
      extra[*origin] = memory.arrays[k];
  return extra;
}

std::vector<Recorded> versionsOf(const Memory &memory, ir::KernelOp derived) {
  std::vector<Recorded> versions;
  for (unsigned k = 0; k < derived.getNumArguments(); ++k)
    if (auto version = versionOf(derived, k))
      versions.push_back({*version, memory.arrays[k]});
  return versions;
}

} // namespace costate::fuzz
