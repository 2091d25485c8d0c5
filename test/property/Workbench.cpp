#include "property/Workbench.h"

#include "property/Emit.h"

#include <algorithm>
#include <random>

namespace costate::property {
namespace {

struct Description {
  const char *name;
  DType type;
  std::vector<int64_t> shape;
  bool constant;
};

/// The extent 0 stands for the width.
const std::vector<Description> &descriptions() {
  static const std::vector<Description> all = {
      {"x", DType::F64, {0}, true},     {"y", DType::F64, {0}, false},
      {"z", DType::F64, {0}, false},    {"u", DType::F64, {steps, 0}, false},
      {"v", DType::F64, {3, 0}, false}, {"out", DType::F64, {sums}, false},
      {"s", DType::F64, {}, false},     {"a", DType::F32, {0}, true},
      {"b", DType::F32, {0}, false},    {"m", DType::I32, {0}, true},
      {"n", DType::I32, {0}, false}};
  return all;
}

template <class T> std::vector<double> toDoubles(const AnyArray &array) {
  std::vector<T> values = Array<T>(array).to_host();
  return std::vector<double>(values.begin(), values.end());
}

template <class T>
void fromDoubles(const AnyArray &array, const std::vector<double> &values) {
  Array<T>(array).from_host(std::vector<T>(values.begin(), values.end()));
}

std::vector<double> doublesOf(const AnyArray &array) {
  if (array.dtype() == DType::F64)
    return toDoubles<double>(array);
  return array.dtype() == DType::F32 ? toDoubles<float>(array)
                                     : toDoubles<int32_t>(array);
}

void assign(const AnyArray &array, const std::vector<double> &values) {
  if (array.dtype() == DType::F64)
    fromDoubles<double>(array, values);
  else if (array.dtype() == DType::F32)
    fromDoubles<float>(array, values);
  else
    fromDoubles<int32_t>(array, values);
}

} // namespace

Workbench::Workbench(Device device, int width, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> real(-1.5, 1.5), weight(0.5, 1.5);
  std::uniform_int_distribution<int> integer(-4, 9);
  bool withoutX = engine() % 8 == 0;
  for (const Description &of : descriptions()) {
    bool active = isFloat(of.type) && !(withoutX && arrays.empty());
    std::vector<int64_t> shape = of.shape;
    std::ranges::replace(shape, 0, width);
    arrays.push_back(device.array(of.type, shape, active ? grad | dual : none));
    std::vector<double> values, weighted;
    for (int64_t i = 0; i < arrays.back().size(); ++i) {
      values.push_back(isFloat(of.type) ? real(engine) : integer(engine));
      weighted.push_back(weight(engine));
    }
    if (of.type == DType::F32)
      for (std::vector<double> *list : {&values, &weighted})
        for (double &value : *list)
          value = static_cast<float>(value);
    start.push_back(values);
    weights.push_back(active ? weighted : std::vector<double>());
  }
  p = real(engine);
  q = integer(engine);
}

void Workbench::launch(const Kernel &kernel, detail::Mode mode) {
  std::vector<detail::ArgumentValue> arguments(arrays.begin(), arrays.end());
  arguments.emplace_back(p);
  arguments.emplace_back(q);
  kernel.launch_with(mode, arguments);
}

Values Workbench::read(const View &view) const {
  Values values;
  for (const AnyArray &array : arrays) {
    AnyArray seen = view(array);
    values.push_back(seen ? doublesOf(seen) : std::vector<double>());
  }
  return values;
}

void Workbench::write(const Values &values, const View &view) {
  for (size_t array = 0; array < arrays.size(); ++array)
    if (AnyArray seen = view(arrays[array]))
      assign(seen, values[array]);
}

static AnyArray adjointOf(const AnyArray &array) {
  return array.has_grad() ? array.grad() : AnyArray();
}

static AnyArray tangentOf(const AnyArray &array) {
  return array.has_dual() ? array.dual() : AnyArray();
}

Values Workbench::adjoints() const { return read(adjointOf); }
Values Workbench::tangents() const { return read(tangentOf); }
void Workbench::put(const Values &values) {
  write(values, [](const AnyArray &array) { return array; });
}
void Workbench::putAdjoints(const Values &values) { write(values, adjointOf); }
void Workbench::putTangents(const Values &values) { write(values, tangentOf); }

bool Workbench::isActive(size_t array) const { return !weights[array].empty(); }
bool Workbench::isConstant(size_t array) {
  return descriptions()[array].constant;
}
bool Workbench::isSingle(size_t array) {
  return descriptions()[array].type == DType::F32;
}
const char *Workbench::name(size_t array) { return descriptions()[array].name; }

} // namespace costate::property
