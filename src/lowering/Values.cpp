#include "lowering/Lowering.h"

#include "lowering/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace costate::lowering {

Location Lowering::at(Loc loc) {
  return FileLineColLoc::get(b.getContext(), loc.file, loc.line, loc.column);
}

Value Lowering::i64(Location loc, int64_t value) {
  return emitConstant(b, loc, DType::I64, value);
}

Value Lowering::boolean(Location loc, bool value) {
  return emitConstant(b, loc, DType::Bool, value);
}

Value Lowering::negate(Location loc, Value value) {
  Value yes = boolean(loc, true);
  return arith::XOrIOp::create(b, loc, value, yes);
}

Value Lowering::goesOn(Location loc, Jumps jumps) {
  Value jumped;
  auto add = [&](bool may, VarId flag) {
    if (!may)
      return;
    jumped = jumped ? arith::OrIOp::create(b, loc, jumped, current[flag])
                    : current[flag];
  };
  add(jumps.breaks, flags.breakFlag);
  add(jumps.continues, flags.continueFlag);
  add(jumps.returns, flags.returnFlag);
  return negate(loc, jumped);
}

void Lowering::clear(VarId flag, Location loc) {
  if (flag != syntax::none)
    current[flag] = boolean(loc, false);
}

DType Lowering::typeOfVariable(VarId variable) const {
  if (variable < kernel.variables.size())
    return kernel.variables[variable].type;
  if (variable < analysis.numVariables())
    return DType::Bool;
  return slotTypes[variable - analysis.numVariables()];
}

SmallVector<Value> Lowering::valuesOf(llvm::ArrayRef<ValueId> ids,
                                      size_t first) {
  SmallVector<Value> found;
  for (ValueId id : ids.drop_front(first))
    found.push_back(values[id]);
  return found;
}

/// A variable that this path does not declare counts as 0.
SmallVector<Value> Lowering::currentOf(llvm::ArrayRef<VarId> ids,
                                       Location loc) {
  SmallVector<Value> found;
  for (VarId id : ids)
    found.push_back(current[id] ? current[id]
                                : emitConstant(b, loc, typeOfVariable(id), 0));
  return found;
}

void Lowering::setCurrent(llvm::ArrayRef<VarId> ids, ValueRange values) {
  for (auto [id, value] : llvm::zip_equal(ids, values))
    current[id] = value;
}

} // namespace costate::lowering
