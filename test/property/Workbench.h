#pragma once
/// The arrays of a random kernel on one device, as doubles.

#include "costate/costate.h"

#include <functional>
#include <vector>

namespace costate::property {

using Values = std::vector<std::vector<double>>; ///< of each array

class Workbench {
public:
  Workbench(Device device, int width, unsigned seed);

  void launch(const Kernel &kernel, detail::Mode mode);
  void reset() { put(start); }

  /// Primal values, adjoints and tangents of all arrays; those of an array
  /// without derivative are empty, and ignored when put.
  Values get() const {
    return read([](const AnyArray &a) { return a; });
  }
  Values adjoints() const;
  Values tangents() const;
  void put(const Values &values);
  void putAdjoints(const Values &values);
  void putTangents(const Values &values);

  bool isActive(size_t array) const;
  /// Whether no program writes to it.
  static bool isConstant(size_t array);
  static bool isSingle(size_t array);
  static const char *name(size_t array);
  size_t count() const { return arrays.size(); }

  Values start, weights;

private:
  using View = std::function<AnyArray(const AnyArray &)>;
  Values read(const View &view) const;
  void write(const Values &values, const View &view);

  std::vector<AnyArray> arrays;
  double p;
  int q;
};

} // namespace costate::property
