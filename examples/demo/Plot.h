#pragma once
/// The picture of what was learnt.

#include "Simulation.h"

#include <string>

namespace pony {

/// Draws the last run of `simulation`, in which `body` moves to `target`, and
/// the losses of all iterations on the way there. Runs gnuplot; without it,
/// says how to draw the picture later and returns false.
bool plot(const Simulation &simulation, const Body &body, Point target,
          const Numbers &losses, const std::string &file);

} // namespace pony
