#include "property/Workbench.h"

#include "property/Singles.h"

namespace costate::property {

Workbench::Workbench(Device device, const Inputs &inputs) : inputs(inputs) {
  for (size_t k = 0; k < inputs.memory.size(); ++k)
    all.push_back(device.array(storedArrays()[k].type, inputs.memory[k].extents,
                               inputs.active[k] ? grad | dual : none));
  put(inputs.memory);
}

std::vector<detail::ArgumentValue> Workbench::arguments() const {
  std::vector<detail::ArgumentValue> arguments(all.begin(), all.end());
  if (usesSingles())
    arguments.emplace_back(static_cast<float>(inputs.p));
  else
    arguments.emplace_back(inputs.p);
  arguments.emplace_back(inputs.q);
  return arguments;
}

void Workbench::launch(const Kernel &kernel, detail::Mode mode) {
  kernel.launch_with(mode, arguments());
}

void Workbench::launchFromStart(const Kernel &kernel, detail::Mode mode) {
  kernel.launch_with(initial_state, mode, arguments());
}

static interpreter::HostArray read(const AnyArray &array) {
  interpreter::HostArray host{array.shape(),
                              std::vector<std::byte>(array.bytes())};
  array.read(host.bytes.data(), host.bytes.size());
  return host;
}

Memory Workbench::get() const {
  Memory memory;
  for (const AnyArray &array : all)
    memory.push_back(property::read(array));
  return memory;
}

void Workbench::put(const Memory &memory) {
  for (size_t k = 0; k < all.size(); ++k)
    all[k].write(memory[k].bytes.data(), memory[k].bytes.size());
}

template <class F> Values Workbench::read(F chosen) const {
  Values values(all.size());
  for (size_t k = 0; k < all.size(); ++k)
    if (inputs.active[k])
      values[k] = toDoubles(property::read(chosen(all[k])),
                            derivativeOf(storedArrays()[k].type));
  return values;
}

Values Workbench::adjoints() const {
  return read([](const AnyArray &array) { return array.grad(); });
}

Values Workbench::tangents() const {
  return read([](const AnyArray &array) { return array.dual(); });
}

Values Workbench::adjointTangents() const {
  return read([](const AnyArray &array) { return array.grad().dual(); });
}

static void write(AnyArray array, DType type,
                  const std::vector<double> &values) {
  interpreter::HostArray host;
  fromDoubles(host, type, values);
  array.write(host.bytes.data(), host.bytes.size());
}

void Workbench::putAdjoints(const Values &values) {
  for (size_t k = 0; k < all.size(); ++k)
    if (inputs.active[k])
      write(all[k].grad(), derivativeOf(storedArrays()[k].type), values[k]);
}

void Workbench::putTangents(const Values &values) {
  for (size_t k = 0; k < all.size(); ++k)
    if (inputs.active[k])
      write(all[k].dual(), derivativeOf(storedArrays()[k].type), values[k]);
}

} // namespace costate::property
