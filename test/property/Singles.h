#pragma once
/// Programs for devices without floats of 64 bits.

#include "syntax/Syntax.h"

namespace costate::property {

/// From here on all programs of this process, and of those that it becomes,
/// have f32 where they have f64. Before anything is generated.
void useSingles();
bool usesSingles();

/// f32 where it has f64.
void narrow(syntax::Kernel &kernel);

} // namespace costate::property
