#pragma once
/// The code that a launch runs, and whether the arguments have what it needs.

#include "api/Call.h"

namespace costate::detail {

/// Which array arguments have an adjoint (Gradient) or a tangent (Tangent);
/// empty for Primal.
std::vector<bool> activeArguments(Mode mode, const Call &call);

/// What a launch with these arguments asks for. Throws BadArgument if their
/// tangents have different numbers of directions, and MissingGradient if none
/// has a derivative.
compiler::Derivation derivationOf(const Call &call, Chain chain);

/// Compiled if need be. Throws if a derivative would be dropped.
Compiled &codeFor(const Call &call, const compiler::Derivation &derivation);

/// Throws NotDifferentiable if `code`, of a gradient, would drop a derivative
/// because the kernel itself reads a gradient; one that its caller has passed
/// counts as a constant.
void checkCompanions(const Call &call, const runtime::KernelCode &code);

} // namespace costate::detail
