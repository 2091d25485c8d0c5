#include "compiler/targets/metal/Lacks.h"

#include "compiler/targets/Doubles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace costate::compiler {
namespace {

bool isOrdinal(Value value) {
  auto wide = value.getDefiningOp<arith::ExtFOp>();
  return wide && llvm::all_of(wide->getUsers(), [](Operation *user) {
           return isa<arith::BitcastOp, arith::CmpFOp>(user);
         });
}

/// Whether it is a part of where a number is in the order of all (lowering),
/// which the user has not written, and is computed of integers.
bool ordersNumbers(Operation *op) {
  if (isa<arith::ExtFOp>(op))
    return isOrdinal(op->getResult(0));
  return isa<arith::BitcastOp, arith::CmpFOp>(op) &&
         llvm::all_of(op->getOperands(), isOrdinal);
}

} // namespace

std::optional<Fault> lackOf(Operation *op, const MetalFeatures &has) {
  if (has.f64 || !worksOnDoubles(op) || ordersNumbers(op))
    return std::nullopt;
  return Fault{"this device has no floats of 64 bits (f64)",
               "use f32, or another device"};
}

} // namespace costate::compiler
