#include "sizing/Costs.h"

#include "ir/Functions.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::sizing {
namespace {

constexpr Costs::Table cpu = {.arithmetic = 1,
                              .wideArithmetic = 1,
                              .quotient = 6,
                              .wideQuotient = 6,
                              .function = 20,
                              .wideFunction = 20,
                              .smallFunction = 20,
                              .twin = 20,
                              .philox = 60,
                              .load = 1,
                              .addition = 64,
                              .call = 0,
                              .loop = 1 << 20,
                              .value = 8,
                              .word = 2,
                              .saving = 8,
                              .lanes = {.index = 0.25,
                                        .sum = 12,
                                        .access = 2,
                                        .gathered = 3,
                                        .alone = 3,
                                        .waiting = 0.3,
                                        .gain = 0.7,
                                        .side = 12,
                                        .interleaved = 9,
                                        .guessed = 4,
                                        .streams = 16,
                                        .few = 16,
                                        .ordered = 8,
                                        .latencies = {.function = 40,
                                                      .quotient = 13,
                                                      .load = 7,
                                                      .gather = 24,
                                                      .arithmetic = 4,
                                                      .integer = 1,
                                                      .rate = 3,
                                                      .waiting = 0.1,
                                                      .gain = 0.88}}};

/// Functions: those of device/DeviceMaths.c and of libclc. Accesses that lanes
/// do not share: 28 more bytes on an H200.
constexpr Costs::Table gpu = {.arithmetic = 1,
                              .wideArithmetic = 2,
                              .quotient = 12,
                              .wideQuotient = 20,
                              .function = 34,
                              .wideFunction = 80,
                              .smallFunction = 26,
                              .twin = 4,
                              .philox = 40,
                              .load = 8,
                              .addition = 64,
                              .call = 200,
                              .loop = 1 << 20,
                              .value = 0,
                              .word = 20,
                              .saving = 8,
                              .tiles = {.branch = 32,
                                        .uncoalesced = 200,
                                        .depth = 48,
                                        .batch = 4,
                                        .batchedCode = 64,
                                        .batchedRows = 4,
                                        .localRows = 64}};

constexpr Costs::Table fastGpu = [] {
  Costs::Table table = gpu;
  table.quotient = table.function = table.smallFunction = table.twin = 8;
  return table;
}();

const Costs::Table &tableOf(Target target) {
  switch (target) {
  case Target::Cpu:
    return cpu;
  case Target::Gpu:
    return gpu;
  case Target::GpuFastMath:
    return fastGpu;
  }
  llvm_unreachable("a target has a table");
}

bool isSmallFunction(Operation *op) {
  return isa<ir::SinOp, ir::CosOp, ir::ExpOp, ir::Exp2Op, ir::LogOp, ir::Log2Op,
             ir::Log10Op>(op);
}

bool isQuotient(Operation *op) {
  return isa<arith::DivFOp, math::SqrtOp, ir::DivOp, ir::RemOp>(op);
}

bool isFunction(Operation *op) {
  return op->hasTrait<ir::OpTrait::IsFunction>() ||
         isa<arith::RemFOp, ir::CustomOp>(op);
}

bool isFree(Operation *op) {
  return op->getNumResults() == 0 || matchPattern(op, m_Constant()) ||
         isa<ir::StopGradientOp>(op);
}

} // namespace

Costs::Costs(Target target) : table(tableOf(target)) {}

int64_t Costs::of(Operation *op) const {
  if (isFree(op))
    return 0;
  bool wide =
      llvm::any_of(op->getResultTypes(), [](Type t) { return t.isF64(); });
  if (isa<func::CallOp>(op))
    return ofCall(op);
  if (isa<ir::PhiloxOp>(op))
    return table.philox;
  if (isFunction(op))
    return ofFunction(op, wide);
  if (isQuotient(op))
    return wide ? table.wideQuotient : table.quotient;
  if (isa<ir::LoadOp>(op))
    return table.load;
  return wide ? table.wideArithmetic : table.arithmetic;
}

int64_t Costs::ofFunction(Operation *op, bool wide) const {
  if (wide)
    return table.wideFunction;
  return isSmallFunction(op) ? table.smallFunction : table.function;
}

/// What the function does. One with loops costs more than anything may.
int64_t Costs::ofCall(Operation *op) const {
  if (table.call)
    return table.call;
  int64_t sum = 0;
  ir::calleeOf(cast<func::CallOp>(op)).walk([&](Operation *inner) {
    if (!isa<func::FuncOp>(inner))
      sum += isa<LoopLikeOpInterface>(inner) ? table.loop : of(inner);
  });
  return sum;
}

int64_t Costs::ofTwin(Operation *op) const {
  return op->getResult(0).getType().isF32() ? table.twin : of(op);
}

/// Bits share a word, but each of them is put there and taken out.
int64_t Costs::ofSaving(Type type) const {
  int64_t bits = type.getIntOrFloatBitWidth();
  return std::max(table.saving, table.value + table.word * bits / 32);
}

} // namespace costate::sizing
