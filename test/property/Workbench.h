#pragma once
/// A random kernel as a user runs it: arrays of a device, launches.

#include "property/Arrays.h"

#include "costate/costate.h"

namespace costate::property {

class Workbench {
public:
  Workbench(Device device, const Inputs &inputs);

  void launch(const Kernel &kernel, detail::Mode mode);
  /// The same from the state before a launch, to which memory is put back.
  void launchFromStart(const Kernel &kernel, detail::Mode mode);

  Memory get() const;
  void put(const Memory &memory);
  /// Of active arrays; the others are empty, and ignored when put.
  Values adjoints() const;
  Values tangents() const;
  void putAdjoints(const Values &values);
  void putTangents(const Values &values);
  /// Tangents of adjoints.
  Values adjointTangents() const;

private:
  std::vector<detail::ArgumentValue> arguments() const;
  template <class F> Values read(F chosen) const;

  const Inputs &inputs;
  std::vector<AnyArray> all;
};

} // namespace costate::property
