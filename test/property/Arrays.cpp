#include "property/Arrays.h"

#include "property/Program.h"
#include "property/Singles.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

namespace costate::property {

const std::vector<ArrayInfo> &arrays() {
  static const std::vector<ArrayInfo> all = {
      {"x", DType::F64, {0}, true},     {"y", DType::F64, {0}, false},
      {"z", DType::F64, {0}, false},    {"u", DType::F64, {steps, 0}, false},
      {"v", DType::F64, {3, 0}, false}, {"out", DType::F64, {sums}, false},
      {"s", DType::F64, {}, false},     {"a", DType::F32, {0}, true},
      {"b", DType::F32, {0}, false},    {"m", DType::I32, {0}, true},
      {"n", DType::I32, {0}, false},    {"g", DType::I64, {0}, false},
      {"h", DType::U32, {0}, false},    {"w", DType::U64, {0}, false},
      {"c", DType::Bool, {0}, false},   {"d", DType::I8, {0}, false},
      {"e", DType::I16, {0}, false},    {"o", DType::U8, {0}, false},
      {"r", DType::U16, {0}, false},    {"f", DType::F16, {0}, true},
      {"l", DType::F16, {0}, false}};
  return all;
}

static std::vector<ArrayInfo> narrowed(std::vector<ArrayInfo> all) {
  for (ArrayInfo &array : all)
    if (array.type == DType::F64 && usesSingles())
      array.type = DType::F32;
  return all;
}

const std::vector<ArrayInfo> &storedArrays() {
  static const std::vector<ArrayInfo> all = narrowed(arrays());
  return all;
}

const ArrayInfo &arrayNamed(const std::string &name) {
  for (const ArrayInfo &array : arrays())
    if (name == array.name)
      return array;
  throw InvalidProgram("no such array: " + name);
}

namespace {

template <class T>
std::vector<double> read(const interpreter::HostArray &array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return {values.begin(), values.end()};
}

template <class T>
void write(interpreter::HostArray &array, const std::vector<double> &from) {
  std::vector<T> values(from.begin(), from.end());
  array.bytes.resize(values.size() * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
}

void writeIntegers(interpreter::HostArray &array, DType type,
                   const std::vector<double> &values) {
  switch (type) {
  case DType::I8:
    return write<int8_t>(array, values);
  case DType::I16:
    return write<int16_t>(array, values);
  case DType::U16:
    return write<uint16_t>(array, values);
  case DType::I32:
    return write<int32_t>(array, values);
  case DType::I64:
    return write<int64_t>(array, values);
  case DType::U32:
    return write<uint32_t>(array, values);
  case DType::U64:
    return write<uint64_t>(array, values);
  default:
    return write<uint8_t>(array, values);
  }
}

} // namespace

std::vector<double> toDoubles(const interpreter::HostArray &array, DType type) {
  if (type == DType::F16)
    return read<f16>(array);
  return type == DType::F32 ? read<float>(array) : read<double>(array);
}

void fromDoubles(interpreter::HostArray &array, DType type,
                 const std::vector<double> &values) {
  if (type == DType::F16)
    write<f16>(array, values);
  else if (type == DType::F32)
    write<float>(array, values);
  else
    write<double>(array, values);
}

Values toDoubles(const Memory &memory) {
  Values values(memory.size());
  for (size_t k = 0; k < memory.size(); ++k)
    if (isFloat(storedArrays()[k].type))
      values[k] = toDoubles(memory[k], storedArrays()[k].type);
  return values;
}

namespace {

/// Random contents of arrays, in the order in which they are asked for.
class Filler {
public:
  Filler(Inputs &inputs, unsigned seed) : inputs(inputs), engine(seed) {
    withoutX = engine() % 8 == 0;
    extreme = seed % 9 == 8;
  }

  void addArray(const ArrayInfo &info) {
    interpreter::HostArray array{info.shape, {}};
    std::ranges::replace(array.extents, 0, inputs.width);
    int64_t size = 1;
    for (int64_t extent : array.extents)
      size *= extent;
    std::vector<double> values, weights;
    for (int64_t k = 0; k < size; ++k) {
      values.push_back(start(info.type));
      weights.push_back(weight(engine));
      if (info.type != DType::F64)
        weights.back() = static_cast<float>(weights.back());
    }
    bool isActive = isFloat(info.type) && !(withoutX && inputs.memory.empty());
    if (isFloat(info.type))
      fromDoubles(array, info.type, values);
    else
      writeIntegers(array, info.type, values);
    if (extreme)
      addExtremes(array, info.type);
    inputs.memory.push_back(std::move(array));
    inputs.active.push_back(isActive);
    inputs.weights.push_back(isActive ? weights : std::vector<double>());
  }

  void addScalars() {
    inputs.p = real(engine);
    if (usesSingles())
      inputs.p = static_cast<float>(inputs.p);
    inputs.q = integer(engine);
  }

private:
  void addExtremes(interpreter::HostArray &array, DType type) {
    size_t size = sizeOf(type);
    for (size_t at = 0; at < array.bytes.size(); at += size)
      if (engine() % 4 == 0)
        std::memcpy(&array.bytes[at], extremeOf(type).data(), size);
  }

  template <class T>
  std::vector<std::byte> oneOf(std::initializer_list<T> list) {
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), list.begin() + engine() % list.size(), sizeof(T));
    return bytes;
  }

  template <class T> std::vector<std::byte> extremeFloat() {
    using Limits = std::numeric_limits<T>;
    T inf = Limits::infinity();
    return oneOf<T>({T(0), T(-0.), inf, T(-inf), Limits::quiet_NaN(),
                     Limits::max(), Limits::min(), Limits::denorm_min(), T(1),
                     T(-1)});
  }

  template <class T> std::vector<std::byte> extremeInteger() {
    using Limits = std::numeric_limits<T>;
    return oneOf<T>({0, T(1), T(-1), Limits::min(), Limits::max(),
                     T(Limits::max() / 2 + 1), T(63), T(64)});
  }

  std::vector<std::byte> extremeOf(DType type) {
    switch (type) {
    case DType::Bool:
      return oneOf<uint8_t>({0, 1});
    case DType::I8:
      return extremeInteger<int8_t>();
    case DType::I16:
      return extremeInteger<int16_t>();
    case DType::U8:
      return extremeInteger<uint8_t>();
    case DType::U16:
      return extremeInteger<uint16_t>();
    case DType::F16:
      return extremeFloat<f16>();
    case DType::I32:
      return extremeInteger<int32_t>();
    case DType::I64:
      return extremeInteger<int64_t>();
    case DType::U32:
      return extremeInteger<uint32_t>();
    case DType::U64:
      return extremeInteger<uint64_t>();
    case DType::F32:
      return extremeFloat<float>();
    case DType::F64:
      return extremeFloat<double>();
    }
    return {};
  }

  double start(DType type) {
    if (isFloat(type))
      return real(engine);
    int value = integer(engine);
    return type == DType::Bool ? value > 2
           : isUnsigned(type)  ? value + 4
                               : value;
  }

  Inputs &inputs;
  std::mt19937 engine;
  std::uniform_real_distribution<double> real{-1.5, 1.5}, weight{0.5, 1.5};
  std::uniform_int_distribution<int> integer{-4, 9};
  bool withoutX;
  bool extreme; ///< numbers at the ends of their types, inf and NaN as well
};

} // namespace

Values zerosLike(Values values) {
  for (std::vector<double> &array : values)
    std::ranges::fill(array, 0.0);
  return values;
}

/// Arrays that have come later are filled last, so that the programs of the
/// corpus meet the values that they failed for.
Inputs::Inputs(int width, unsigned seed) : width(width) {
  constexpr size_t first = 11;
  Filler filler(*this, seed);
  for (size_t k = 0; k < first; ++k)
    filler.addArray(storedArrays()[k]);
  filler.addScalars();
  for (size_t k = first; k < storedArrays().size(); ++k)
    filler.addArray(storedArrays()[k]);
}

} // namespace costate::property
