#include "fuzz/Memory.h"

#include "costate/f16.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <cstring>

using namespace mlir;

namespace costate::fuzz {

constexpr llvm::StringLiteral valuesAttr = "fuzz.values";

static size_t bytesOf(Type element) {
  return std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

interpreter::HostArray makeArray(ir::ArrayType type,
                                 std::vector<int64_t> extents) {
  size_t count = 1;
  for (int64_t extent : extents)
    count *= size_t(extent);
  interpreter::HostArray array;
  array.extents = std::move(extents);
  array.bytes.resize(count * bytesOf(type.getElementType()));
  return array;
}

size_t sizeOf(const interpreter::HostArray &array) {
  size_t count = 1;
  for (int64_t extent : array.extents)
    count *= size_t(extent);
  return count;
}

template <class T>
static double read(const interpreter::HostArray &array, size_t at) {
  T value;
  std::memcpy(&value, array.bytes.data() + at * sizeof(T), sizeof(T));
  return double(value);
}

/// Integers wrap around.
template <class T>
static void write(interpreter::HostArray &array, size_t at, double number) {
  T value;
  if constexpr (std::is_integral_v<T>)
    value = static_cast<T>(static_cast<int64_t>(number));
  else
    value = static_cast<T>(number);
  std::memcpy(array.bytes.data() + at * sizeof(T), &value, sizeof(T));
}

/// Calls `use` with a number of the C++ type of the elements. Floats are as
/// wide as they are in `array`: derivatives of f16 are f32.
template <class Use>
static auto withElement(const interpreter::HostArray &array, Type element,
                        const Use &use) {
  if (isa<FloatType>(element))
    switch (array.bytes.size() / sizeOf(array)) {
    case 2:
      return use(f16());
    case 4:
      return use(float());
    default:
      return use(double());
    }
  bool isUnsigned = element.isUnsignedInteger();
  switch (element.getIntOrFloatBitWidth()) {
  case 1:
    return use(uint8_t());
  case 8:
    return isUnsigned ? use(uint8_t()) : use(int8_t());
  case 16:
    return isUnsigned ? use(uint16_t()) : use(int16_t());
  case 32:
    return use(int32_t());
  default:
    return use(int64_t());
  }
}

double get(const interpreter::HostArray &array, Type element, size_t at) {
  return withElement(array, element,
                     [&]<class T>(T) { return read<T>(array, at); });
}

void set(interpreter::HostArray &array, Type element, size_t at, double value) {
  withElement(array, element, [&]<class T>(T) { write<T>(array, at, value); });
}

bool isFloatArray(ir::KernelOp kernel, unsigned k) {
  auto array = dyn_cast<ir::ArrayType>(kernel.getArgumentTypes()[k]);
  return array && array.isFloat();
}

std::vector<interpreter::HostArray> randomLike(ir::KernelOp kernel,
                                               const Memory &memory,
                                               ArrayRef<bool> chosen,
                                               Random &random) {
  std::vector<interpreter::HostArray> like(memory.arrays.size());
  for (unsigned k = 0; k < like.size(); ++k) {
    if (!isFloatArray(kernel, k))
      continue;
    auto type = cast<ir::ArrayType>(kernel.getArgumentTypes()[k]);
    like[k] = makeArray(type.getDerivative(), memory.arrays[k].extents);
    for (size_t at = 0; chosen[k] && at < sizeOf(like[k]); ++at)
      set(like[k], type.getElementType(), at, float(random.real(-1, 1)));
  }
  return like;
}

//===-- Values in the text ------------------------------------------------===//

static Attribute numberAttr(Type element, double value) {
  Builder builder(element.getContext());
  if (isa<FloatType>(element))
    return builder.getFloatAttr(element, value);
  return IntegerAttr::get(element,
                          APInt(element.getIntOrFloatBitWidth(),
                                uint64_t(int64_t(value)), /*isSigned=*/true,
                                /*implicitTrunc=*/true));
}

static Attribute valuesOf(Type element, const interpreter::HostArray &array) {
  SmallVector<Attribute> numbers;
  for (size_t at = 0; at < sizeOf(array); ++at)
    numbers.push_back(numberAttr(element, get(array, element, at)));
  return DenseElementsAttr::get(RankedTensorType::get(array.extents, element),
                                numbers);
}

void attachValues(ir::KernelOp kernel, const Memory &memory) {
  for (auto [k, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Attribute values;
    if (auto array = dyn_cast<ir::ArrayType>(type))
      values = valuesOf(array.getElementType(), memory.arrays[k]);
    else if (isa<FloatType>(type))
      values = numberAttr(type, memory.scalars[k].real);
    else
      values = numberAttr(type, double(memory.scalars[k].integer));
    kernel.setArgAttr(k, valuesAttr, values);
  }
}

static double numberOf(Attribute attribute) {
  if (auto real = dyn_cast<FloatAttr>(attribute))
    return real.getValueAsDouble();
  auto integer = cast<IntegerAttr>(attribute);
  APInt value = integer.getValue();
  bool hasSign =
      value.getBitWidth() > 1 && !integer.getType().isUnsignedInteger();
  return hasSign ? double(value.getSExtValue()) : double(value.getZExtValue());
}

static interpreter::HostArray arrayOf(ir::ArrayType type,
                                      DenseElementsAttr values) {
  interpreter::HostArray array =
      makeArray(type, values.getType().getShape().vec());
  for (auto [at, value] : llvm::enumerate(values.getValues<Attribute>()))
    set(array, type.getElementType(), at, numberOf(value));
  return array;
}

FailureOr<Memory> attachedValues(ir::KernelOp kernel) {
  unsigned count = kernel.getNumArguments();
  Memory memory;
  memory.arrays.resize(count);
  memory.scalars.resize(count);
  for (auto [k, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Attribute values = kernel.getArgAttr(k, valuesAttr);
    auto dense = dyn_cast_or_null<DenseElementsAttr>(values);
    auto array = dyn_cast<ir::ArrayType>(type);
    if (!values || (array && !dense))
      return kernel.emitError("argument ") << k + 1 << " has no values";
    if (array)
      memory.arrays[k] = arrayOf(array, dense);
    else if (isa<FloatType>(type))
      memory.scalars[k].real = numberOf(values);
    else
      memory.scalars[k].integer = int64_t(numberOf(values));
  }
  return memory;
}

} // namespace costate::fuzz
