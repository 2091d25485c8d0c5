#pragma once
/// Light along rays through a volume, until almost nothing of it is left: a
/// `WHILE` with a `BREAK`, whose gradient scatters into the volume.

#include "costate/costate.h"

namespace costate::bench {

/// volume(density, sigma, image): pixel (i, j) of `image` looks into `density`,
/// a cube of n^3 values; `sigma` scales it. A ray ends at the back of the cube,
/// or where less than 1 % of the light comes through. T: float or double;
/// `lanes`: of KernelOptions.
template <class T = double> Kernel volumeRenderer(int lanes = 0);

} // namespace costate::bench
