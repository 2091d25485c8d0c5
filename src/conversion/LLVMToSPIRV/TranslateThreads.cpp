#include "conversion/LLVMToSPIRV/Translator.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

Value Translator::builtIn(StringRef name) {
  Value address = spv::AddressOfOp::create(b, module.builtIn(name));
  Value all = spv::LoadOp::create(b, address);
  return spv::CompositeExtractOp::create(b, all, ArrayRef<int32_t>{0});
}

Value Translator::blockThreads() {
  spv::SpecConstantOp constant = module.blockThreads();
  return spv::ReferenceOfOp::create(b, b.getI32Type(),
                                    FlatSymbolRefAttr::get(constant));
}

/// No grid is without blocks, but that is known to nobody.
Value Translator::isEmptyGrid() {
  return spv::IEqualOp::create(b, builtIn("NumWorkgroups"), i32(0));
}

Value Translator::opaque(Value condition) {
  return spv::LogicalOrOp::create(b, condition, isEmptyGrid());
}

/// 0, but no driver knows that.
Value Translator::laneOrZero(Type type) {
  return resized(select(isEmptyGrid(), builtIn("LocalInvocationId"), i32(0)),
                 type);
}

/// The same number, but no driver knows how it is made, nor that all lanes have
/// it: NVIDIA's (580.159.04) makes wrong code of loops that depend on one.
Value Translator::perLane(Value number) {
  return spv::IAddOp::create(b, number, laneOrZero(number.getType()));
}

void Translator::barrier(spv::Scope scope) {
  using Order = spv::MemorySemantics;
  spv::ControlBarrierOp::create(b, scope, scope,
                                semantics(LLVM::AtomicOrdering::acq_rel) |
                                    Order::WorkgroupMemory);
}

void Translator::needSubgroups(spv::Capability capability) {
  module.need(spv::Capability::GroupNonUniform);
  module.need(capability);
}

/// Operations of the lanes that are here together; those that all have the same
/// answer of.
LogicalResult Translator::subgroupCall(LLVM::CallOp op, StringRef name) {
  Value value = op.getNumOperands() ? operand(op, 0) : Value();
  constexpr auto scope = spv::Scope::Subgroup;
  if (name == "elect") {
    module.need(spv::Capability::GroupNonUniform);
    return set(op,
               spv::GroupNonUniformElectOp::create(b, b.getI1Type(), scope));
  }
  if (name == "all_equal") {
    needSubgroups(spv::Capability::GroupNonUniformVote);
    Value same =
        spv::GroupNonUniformAllEqualOp::create(b, b.getI1Type(), scope, value);
    Value flag = perLane(select(same, i32(1), i32(0)));
    return set(op, spv::INotEqualOp::create(b, flag, i32(0)));
  }
  if (name == "add_f32" || name == "add_f64") {
    needSubgroups(spv::Capability::GroupNonUniformArithmetic);
    return set(op, spv::GroupNonUniformFAddOp::create(
                       b, value.getType(), scope, spv::GroupOperation::Reduce,
                       value, Value()));
  }
  return none(op);
}

LogicalResult Translator::gpuIntrinsic(LLVM::CallIntrinsicOp op) {
  StringRef name = op.getIntrin();
  auto argument = [&](unsigned k) { return get(op.getArgs()[k]); };
  if (!name.consume_front("llvm.nvvm."))
    return none(op);
  if (name == "read.ptx.sreg.tid.x")
    return set(op, builtIn("LocalInvocationId"));
  if (name == "read.ptx.sreg.ctaid.x")
    return set(op, builtIn("WorkgroupId"));
  if (name == "read.ptx.sreg.nctaid.x")
    return set(op, builtIn("NumWorkgroups"));
  if (name == "read.ptx.sreg.ntid.x")
    return set(op, blockThreads());
  if (name == "barrier.cta.sync.all" ||
      name == "barrier.cta.sync.aligned.all") {
    barrier(spv::Scope::Workgroup);
    return success();
  }
  if (name == "bar.warp.sync") {
    barrier(spv::Scope::Subgroup);
    return success();
  }
  if (name == "membar.gl") {
    spv::MemoryBarrierOp::create(b, spv::Scope::Device,
                                 semantics(LLVM::AtomicOrdering::acq_rel));
    return success();
  }
  if (name == "isspacep.shared") {
    Value top =
        spv::ShiftRightLogicalOp::create(b, argument(0), i64(sharedTagShift));
    return set(op, spv::IEqualOp::create(b, top, i64(sharedTag)));
  }
  if (name == "redux.sync.umax") {
    needSubgroups(spv::Capability::GroupNonUniformArithmetic);
    return set(op, perLane(spv::GroupNonUniformUMaxOp::create(
                       b, b.getI32Type(), spv::Scope::Subgroup,
                       spv::GroupOperation::Reduce, argument(0), Value())));
  }
  if (name == "shfl.sync.down.i32") {
    needSubgroups(spv::Capability::GroupNonUniformShuffleRelative);
    return set(op, spv::GroupNonUniformShuffleDownOp::create(
                       b, spv::Scope::Subgroup, argument(1), argument(2)));
  }
  if (name == "sqrt.rn.f")
    return set(op, spv::GLSqrtOp::create(b, argument(0)));
  if (name == "sin.approx.f")
    return set(op, spv::GLSinOp::create(b, argument(0)));
  if (name == "cos.approx.f")
    return set(op, spv::GLCosOp::create(b, argument(0)));
  if (name == "ex2.approx.f" || name == "ex2.approx.f32")
    return set(op, spv::GLExp2Op::create(b, argument(0)));
  if (name == "lg2.approx.f")
    return set(op, spv::GLLog2Op::create(b, argument(0)));
  if (name == "div.full" || name == "div.approx.f")
    return set(op, spv::FDivOp::create(b, argument(0), argument(1)));
  return none(op);
}

} // namespace costate::conversion
