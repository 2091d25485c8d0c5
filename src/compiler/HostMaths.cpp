#include "compiler/HostMaths.h"

#include "compiler/Libclc.h"
#include "compiler/Target.h"
#include "conversion/KernelToLLVM/MathLibrary.h"
#include "conversion/LLVMPasses.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::compiler {
namespace {

/// They have been optimised.
constexpr const char *inliningPasses =
    "always-inline,globaldce,function(early-cse,simplifycfg)";

/// Calls that save what is in registers cost little, but where these are most
/// of a loop. Code of functions takes long to compile.
constexpr unsigned mostInlined = 4;

struct Declared {
  std::vector<Function *> numbers, vectors;
};

Declared dropUnused(Module &module) {
  Declared found;
  for (Function &function : make_early_inc_range(module)) {
    if (!function.isDeclaration() ||
        !function.getName().starts_with(conversion::hostFunctionPrefix))
      continue;
    bool isVector = function.getReturnType()->isVectorTy();
    if (function.use_empty())
      function.eraseFromParent();
    else
      (isVector ? found.vectors : found.numbers).push_back(&function);
  }
  return found;
}

bool pays(const std::vector<Function *> &vectors) {
  unsigned calls = 0;
  for (const Function *function : vectors)
    calls += function->getNumUses();
  return calls > 0 && calls <= mostInlined;
}

/// The library does not define what has another name.
Result<> linkWithout(const std::vector<Function *> &functions, Module &module) {
  std::vector<std::string> names;
  for (Function *function : functions) {
    names.push_back(function->getName().str());
    function->setName("called." + function->getName());
  }
  Result<> linked = linkLibrary(module, hostLibrary());
  for (auto [function, name] : zip_equal(functions, names))
    function->setName(name);
  return linked;
}

} // namespace

Result<> inlineHostMaths(Module &module, TargetMachine &machine) {
  Declared declared = dropUnused(module);
  if (!pays(declared.vectors))
    return {};
  if (Result<> linked = linkWithout(declared.numbers, module); !linked)
    return linked;
  setAttributes(module);
  conversion::runPasses(module, machine, [](PassBuilder &builder) {
    return conversion::parsePasses(builder, inliningPasses);
  });
  return {};
}

} // namespace costate::compiler
