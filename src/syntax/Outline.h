#pragma once
/// Large functions become functions of the tree.

#include "base/Calls.h"
#include "syntax/Syntax.h"

namespace costate::syntax {

/// What Enter marks: a function with a name, which `id` tells from others.
struct NamedFunction {
  const void *id;
  std::string name;
  Loc loc;
};

/// Takes the marks of functions out of `kernel`. A large function that only
/// computes becomes one of `kernel.functions`, and what was traced in its place
/// a Call. Two calls share a function if they were traced alike but for their
/// arguments: values, arrays, and constants in front.
void outlineFunctions(Kernel &kernel, const std::vector<NamedFunction> &named,
                      Calls calls);

} // namespace costate::syntax
