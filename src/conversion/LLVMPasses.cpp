#include "conversion/LLVMPasses.h"

#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace costate::conversion {

void runPasses(Module &module, TargetMachine &machine,
               function_ref<ModulePassManager(PassBuilder &)> passes,
               PipelineTuningOptions tuning) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  passes(builder).run(module, modules);
}

ModulePassManager parsePasses(PassBuilder &builder, StringRef pipeline) {
  ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, pipeline))
    report_fatal_error(std::move(error));
  return passes;
}

} // namespace costate::conversion
