#include "compiler/Target.h"

#include "base/Fork.h"
#include "base/HostCode.h"
#include "compiler/AtomicLoops.h"
#include "compiler/ByteMasks.h"
#include "compiler/FarValues.h"
#include "compiler/HostMaths.h"
#include "compiler/RowPrefetch.h"
#include "compiler/UniformLoops.h"
#include "conversion/KernelToLLVM/Runtime.h"
#include "conversion/LLVMPasses.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"

using namespace llvm;

namespace costate::compiler {
namespace {

/// Whether code may use `feature` of x86-64 with vectors as wide as that. Those
/// of arm64 have 128 bits.
bool isAllowed(StringRef feature, Vectors widest) {
  if (feature.starts_with("sve") || feature.starts_with("sme"))
    return false;
  bool isWide = feature.starts_with("avx512") || feature.starts_with("avx10") ||
                feature == "evex512";
  bool isMiddle = feature.starts_with("avx") || feature.starts_with("fma") ||
                  feature == "f16c" || feature == "vaes" ||
                  feature == "vpclmulqdq" || feature == "xop";
  return widest == Vectors::AVX512 ||
         (!isWide && (widest == Vectors::AVX2 || !isMiddle));
}

void allow(StringMap<bool> &features, Vectors widest) {
  for (auto &feature : features)
    feature.second &= isAllowed(feature.first(), widest);
}

SmallVector<std::string> flagsOf(const StringMap<bool> &features) {
  SmallVector<std::string> flags;
  for (const auto &feature : features)
    flags.push_back((feature.second ? "+" : "-") + feature.first().str());
  sort(flags);
  return flags;
}

const llvm::Target &targetOf(const Triple &triple) {
  std::string error;
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    report_fatal_error(Twine(error));
  return *target;
}

FeatureBitset bitsWith(MCSubtargetInfo info, ArrayRef<std::string> flags) {
  for (const std::string &flag : flags)
    info.ApplyFeatureFlag(flag);
  return info.getFeatureBits();
}

/// The flags in which `features` differs from what a processor of that name
/// has. LLVM reads them again and again.
std::string textOf(const Host &host, const StringMap<bool> &features) {
  Triple triple(host.triple);
  std::unique_ptr<MCSubtargetInfo> usual(
      targetOf(triple).createMCSubtargetInfo(triple, host.cpu, ""));
  SmallVector<std::string> flags = flagsOf(features);
  FeatureBitset wanted = bitsWith(*usual, flags);
  StringMap<bool> differs;
  for (const SubtargetFeatureKV &one : usual->getAllProcessorFeatures())
    differs[one.Key] = wanted[one.Value] != usual->getFeatureBits()[one.Value];
  SmallVector<std::string> few = flags;
  erase_if(few, [&](StringRef flag) { return !differs[flag.drop_front()]; });
  return join(bitsWith(*usual, few) == wanted ? few : flags, ",");
}

Host detectHost() {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  Host host;
  host.triple = sys::getProcessTriple();
  host.cpu = sys::getHostCPUName().str();
  StringMap<bool> features = sys::getHostCPUFeatures();
  if (Result<Vectors> widest = chosenVectors())
    allow(features, *widest);
  if (Result<bool> quick = wantsQuickCode())
    host.isQuick = *quick;
  host.features = textOf(host, features);
  host.scalarFeatures = host.features;
  if (!Triple(host.triple).isX86()) {
    host.maths = Triple(host.triple).isAArch64() ? "neon" : "libm";
    host.hasFma = true;
    return host;
  }
  bool avx2 = features.lookup("avx2") && features.lookup("fma");
  bool avx512 = avx2 && features.lookup("avx512f") &&
                features.lookup("avx512dq") && features.lookup("avx512vl");
  host.hasFma = features.lookup("fma");
  host.maths = avx512 ? "avx512" : avx2 ? "avx2" : "sse2";
  host.vectorBits = avx512 ? 512 : avx2 ? 256 : 128;
  allow(features, Vectors::AVX2);
  host.scalarFeatures = textOf(host, features);
  return host;
}

/// The passes that pay for kernels: functions arrive in SSA form, without
/// anything to inline, and their loops are already normalised.
constexpr const char *scalarPasses =
    "early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-simplify,lcssa,"
    "loop-mssa(loop-rotate<header-duplication;no-prepare-for-lto>,licm),"
    "simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop(indvars,loop-deletion,loop-unroll-full),"
    "gvn<no-load-pre>,simplifycfg,";
constexpr const char *vectorPasses =
    "spare-uniform-loops,"
    "loop-vectorize<no-interleave-forced-only;no-vectorize-forced-only;>,";
constexpr const char *lastPasses =
    "instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm),gvn<no-split-backedge-load-pre>,prefetch-rows,"
    "reduce-atomic-loops";

/// For functions with many checks. A check that fails leaves its loops, and
/// passes over loops take a time that grows with the square of their exits.
constexpr const char *checkedPasses =
    "early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "gvn<no-split-backedge-load-pre>,simplifycfg,early-cse";
constexpr unsigned mostChecks = 100;

unsigned checksIn(const Function &function) {
  return static_cast<unsigned>(
      llvm::count_if(instructions(function), [](const Instruction &one) {
        auto *call = dyn_cast<CallBase>(&one);
        return call && call->doesNotReturn();
      }));
}

/// The time of the loop vectoriser grows with the square of a loop's size, so
/// functions above this number of instructions go without.
constexpr unsigned largestVectorised = 1500;

unsigned loopSize(const Function &function) {
  bool isSplit = function.hasFnAttribute(conversion::threeLoopsAttr);
  return function.getInstructionCount() / (isSplit ? 3 : 1);
}

std::string pipelineFor(const Module &module) {
  if (host().isQuick)
    return "function(sroa,early-cse)";
  unsigned largest = 0, checks = 0;
  for (const Function &function : module) {
    largest = std::max(largest, loopSize(function));
    checks = std::max(checks, checksIn(function));
  }
  if (checks > mostChecks)
    return (Twine("function(") + checkedPasses + ")").str();
  const char *vectorise = largest <= largestVectorised ? vectorPasses : "";
  return (Twine("function(") + scalarPasses + vectorise + lastPasses + ")")
      .str();
}

bool addOwnPass(StringRef name, FunctionPassManager &passes,
                ArrayRef<PassBuilder::PipelineElement>) {
  if (name == "spare-uniform-loops")
    passes.addPass(SpareUniformLoops());
  else if (name == "prefetch-rows")
    passes.addPass(PrefetchRows());
  else if (name == "reduce-atomic-loops")
    passes.addPass(ReduceAtomicLoops());
  else
    return false;
  return true;
}

bool hasValue(const Function &function,
              function_ref<bool(const Type *)> isOne) {
  return llvm::any_of(instructions(function), [&](const Instruction &one) {
    return isOne(one.getType()) ||
           llvm::any_of(one.operand_values(), [&](const Value *value) {
             return isOne(value->getType());
           });
  });
}

/// With half as many registers, long functions take long to compile; where
/// there are only integers, another description of the processor does.
bool doesWithoutAvx512(const Function &function) {
  constexpr unsigned longest = 1500; // instructions
  auto isVector = [](const Type *type) { return type->isVectorTy(); };
  auto isFloat = [](const Type *type) { return type->isFloatingPointTy(); };
  return function.getInstructionCount() <= longest &&
         hasValue(function, isFloat) && !hasValue(function, isVector);
}

void addSanitizer(ModulePassManager &passes) {
#ifdef COSTATE_SANITIZE
  passes.addPass(AddressSanitizerPass(AddressSanitizerOptions(),
                                      /*UseGlobalGC=*/false,
                                      /*UseOdrIndicator=*/false,
                                      AsanDtorKind::None, AsanCtorKind::None));
#endif
}

} // namespace

const Host &host() {
  static const Host detected = detectHost();
  return detected;
}

void setAttributes(Module &module) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", host().cpu);
    function.addFnAttr("target-features", host().features);
    function.addFnAttr("prefer-vector-width", utostr(host().vectorBits));
#ifdef COSTATE_SANITIZE
    function.addFnAttr(Attribute::SanitizeAddress);
#endif
  }
}

static std::unique_ptr<TargetMachine> createTargetMachine() {
  Triple triple(host().triple);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(targetOf(triple).createTargetMachine(
      triple, host().cpu, host().features, options, Reloc::PIC_, std::nullopt,
      host().isQuick ? CodeGenOptLevel::None : CodeGenOptLevel::Less,
      /*JIT=*/true));
}

namespace {

/// Machines that nobody uses. Never destroyed: compilations may run to the end
/// of the process.
struct IdleMachines {
  Mutex mutex;
  std::vector<std::unique_ptr<TargetMachine>> machines;

  static IdleMachines &get() {
    static auto &idle = *new IdleMachines;
    return idle;
  }
  std::unique_ptr<TargetMachine> take() {
    std::lock_guard lock(mutex);
    if (machines.empty())
      return nullptr;
    auto machine = std::move(machines.back());
    machines.pop_back();
    return machine;
  }
};

/// Where memory ends, a machine that may be in the middle of something is lost.
void giveBack(TargetMachine *machine) try {
  if (std::uncaught_exceptions())
    return;
  std::lock_guard lock(IdleMachines::get().mutex);
  IdleMachines::get().machines.emplace_back(machine);
} catch (const std::bad_alloc &) {
}

} // namespace

TargetMachinePointer borrowTargetMachine() {
  std::unique_ptr<TargetMachine> machine = IdleMachines::get().take();
  if (!machine)
    machine = createTargetMachine();
  return {machine.release(), giveBack};
}

Result<> optimise(Module &module, TargetMachine &machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
  setAttributes(module);
  conversion::runPasses(module, machine, [&](PassBuilder &builder) {
    builder.registerPipelineParsingCallback(addOwnPass);
    auto passes = conversion::parsePasses(builder, pipelineFor(module));
    addSanitizer(passes);
    return passes;
  });
  return inlineHostMaths(module, machine);
}

Result<std::string> emitObject(Module &module, TargetMachine &machine) {
  for (Function &function : module) {
    if (host().vectorBits == 512)
      widenByteMasks(function);
    if (isLong(function))
      spillFarValues(function);
    if (!function.isDeclaration() && doesWithoutAvx512(function))
      function.addFnAttr("target-features", host().scalarFeatures);
  }
  SmallString<0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  CodeGenFileType::ObjectFile))
    return Failure{ErrorCode::Internal, "this target emits no object files"};
  passes.run(module);
  return bytes.str().str();
}

} // namespace costate::compiler
