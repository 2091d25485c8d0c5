#include "fuzz/Emitter.h"

using namespace mlir;

namespace costate::fuzz {

Emitter::Emitter(MLIRContext &context, uint64_t seed)
    : b(&context), random(seed), file(b.getStringAttr("kernel")) {}

Type Emitter::typeOf(Kind kind) {
  switch (kind) {
  case Kind::F64:
    return b.getF64Type();
  case Kind::F32:
    return b.getF32Type();
  case Kind::I64:
    return b.getI64Type();
  case Kind::I32:
    return b.getI32Type();
  case Kind::Bool:
    return b.getI1Type();
  }
  llvm_unreachable("unknown kind");
}

Kind Emitter::kindOf(Value value) {
  Type type = value.getType();
  return type.isF64()         ? Kind::F64
         : type.isF32()       ? Kind::F32
         : type.isInteger(64) ? Kind::I64
         : type.isInteger(32) ? Kind::I32
                              : Kind::Bool;
}

Location Emitter::here() { return FileLineColLoc::get(file, ++line, 1); }

Value Emitter::named(StringRef name, ValueRange operands) {
  OperationState state(here(), name, operands, operands.front().getType());
  return b.create(state)->getResult(0);
}

Value Emitter::integer(int64_t value, Kind kind) {
  return make<arith::ConstantOp>(b.getIntegerAttr(typeOf(kind), value));
}

Value Emitter::real(double value, Kind kind) {
  return make<arith::ConstantOp>(b.getFloatAttr(typeOf(kind), value));
}

Value Emitter::boolean(bool value) {
  return make<arith::ConstantOp>(b.getBoolAttr(value));
}

Value Emitter::literal(Kind kind) {
  if (kind == Kind::Bool)
    return boolean(random.chance(50));
  if (isFloat(kind))
    return real(random.between(-24, 24) / 16.0, kind);
  return integer(random.between(-2, 4), kind);
}

Value Emitter::offer(Value value) {
  pools[size_t(kindOf(value))].push_back(value);
  return value;
}

Value Emitter::within(Value value, int64_t bound) {
  bounds[value] = bound;
  return value;
}

Value Emitter::visible(Kind kind) {
  const std::vector<Value> &pool = pools[size_t(kind)];
  int count = int(pool.size());
  int choice = random.below(count + int(variables.size()) + 1);
  if (choice < count)
    return pool[size_t(choice)];
  for (size_t k = 0; k < variables.size(); ++k) {
    size_t at = (size_t(choice) + k) % variables.size();
    if (variables[at].kind == kind && variables[at].current)
      return variables[at].current;
  }
  return count > 0 ? random.pick(pool) : Value();
}

Value Emitter::visibleIndex(int64_t extent) {
  const std::vector<Value> &pool = pools[size_t(Kind::I64)];
  SmallVector<Value> fitting;
  for (Value value : pool)
    if (int64_t bound = bounds.lookup(value); bound > 0 && bound <= extent)
      fitting.push_back(value);
  return fitting.empty() ? Value() : random.pick(fitting);
}

unsigned Emitter::declare(Kind kind, Value value) {
  variables.push_back({kind, value});
  return unsigned(variables.size() - 1);
}

void Emitter::Fresh::swap() {
  std::swap(pools, emitter.pools);
  std::swap(arrays, emitter.arrays);
  std::swap(variables, emitter.variables);
  std::swap(locals, emitter.locals);
}

Emitter::Scope::Scope(Emitter &emitter)
    : emitter(emitter), variables(emitter.variables.size()),
      locals(emitter.locals.size()) {
  for (unsigned k = 0; k < kindCount; ++k)
    sizes[k] = emitter.pools[k].size();
}

Emitter::Scope::~Scope() {
  for (unsigned k = 0; k < kindCount; ++k)
    emitter.pools[k].resize(sizes[k]);
  emitter.variables.resize(variables);
  emitter.locals.resize(locals);
}

} // namespace costate::fuzz
