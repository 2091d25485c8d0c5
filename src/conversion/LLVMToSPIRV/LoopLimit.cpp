#include "conversion/LLVMToSPIRV/LoopLimit.h"

#include "conversion/LLVMToSPIRV/GlobalMemory.h"
#include "conversion/LLVMToSPIRV/Lanes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

/// Loops at any depth, those of functions that are called among them.
static int64_t loopsIn(Operation *code) {
  int64_t loops = 0;
  code->walk([&](Operation *op) {
    loops += op != code && isa<scf::WhileOp>(op);
    auto call = dyn_cast<LLVM::CallOp>(op);
    if (!call || !call.getCallee())
      return;
    auto function = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
        op, call.getCalleeAttr());
    loops += function ? loopsIn(function) : 0;
  });
  return loops;
}

static Value passes(SpirvBuilder &b) {
  return spv::AddressOfOp::create(b, b.module.passes());
}

void startPasses(Translation &t) {
  SpirvBuilder &b = t.b;
  if (b.features().endsLongLoops)
    spv::StoreOp::create(b, passes(b), b.i32(0));
  countPass(t, t.from);
}

/// Such a device runs all branches, whether or not a thread takes them, so each
/// loop inside is run through once without threads: where it ends, or where
/// none has come to it. One thread of the subgroup counts for all.
void countPass(Translation &t, Operation *code) {
  SpirvBuilder &b = t.b;
  if (!b.features().endsLongLoops)
    return;
  b.module.need(spv::Capability::GroupNonUniform);
  Value counts = spv::GroupNonUniformElectOp::create(b, b.getI1Type(),
                                                     spv::Scope::Subgroup);
  Value more = b.select(counts, b.i32(1 + loopsIn(code)), b.i32(0));
  Value cell = passes(b);
  Value before = spv::LoadOp::create(b, cell);
  spv::StoreOp::create(b, cell, spv::IAddOp::create(b, before, more));
}

Value isCut(Translation &t) {
  SpirvBuilder &b = t.b;
  if (!b.features().endsLongLoops || !isKernel(t.from))
    return {};
  constexpr int64_t passesOfThread = 65000; // 65535, and some to spare
  b.module.need(spv::Capability::GroupNonUniformArithmetic);
  Value own = spv::LoadOp::create(b, passes(b));
  Value all = spv::GroupNonUniformIAddOp::create(
      b, b.getI32Type(), spv::Scope::Subgroup, spv::GroupOperation::Reduce, own,
      Value());
  return spv::UGreaterThanEqualOp::create(b, all, b.i32(passesOfThread));
}

void tellCut(Translation &t) {
  SpirvBuilder &b = t.b;
  Value flag = globalPointer(b, launchWord(b, CutLoops), b.getI32Type());
  spv::AtomicOrOp::create(b, b.getI32Type(), flag, spv::Scope::Device,
                          spv::MemorySemantics::None, b.i32(1));
}

} // namespace costate::conversion
