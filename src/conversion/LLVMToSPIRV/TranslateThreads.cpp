/// Functions and intrinsics that are operations of threads together.

#include "conversion/LLVMToSPIRV/AddressSpaces.h"
#include "conversion/LLVMToSPIRV/Atomics.h"
#include "conversion/LLVMToSPIRV/Calls.h"
#include "conversion/LLVMToSPIRV/Lanes.h"
#include "conversion/LLVMToSPIRV/Operations.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {
namespace {

constexpr auto subgroup = spv::Scope::Subgroup;
constexpr auto reduce = spv::GroupOperation::Reduce;

/// What a call becomes; null: it has no result.
using Call = Value (*)(SpirvBuilder &, ValueRange arguments);
struct KnownCall {
  StringRef name;
  Call make;
};

LogicalResult makeCall(Translation &t, Operation *op, ValueRange arguments,
                       ArrayRef<KnownCall> known, StringRef name) {
  const auto *call = llvm::find_if(
      known, [&](const KnownCall &call) { return call.name == name; });
  if (call == known.end())
    return t.none(op);
  Value result = call->make(t.b, arguments);
  return result ? t.set(op, result) : success();
}

//===-- Of a launch -------------------------------------------------------===//

Value threadNumber(SpirvBuilder &b, ValueRange) {
  return builtIn(b, "LocalInvocationId");
}

Value blockNumber(SpirvBuilder &b, ValueRange) {
  return builtIn(b, "WorkgroupId");
}

Value blockCount(SpirvBuilder &b, ValueRange) {
  return builtIn(b, "NumWorkgroups");
}

Value threadCount(SpirvBuilder &b, ValueRange) { return blockThreads(b); }

//===-- Barriers ----------------------------------------------------------===//

spv::MemorySemantics acquireRelease(SpirvBuilder &b) {
  return semantics(b.features(), LLVM::AtomicOrdering::acq_rel);
}

template <spv::Scope scope> Value barrier(SpirvBuilder &b, ValueRange) {
  spv::ControlBarrierOp::create(b, scope, scope,
                                acquireRelease(b) |
                                    spv::MemorySemantics::WorkgroupMemory);
  return {};
}

Value memoryBarrier(SpirvBuilder &b, ValueRange) {
  spv::MemoryBarrierOp::create(b, spv::Scope::Device, acquireRelease(b));
  return {};
}

//===-- Subgroups ---------------------------------------------------------===//

void need(SpirvBuilder &b, spv::Capability capability) {
  b.module.need(spv::Capability::GroupNonUniform);
  b.module.need(capability);
}

Value elect(SpirvBuilder &b, ValueRange) {
  b.module.need(spv::Capability::GroupNonUniform);
  return spv::GroupNonUniformElectOp::create(b, b.getI1Type(), subgroup);
}

Value allEqual(SpirvBuilder &b, ValueRange arguments) {
  need(b, spv::Capability::GroupNonUniformVote);
  Value same = spv::GroupNonUniformAllEqualOp::create(b, b.getI1Type(),
                                                      subgroup, arguments[0]);
  Value yes = b.i32(1);
  Value flag = perLane(b, b.select(same, yes, b.i32(0)));
  return spv::INotEqualOp::create(b, flag, b.i32(0));
}

Value sum(SpirvBuilder &b, ValueRange arguments) {
  need(b, spv::Capability::GroupNonUniformArithmetic);
  return spv::GroupNonUniformFAddOp::create(b, arguments[0].getType(), subgroup,
                                            reduce, arguments[0], Value());
}

Value maximum(SpirvBuilder &b, ValueRange arguments) {
  need(b, spv::Capability::GroupNonUniformArithmetic);
  return perLane(b, spv::GroupNonUniformUMaxOp::create(b, b.getI32Type(),
                                                       subgroup, reduce,
                                                       arguments[0], Value()));
}

Value shuffleDown(SpirvBuilder &b, ValueRange arguments) {
  need(b, spv::Capability::GroupNonUniformShuffleRelative);
  return spv::GroupNonUniformShuffleDownOp::create(b, subgroup, arguments[1],
                                                   arguments[2]);
}

/// NVIDIA's have a mask first, of the lanes that are here together.
Value shuffle(SpirvBuilder &b, ValueRange arguments) {
  need(b, spv::Capability::GroupNonUniformShuffle);
  return spv::GroupNonUniformShuffleOp::create(b, subgroup, arguments[1],
                                               arguments[2]);
}

template <class Vote> Value vote(SpirvBuilder &b, ValueRange arguments) {
  need(b, spv::Capability::GroupNonUniformVote);
  return Vote::create(b, b.getI1Type(), subgroup, arguments[1]);
}

Value lanesWith(SpirvBuilder &b, Value holds) {
  need(b, spv::Capability::GroupNonUniformBallot);
  Value lanes = spv::GroupNonUniformBallotOp::create(
      b, VectorType::get(4, b.getI32Type()), subgroup, holds);
  return perLane(b, spv::CompositeExtractOp::create(b, lanes, {0}));
}

Value ballot(SpirvBuilder &b, ValueRange arguments) {
  return lanesWith(b, arguments[1]);
}

Value activeLanes(SpirvBuilder &b, ValueRange) {
  Value yes = spv::ConstantOp::getOne(b.getI1Type(), b.getLoc(), b);
  return lanesWith(b, yes);
}

//===-- Numbers -----------------------------------------------------------===//

Value isShared(SpirvBuilder &b, ValueRange arguments) {
  Value top =
      spv::ShiftRightLogicalOp::create(b, arguments[0], b.i64(tagShift));
  return spv::IEqualOp::create(b, top, b.i64(sharedTag));
}

template <class To> Value unary(SpirvBuilder &b, ValueRange arguments) {
  return To::create(b, arguments[0]);
}

Value quotient(SpirvBuilder &b, ValueRange arguments) {
  return spv::FDivOp::create(b, arguments[0], arguments[1]);
}

/// Of NVVM.
constexpr KnownCall intrinsics[] = {
    {"read.ptx.sreg.tid.x", threadNumber},
    {"read.ptx.sreg.ctaid.x", blockNumber},
    {"read.ptx.sreg.nctaid.x", blockCount},
    {"read.ptx.sreg.ntid.x", threadCount},
    {"barrier.cta.sync.all", barrier<spv::Scope::Workgroup>},
    {"barrier.cta.sync.aligned.all", barrier<spv::Scope::Workgroup>},
    {"bar.warp.sync", barrier<subgroup>},
    {"membar.gl", memoryBarrier},
    {"isspacep.shared", isShared},
    {"redux.sync.umax", maximum},
    {"membar.cta", memoryBarrier},
    {"shfl.sync.down.i32", shuffleDown},
    {"shfl.sync.idx.i32", shuffle},
    {"vote.all.sync", vote<spv::GroupNonUniformAllOp>},
    {"vote.any.sync", vote<spv::GroupNonUniformAnyOp>},
    {"vote.ballot.sync", ballot},
    {"activemask", activeLanes},
    {"sqrt.rn.f", unary<spv::GLSqrtOp>},
    {"sin.approx.f", unary<spv::GLSinOp>},
    {"cos.approx.f", unary<spv::GLCosOp>},
    {"ex2.approx.f", unary<spv::GLExp2Op>},
    {"ex2.approx.f32", unary<spv::GLExp2Op>},
    {"lg2.approx.f", unary<spv::GLLog2Op>},
    {"div.full", quotient},
    {"div.approx.f", quotient},
};

/// Of the lanes that are here together; those that all have the same answer of.
constexpr KnownCall subgroupCalls[] = {
    {"elect", elect},
    {"all_equal", allEqual},
    {"add_f32", sum},
    {"add_f64", sum},
};

LogicalResult intrinsic(Translation &t, LLVM::CallIntrinsicOp op) {
  StringRef name = op.getIntrin();
  if (!name.consume_front("llvm.nvvm."))
    return t.none(op);
  SmallVector<Value> arguments = llvm::map_to_vector(
      op.getArgs(), [&](Value value) { return t.get(value); });
  return makeCall(t, op, arguments, intrinsics, name);
}

} // namespace

LogicalResult subgroupCall(Translation &t, Operation *op, StringRef name) {
  SmallVector<Value> arguments = llvm::map_to_vector(
      op->getOperands(), [&](Value value) { return t.get(value); });
  return makeCall(t, op, arguments, subgroupCalls, name);
}

llvm::ArrayRef<KnownOperation> threadOperations() {
  static const KnownOperation all[] = {row<LLVM::CallIntrinsicOp, intrinsic>()};
  return all;
}

} // namespace costate::conversion
