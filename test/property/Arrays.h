#pragma once
/// The arrays that every random kernel has, and what they hold at the start.

#include "costate/types.h"
#include "interpreter/Interpreter.h"

#include <string>
#include <vector>

namespace costate::property {

/// Extents of arrays that do not depend on the width of a program.
inline constexpr int steps = 5, sums = 3;

struct ArrayInfo {
  const char *name;
  DType type;
  std::vector<int64_t> shape; ///< 0 stands for the width
  bool constant;              ///< no program writes to it
};

/// In the order of the kernel's arguments; the scalars p and q follow.
const std::vector<ArrayInfo> &arrays();
/// The same as they are in memory, which differs with `useSingles`.
const std::vector<ArrayInfo> &storedArrays();
const ArrayInfo &arrayNamed(const std::string &name);

using Memory = std::vector<interpreter::HostArray>; ///< of each array
using Values = std::vector<std::vector<double>>;    ///< of each float array

/// The elements of a float array as doubles, and back.
std::vector<double> toDoubles(const interpreter::HostArray &array, DType type);
void fromDoubles(interpreter::HostArray &array, DType type,
                 const std::vector<double> &values);
Values toDoubles(const Memory &memory);
Values zerosLike(Values values);

struct Inputs {
  Inputs(int width, unsigned seed);

  int width;
  Memory memory;
  std::vector<bool> active; ///< by array: has an adjoint and a tangent
  Values weights;           ///< of the results; empty for inactive arrays
  double p;
  int q;
};

} // namespace costate::property
