#include "compiler/targets/amd/Intrinsics.h"

#include "base/GpuShape.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"

#include <numbers>

using namespace llvm;

namespace costate::compiler {
namespace {

/// Of what kernels call a warp.
constexpr unsigned warpLanes = 32;

/// Builds in front of a call.
struct Builder : IRBuilder<> {
  Builder(CallInst &call, const GpuShape &shape)
      : IRBuilder<>(&call), lanes(static_cast<unsigned>(shape.lanes)) {}

  Value *call(Intrinsic::ID id, ArrayRef<Type *> types = {},
              ArrayRef<Value *> arguments = {}) {
    return CreateIntrinsic(id, types, arguments);
  }

  unsigned lanes;
};

//===-- Threads -----------------------------------------------------------===//

Value *threadNumber(Builder &b, CallInst &) {
  return b.call(Intrinsic::amdgcn_workitem_id_x);
}

Value *blockNumber(Builder &b, CallInst &) {
  return b.call(Intrinsic::amdgcn_workgroup_id_x);
}

/// What a launch passes besides arguments, of version 5 of code objects.
Value *hiddenArgument(Builder &b, unsigned bits, unsigned offset) {
  Value *start = b.call(Intrinsic::amdgcn_implicitarg_ptr);
  Value *place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), start, offset);
  LoadInst *load =
      b.CreateAlignedLoad(b.getIntNTy(bits), place, Align(bits / 8));
  load->setMetadata(LLVMContext::MD_invariant_load,
                    MDNode::get(b.getContext(), {}));
  return b.CreateZExt(load, b.getInt32Ty());
}

Value *blockCount(Builder &b, CallInst &) { return hiddenArgument(b, 32, 0); }
Value *threadCount(Builder &b, CallInst &) { return hiddenArgument(b, 16, 12); }

//===-- Threads that wait for each other ----------------------------------===//

void fence(Builder &b, AtomicOrdering ordering, StringRef scope) {
  b.CreateFence(ordering, b.getContext().getOrInsertSyncScopeID(scope));
}

Value *meet(Builder &b, Intrinsic::ID barrier, StringRef scope) {
  fence(b, AtomicOrdering::Release, scope);
  b.call(barrier);
  fence(b, AtomicOrdering::Acquire, scope);
  return nullptr;
}

Value *blockBarrier(Builder &b, CallInst &) {
  return meet(b, Intrinsic::amdgcn_s_barrier, "workgroup");
}

/// Lanes run together: this is one for the compiler.
Value *warpBarrier(Builder &b, CallInst &) {
  return meet(b, Intrinsic::amdgcn_wave_barrier, "wavefront");
}

Value *deviceFence(Builder &b, CallInst &) {
  fence(b, AtomicOrdering::AcquireRelease, "agent");
  return nullptr;
}

Value *blockFence(Builder &b, CallInst &) {
  fence(b, AtomicOrdering::AcquireRelease, "workgroup");
  return nullptr;
}

//===-- Lanes -------------------------------------------------------------===//

Value *ownLane(Builder &b) {
  return b.CreateAnd(b.call(Intrinsic::amdgcn_workitem_id_x), b.lanes - 1);
}

/// The first lane of the half that this one is in.
Value *firstOfHalf(Builder &b) {
  return b.CreateAnd(ownLane(b), b.getInt32(b.lanes - warpLanes));
}

Value *readLane(Builder &b, Value *value, Value *lane) {
  return b.call(Intrinsic::amdgcn_ds_bpermute, {},
                {b.CreateShl(lane, 2), value});
}

/// A mask comes first, of the lanes that are here together.
Value *shuffle(Builder &b, CallInst &call) {
  Value *lane = b.CreateAnd(call.getArgOperand(2), warpLanes - 1);
  return readLane(b, call.getArgOperand(1), b.CreateOr(firstOfHalf(b), lane));
}

/// Lanes past the end are their own.
Value *shuffleDown(Builder &b, CallInst &call) {
  Value *own = ownLane(b);
  Value *inWarp = b.CreateAnd(own, warpLanes - 1);
  Value *distance = call.getArgOperand(2);
  Value *isInside =
      b.CreateICmpULT(b.CreateAdd(inWarp, distance), b.getInt32(warpLanes));
  Value *lane = b.CreateSelect(isInside, b.CreateAdd(own, distance), own);
  return readLane(b, call.getArgOperand(1), lane);
}

/// Of a half, and of lanes that are here.
Value *lanesWith(Builder &b, Value *holds) {
  Type *word = b.getIntNTy(b.lanes);
  Value *all = b.call(Intrinsic::amdgcn_ballot, {word}, {holds});
  if (b.lanes == warpLanes)
    return all;
  Value *half = b.CreateLShr(all, b.CreateZExt(firstOfHalf(b), word));
  return b.CreateTrunc(half, b.getInt32Ty());
}

Value *ballot(Builder &b, CallInst &call) {
  return lanesWith(b, call.getArgOperand(1));
}

Value *anyHolds(Builder &b, CallInst &call) {
  return b.CreateIsNotNull(
      b.CreateAnd(lanesWith(b, call.getArgOperand(1)), call.getArgOperand(0)));
}

Value *allHold(Builder &b, CallInst &call) {
  Value *fails = lanesWith(b, b.CreateNot(call.getArgOperand(1)));
  return b.CreateIsNull(b.CreateAnd(fails, call.getArgOperand(0)));
}

Value *activeLanes(Builder &b, CallInst &) { return lanesWith(b, b.getTrue()); }

//===-- Numbers -----------------------------------------------------------===//

template <Intrinsic::ID id> Value *unary(Builder &b, CallInst &call) {
  return b.CreateUnaryIntrinsic(id, call.getArgOperand(0));
}

/// The instruction takes parts of a circle, less than one.
template <Intrinsic::ID id> Value *ofAngle(Builder &b, CallInst &call) {
  Value *x = call.getArgOperand(0);
  Value *circles = b.CreateFMul(
      x, ConstantFP::get(x->getType(), 0.5 * std::numbers::inv_pi));
  return b.CreateUnaryIntrinsic(
      id, b.CreateUnaryIntrinsic(Intrinsic::amdgcn_fract, circles));
}

/// As exact as CUDA's: LLVM scales what the instruction would lose.
Value *quotient(Builder &b, CallInst &call) {
  constexpr float ulps = 2.5f;
  Value *result = b.CreateFDiv(call.getArgOperand(0), call.getArgOperand(1));
  if (auto *division = dyn_cast<Instruction>(result))
    division->setMetadata(LLVMContext::MD_fpmath,
                          MDBuilder(b.getContext()).createFPMath(ulps));
  return result;
}

struct Replacement {
  Intrinsic::ID id;
  Value *(*make)(Builder &builder, CallInst &call);
};

constexpr Replacement replacements[] = {
    {Intrinsic::nvvm_read_ptx_sreg_tid_x, threadNumber},
    {Intrinsic::nvvm_read_ptx_sreg_ctaid_x, blockNumber},
    {Intrinsic::nvvm_read_ptx_sreg_ntid_x, threadCount},
    {Intrinsic::nvvm_read_ptx_sreg_nctaid_x, blockCount},
    {Intrinsic::nvvm_barrier_cta_sync_all, blockBarrier},
    {Intrinsic::nvvm_barrier_cta_sync_aligned_all, blockBarrier},
    {Intrinsic::nvvm_bar_warp_sync, warpBarrier},
    {Intrinsic::nvvm_membar_gl, deviceFence},
    {Intrinsic::nvvm_membar_cta, blockFence},
    {Intrinsic::nvvm_shfl_sync_idx_i32, shuffle},
    {Intrinsic::nvvm_shfl_sync_down_i32, shuffleDown},
    {Intrinsic::nvvm_vote_all_sync, allHold},
    {Intrinsic::nvvm_vote_any_sync, anyHolds},
    {Intrinsic::nvvm_vote_ballot_sync, ballot},
    {Intrinsic::nvvm_activemask, activeLanes},
    {Intrinsic::nvvm_sqrt_rn_f, unary<Intrinsic::sqrt>},
    {Intrinsic::nvvm_sin_approx_f, ofAngle<Intrinsic::amdgcn_sin>},
    {Intrinsic::nvvm_cos_approx_f, ofAngle<Intrinsic::amdgcn_cos>},
    {Intrinsic::nvvm_ex2_approx, unary<Intrinsic::amdgcn_exp2>},
    {Intrinsic::nvvm_lg2_approx_f, unary<Intrinsic::amdgcn_log>},
    {Intrinsic::nvvm_rsqrt_approx_f, unary<Intrinsic::amdgcn_rsq>},
    {Intrinsic::nvvm_div_full, quotient},
    {Intrinsic::nvvm_div_approx_f, quotient},
};

void replaceCalls(Function &function, const Replacement &by,
                  const GpuShape &shape) {
  for (User *user : make_early_inc_range(function.users())) {
    auto *call = cast<CallInst>(user);
    Builder builder(*call, shape);
    if (Value *made = by.make(builder, *call))
      call->replaceAllUsesWith(made);
    call->eraseFromParent();
  }
}

} // namespace

void replaceIntrinsics(Module &module, const GpuShape &shape) {
  SmallVector<Function *> functions(make_pointer_range(module.functions()));
  for (Function *function : functions)
    for (const Replacement &by : replacements)
      if (function->getIntrinsicID() == by.id)
        replaceCalls(*function, by, shape);
}

} // namespace costate::compiler
