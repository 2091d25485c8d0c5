#pragma once
/// Passes of LLVM over a whole module.

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"

namespace costate::conversion {

/// Runs what `passes` makes of a builder that knows all analyses.
void runPasses(
    llvm::Module &module, llvm::TargetMachine &machine,
    llvm::function_ref<llvm::ModulePassManager(llvm::PassBuilder &)> passes,
    llvm::PipelineTuningOptions tuning = {});

/// A pipeline as `opt` takes it.
llvm::ModulePassManager parsePasses(llvm::PassBuilder &builder,
                                    llvm::StringRef pipeline);

} // namespace costate::conversion
