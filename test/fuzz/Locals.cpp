/// Private arrays.

#include "fuzz/Statements.h"

using namespace mlir;

namespace costate::fuzz {

void Statements::declareLocal() {
  static constexpr Kind all[] = {Kind::F64, Kind::F64, Kind::F64, Kind::F64,
                                 Kind::F64, Kind::I64, Kind::I32, Kind::Bool};
  Kind kind = hasSingles && random.chance(30) ? Kind::F32 : random.pick(all);
  int64_t size = random.between(1, 4);
  bool isNarrow = (kind == Kind::F32 || kind == Kind::I32) && random.chance(40);
  auto type = ir::LocalType::get(
      b.getContext(), isNarrow ? narrowType(kind) : typeOf(kind), size);
  Value array = make<ir::LocalOp>(type);
  locals.push_back({kind, size, array});
  // Iterations differ in the elements that they store, and in those that are 0.
  if (loops == 0 || random.chance(30))
    return;
  storeLocal(locals.back());
  Value at = index(size);
  Value found = offer(make<ir::LocalLoadOp>(typeOf(kind), array, at));
  for (Variable &variable : variables)
    if (variable.kind == kind && isFloat(kind) && variable.isAssignable) {
      Value sum = make<arith::AddFOp>(variable.current, found);
      variable.current = tamed(sum);
      return;
    }
}

/// a[i] = v, often once more at once, and sometimes what a[j] was.
void Statements::writeLocal() {
  Local local = random.chance(50) ? locals.back() : random.pick(locals);
  if (random.chance(10))
    return shiftLocal(local);
  if (random.chance(12))
    return fillLocal(local);
  for (int count = random.between(1, 2); count > 0; --count)
    storeLocal(local);
}

/// A loop that does nothing else.
void Statements::fillLocal(const Local &local) {
  Value zero = integer(0), one = integer(1),
        count = integer(random.between(1, 4));
  auto loop = scf::ForOp::create(b, here(), zero, count, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Scope scope(*this);
  ++loops;
  offer(within(loop.getInductionVar(), 4));
  storeLocal(local);
  --loops;
}

void Statements::storeLocal(const Local &local) {
  Value value = expression(local.kind, 2);
  if (local.kind == Kind::I64 || local.kind == Kind::I32) {
    Value limit = integer(random.between(2, 5), local.kind);
    value = ir::RemOp::create(b, here(), value, limit);
  }
  value = tamed(value);
  Value at = index(local.size);
  ir::LocalStoreOp::create(b, here(), value, local.array, at);
}

/// a[i] = a[i - 1] for i = size - 1, ..., 1; or a is cleared.
void Statements::shiftLocal(const Local &local) {
  if (random.chance(30))
    return (void)ir::LocalClearOp::create(b, here(), local.array);
  for (int64_t at = local.size - 1; at > 0; --at) {
    Value from = integer(at - 1), to = integer(at);
    Value value = make<ir::LocalLoadOp>(typeOf(local.kind), local.array, from);
    ir::LocalStoreOp::create(b, here(), value, local.array, to);
  }
}

} // namespace costate::fuzz
