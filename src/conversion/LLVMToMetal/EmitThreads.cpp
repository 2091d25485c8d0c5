/// Functions and intrinsics that are operations of threads together.

#include "conversion/LLVMToMetal/Emission.h"

#include "conversion/LLVMToSPIRV/AddressSpaces.h"

using namespace mlir;

namespace costate::conversion {
namespace {

using Arguments = ArrayRef<std::string>;
/// The expression that a call becomes.
using Expression = std::string (*)(Arguments);
struct KnownCall {
  StringRef name;
  Expression expression;
};

template <const auto &text> std::string always(Arguments) { return text; }

/// A function of the argument `k`.
template <const auto &name, unsigned k = 0> std::string of(Arguments x) {
  return call(name, {x[k]});
}

/// NVIDIA's have a mask first, of the lanes that are here together.
template <const auto &name> std::string shuffle(Arguments x) {
  return call(name, {x[1], "ushort(" + x[2] + ")"});
}

template <const auto &name> std::string vote(Arguments x) {
  return std::string("uint((simd_vote::vote_t)") + name + "(" + x[1] + "))";
}

std::string activeLanes(Arguments) {
  return "uint((simd_vote::vote_t)simd_active_threads_mask())";
}

std::string isShared(Arguments x) {
  return "(" + x[0] + " >> " + std::to_string(tagShift) +
         "ul) == " + literal(APInt(64, sharedTag), 64);
}

std::string quotient(Arguments x) { return x[0] + " / " + x[1]; }

constexpr char thread[] = "in_block", block[] = "block", blocks[] = "blocks",
               threads[] = "block_threads",
               blockBarrier[] = "costate_block_barrier()",
               warpBarrier[] = "costate_simdgroup_barrier()",
               deviceFence[] = "costate_device_fence()",
               blockFence[] = "costate_block_fence()", simdMax[] = "simd_max",
               shuffleDown[] = "simd_shuffle_down",
               shuffleTo[] = "simd_shuffle", all[] = "simd_all",
               any[] = "simd_any", ballot[] = "simd_ballot",
               root[] = "precise::sqrt", sine[] = "fast::sin",
               cosine[] = "fast::cos", power[] = "fast::exp2",
               logarithm[] = "fast::log2";

/// Of NVVM.
constexpr KnownCall intrinsics[] = {
    {"read.ptx.sreg.tid.x", always<thread>},
    {"read.ptx.sreg.ctaid.x", always<block>},
    {"read.ptx.sreg.nctaid.x", always<blocks>},
    {"read.ptx.sreg.ntid.x", always<threads>},
    {"barrier.cta.sync.all", always<blockBarrier>},
    {"barrier.cta.sync.aligned.all", always<blockBarrier>},
    {"bar.warp.sync", always<warpBarrier>},
    {"membar.gl", always<deviceFence>},
    {"membar.cta", always<blockFence>},
    {"isspacep.shared", isShared},
    {"redux.sync.umax", of<simdMax>},
    {"shfl.sync.down.i32", shuffle<shuffleDown>},
    {"shfl.sync.idx.i32", shuffle<shuffleTo>},
    {"vote.all.sync", of<all, 1>},
    {"vote.any.sync", of<any, 1>},
    {"vote.ballot.sync", vote<ballot>},
    {"activemask", activeLanes},
    {"sqrt.rn.f", of<root>},
    {"sin.approx.f", of<sine>},
    {"cos.approx.f", of<cosine>},
    {"ex2.approx.f", of<power>},
    {"ex2.approx.f32", of<power>},
    {"lg2.approx.f", of<logarithm>},
    {"div.full", quotient},
    {"div.approx.f", quotient},
};

LogicalResult intrinsic(Emission &e, LLVM::CallIntrinsicOp op) {
  StringRef name = op.getIntrin();
  if (!name.consume_front("llvm.nvvm."))
    return e.none(op);
  const auto *known = llvm::find_if(
      intrinsics, [&](const KnownCall &one) { return one.name == name; });
  if (known == std::end(intrinsics))
    return e.none(op);
  SmallVector<std::string> arguments = llvm::map_to_vector(
      op.getArgs(), [&](Value value) { return e.get(value); });
  std::string expression = known->expression(arguments);
  if (op->getNumResults())
    return e.set(op, expression);
  e.line(expression + ";");
  return success();
}

} // namespace

llvm::ArrayRef<EmittedOperation> emittedThreads() {
  static const EmittedOperation all[] = {
      emitted<LLVM::CallIntrinsicOp, intrinsic>()};
  return all;
}

} // namespace costate::conversion
