/// Do the arguments of a launch fit the declaration of the kernel?

#include "api/Call.h"
#include "api/Checked.h"
#include "api/Launch.h"
#include "costate/detail/bound_arguments.h"
#include "costate/detail/default_device.h"
#include "costate/device.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

using Kind = ArgumentValue::Kind;

std::string detail::nameOf(const KernelImpl &kernel, size_t index) {
  return syntax::argumentText(kernel.program->arguments(), index);
}

std::string detail::argumentText(const KernelImpl &kernel, size_t index) {
  return kernel.title() + ": " + nameOf(kernel, index) + " (" +
         typeText(kernel.program->arguments()[index]) + ")";
}

[[noreturn]] static void reject(const KernelImpl &kernel, size_t index,
                                const std::string &text) {
  raise(ErrorCode::BadArgument, argumentText(kernel, index) + " " + text);
}

static std::string givenText(const ArgumentValue &value) {
  switch (value.kind) {
  case Kind::Array:
    if (const ElementForm &form = value.array->form(); form.count)
      return "an array of " + runtime::contentsText(*value.array->storage()) +
             (form.layout == SoA ? " in SoA layout" : " in AoS layout");
    return std::string("an ") + nameOf(value.array->dtype()) +
           " array of rank " + std::to_string(value.array->rank()) +
           " and shape " + runtime::shapeText(value.array->shape());
  case Kind::Bool:
    return value.integer ? "true" : "false";
  case Kind::Signed:
    return std::to_string(static_cast<int64_t>(value.integer));
  case Kind::Unsigned:
    return std::to_string(value.integer);
  case Kind::Float:
    break;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value.real);
  return text;
}

/// Whether a double holds exactly an integer of type `I`.
template <class I> static bool fits(double value) {
  constexpr double end =
      2.0 * static_cast<double>(std::numeric_limits<I>::max() / 2 + 1);
  constexpr double begin = std::is_signed_v<I> ? -end : 0;
  return value >= begin && value < end && std::trunc(value) == value;
}

/// `value` in the type `I`; false if it is not representable.
template <class I>
static bool toInteger(const ArgumentValue &value, uint64_t &bits) {
  bool good;
  I result;
  if (value.kind == Kind::Float) {
    good = fits<I>(value.real);
    result = good ? static_cast<I>(value.real) : I(0);
  } else if (value.kind == Kind::Signed) {
    good = std::in_range<I>(static_cast<int64_t>(value.integer));
    result = static_cast<I>(value.integer);
  } else {
    good = std::in_range<I>(value.integer);
    result = static_cast<I>(value.integer);
  }
  bits = static_cast<uint64_t>(static_cast<std::make_unsigned_t<I>>(result));
  return good;
}

/// The same in what holds a narrow integer: 32 bits, with its sign.
template <class I>
static bool toNarrow(const ArgumentValue &value, uint64_t &bits) {
  bool good = toInteger<I>(value, bits);
  bits = static_cast<uint32_t>(static_cast<int32_t>(static_cast<I>(bits)));
  return good;
}

static double toDouble(const ArgumentValue &value) {
  if (value.kind == Kind::Float)
    return value.real;
  if (value.kind == Kind::Signed)
    return static_cast<double>(static_cast<int64_t>(value.integer));
  return static_cast<double>(value.integer);
}

static bool toBits(DType type, const ArgumentValue &value, uint64_t &bits) {
  switch (type) {
  case DType::Bool: {
    bool good = toInteger<uint64_t>(value, bits);
    return good && bits <= 1;
  }
  case DType::I8:
    return toNarrow<int8_t>(value, bits);
  case DType::I16:
    return toNarrow<int16_t>(value, bits);
  case DType::U8:
    return toNarrow<uint8_t>(value, bits);
  case DType::U16:
    return toNarrow<uint16_t>(value, bits);
  case DType::I32:
    return toInteger<int32_t>(value, bits);
  case DType::I64:
    return toInteger<int64_t>(value, bits);
  case DType::U32:
    return toInteger<uint32_t>(value, bits);
  case DType::U64:
    return toInteger<uint64_t>(value, bits);
  case DType::F16: {
    double real = toDouble(value);
    bits = std::bit_cast<uint32_t>(static_cast<float>(f16(real)));
    return !std::isfinite(real) ||
           std::fabs(real) <= std::numeric_limits<f16>::max();
  }
  case DType::F32: {
    double real = toDouble(value);
    bits = std::bit_cast<uint32_t>(static_cast<float>(real));
    return !std::isfinite(real) ||
           std::fabs(real) <= std::numeric_limits<float>::max();
  }
  case DType::F64:
    bits = std::bit_cast<uint64_t>(toDouble(value));
    return true;
  }
  return false;
}

/// Whether the elements of `array` are what the kernel takes them for. Numbers
/// with one dimension more stand for vectors, matrices and structs as well, and
/// the other way round.
static bool holdsComponents(const AnyArray &array,
                            const syntax::Argument &declared) {
  const ElementForm &form = declared.form;
  const ElementForm &given = array.form();
  return !form.count || !given.count ||
         (given.layout == form.layout && given.name == form.name);
}

static void bindArray(const KernelImpl &kernel, size_t index,
                      const syntax::Argument &declared,
                      const ArgumentValue &value, BoundArgument &bound) {
  if (value.kind != Kind::Array)
    reject(kernel, index,
           "was given the number " + givenText(value) +
               "; pass an array, such as "
               "device.array<T>({}) for rank 0");
  if (!*value.array)
    reject(kernel, index,
           "was given an array without storage; make one with "
           "device.array<T>(...)");
  bound.array = value.array->storage();
  bool fits = value.array->dtype() == declared.type &&
              declared.takes(bound.array->extents) &&
              holdsComponents(*value.array, declared);
  if (!fits)
    reject(
        kernel, index,
        "was given " + givenText(value) +
            "; pass an array of the declared type, or change the ArrayRef of "
            "the kernel");
}

static void bindScalar(const KernelImpl &kernel, size_t index,
                       const syntax::Argument &declared,
                       const ArgumentValue &value, BoundArgument &bound) {
  if (value.kind == Kind::Array)
    reject(kernel, index,
           "was given an array; pass a number, or declare the parameter as "
           "ArrayRef");
  if (!toBits(declared.type, value, bound.bits))
    reject(kernel, index,
           "was given " + givenText(value) +
               ", which that type does not have; convert it first, or declare "
               "another type");
}

/// The one device of all arrays.
static std::shared_ptr<runtime::Device> deviceOf(const Call &call) {
  const runtime::ArrayStorage *first = nullptr;
  size_t firstIndex = 0;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const runtime::ArrayStorage *array = call.arguments[i].array.get();
    if (array && !first) {
      first = array;
      firstIndex = i;
    }
    if (array && array->device != first->device)
      reject(*call.kernel, i,
             "lives on another device than " +
                 nameOf(*call.kernel, firstIndex) +
                 "; make all arrays of a launch with the same Device");
  }
  return first ? first->device : defaultDevice();
}

namespace {
/// What is declared or given, as the user counts.
template <class Argument> class Counted {
public:
  explicit Counted(std::span<const Argument> all) : all(all) {}

  size_t numberOf(size_t index) const {
    return all[index].number ? all[index].number : index + 1;
  }
  size_t arguments() const {
    return all.empty() ? 0 : numberOf(all.size() - 1);
  }
  size_t partsOf(size_t number) const {
    size_t parts = 0;
    for (size_t i = 0; i < all.size(); ++i)
      parts += numberOf(i) == number;
    return parts;
  }

private:
  std::span<const Argument> all;
};
} // namespace

/// Without the parts of one argument.
static std::string declarationText(const KernelImpl &kernel) {
  const std::vector<syntax::Argument> &declared = kernel.program->arguments();
  std::string types;
  for (size_t i = 0; i < declared.size(); ++i) {
    const syntax::Argument &one = declared[i];
    if (i && one.number && one.number == declared[i - 1].number)
      continue;
    bool isGroup = !one.isArray() && !one.form.name.empty();
    types +=
        (types.empty() ? "" : ", ") + (isGroup ? one.form.name : typeText(one));
  }
  return types;
}

static std::string partsText(size_t count) {
  return std::to_string(count) + (count == 1 ? " part" : " parts");
}

[[noreturn]] static void rejectCount(const KernelImpl &kernel,
                                     std::span<const ArgumentValue> values) {
  const std::vector<syntax::Argument> &all = kernel.program->arguments();
  Counted<syntax::Argument> declared(all);
  Counted<ArgumentValue> given(values);
  auto text = [](size_t number) { return std::to_string(number); };
  std::string end = "; it is declared with (" + declarationText(kernel) + ")";
  size_t number = 1;
  while (number <= declared.arguments() &&
         declared.partsOf(number) == given.partsOf(number))
    ++number;
  if (declared.arguments() != given.arguments() ||
      number > declared.arguments())
    raise(ErrorCode::BadArgument,
          kernel.title() + " takes " + text(declared.arguments()) +
              " arguments, but was given " + text(given.arguments()) + end);
  raise(ErrorCode::BadArgument,
        kernel.title() + ": argument " + text(number) + " has " +
            partsText(declared.partsOf(number)) + ", but was given " +
            text(given.partsOf(number)) + end);
}

/// The arrays of one argument have one shape.
static void requireOneShape(const Call &call) {
  const KernelImpl &kernel = *call.kernel;
  const std::vector<syntax::Argument> &declared = kernel.program->arguments();
  for (size_t i = 1; i < declared.size(); ++i) {
    if (!declared[i].form.isPart ||
        declared[i].number != declared[i - 1].number)
      continue;
    std::vector<int64_t> own =
        runtime::elementExtents(*call.arguments[i].array);
    std::vector<int64_t> other =
        runtime::elementExtents(*call.arguments[i - 1].array);
    if (own != other)
      reject(kernel, i,
             "has shape " + runtime::shapeText(own) + ", but " +
                 nameOf(kernel, i - 1) + " have shape " +
                 runtime::shapeText(other) +
                 "; pass an array made with device.array<" +
                 declared[i].form.name + ">(...)");
  }
}

Call detail::bind(const std::shared_ptr<KernelImpl> &kernel,
                  std::span<const ArgumentValue> values) {
  const std::vector<syntax::Argument> &declared = kernel->program->arguments();
  if (values.size() != declared.size())
    rejectCount(*kernel, values);
  Call call{kernel, {}, {}};
  call.arguments.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    auto *bind = declared[i].isArray() ? bindArray : bindScalar;
    bind(*kernel, i, declared[i], values[i], call.arguments.emplace_back());
  }
  call.device = deviceOf(call);
  requireOneShape(call);
  return call;
}

//===-- For many launches -------------------------------------------------===//

BoundArguments::BoundArguments(const Kernel &kernel,
                               std::span<const ArgumentValue> values)
    : kernel(kernel),
      given(std::make_shared<Call>(bind(kernel.shared(), values))),
      own(std::make_shared<KeptLaunches>(*given)) {
  for (size_t i = 0; i < values.size(); ++i)
    if (!given->arguments[i].array)
      scalars.push_back(i);
}

void BoundArguments::move(std::span<void *const> memory,
                          std::span<void *const> gradients) {
  for (size_t i = 0; i < given->arguments.size(); ++i) {
    runtime::ArrayStorage *array = given->arguments[i].array.get();
    if (!array)
      continue;
    array->moveTo(memory[i]);
    if (array->grad)
      array->grad->moveTo(gradients[i]);
  }
  own->forgetMemory();
}

bool BoundArguments::gradientNeeds(size_t argument) const {
  return own->gradientNeeds(argument);
}

void BoundArguments::setScalars(Call &call,
                                std::span<const ArgumentValue> values) const {
  const KernelImpl &kernel = *call.kernel;
  if (values.size() != scalars.size())
    raise(ErrorCode::BadArgument,
          kernel.title() + " takes " + std::to_string(scalars.size()) +
              " scalars, but was given " + std::to_string(values.size()));
  const std::vector<syntax::Argument> &declared = kernel.program->arguments();
  for (size_t k = 0; k < values.size(); ++k)
    bindScalar(kernel, scalars[k], declared[scalars[k]], values[k],
               call.arguments[scalars[k]]);
}
