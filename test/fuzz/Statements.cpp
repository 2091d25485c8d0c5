#include "fuzz/Statements.h"

using namespace mlir;

namespace costate::fuzz {

//===-- Lists -------------------------------------------------------------===//

void Statements::statements(int count, int depth) {
  for (; count > 0 && !isFull(); --count) {
    size_t known = raised.size();
    statement(depth);
    if (raised.size() == known)
      continue;
    if (count > 1)
      guarded(count - 1, depth);
    return;
  }
}

/// The statements after one that may have jumped.
void Statements::guarded(int count, int depth) {
  Value calm = noneRaised(raised);
  branch(calm, [&] { statements(count, depth); }, nullptr);
}

Value Statements::noneRaised(ArrayRef<int> among) {
  Value any;
  for (int flag : among) {
    Value up = variables[size_t(flag)].current;
    any = any ? make<arith::OrIOp>(any, up) : up;
  }
  return negated(any);
}

void Statements::body(int depth, int most) {
  statements(random.between(1, most), depth - 1);
}

void Statements::statement(int depth) {
  if (random.chance(localPercent))
    return locals.empty() || random.chance(loops > 0 ? 35 : 15) ? declareLocal()
                                                                : writeLocal();
  if (rangeHere && random.chance(rangePercent))
    return rangeHere(depth);
  int choice = random.below(100);
  if (depth > 0 && choice < 22)
    return loop(depth);
  if (depth > 0 && choice < 36)
    return random.chance(25) ? ifWithoutResults(depth) : ifStatement(depth);
  if (choice < 42 && (flags.breaks >= 0 || flags.continues >= 0 ||
                      (flags.returns >= 0 && random.chance(50))))
    return jump(depth);
  if (choice < 64)
    return write();
  if (choice < 70)
    return inPlace();
  if (choice < 73)
    return readThenOverwrite();
  if (choice < 82)
    return declareSome(1);
  if (choice < 86)
    return (void)offer(
        expression(random.chance(60) ? Kind::F64 : Kind::I64, 2));
  if (choice < 90)
    return count();
  assign();
}

//===-- Straight code -----------------------------------------------------===//

void Statements::assign() {
  SmallVector<unsigned> found;
  for (unsigned k = 0; k < variables.size(); ++k)
    if (variables[k].isAssignable && !variables[k].isFlag)
      found.push_back(k);
  if (found.empty())
    return;
  // Later variables are those of inner blocks.
  unsigned k = random.chance(50) ? found.back() : random.pick(found);
  Value value = expression(variables[k].kind, 2);
  variables[k].current = tamed(value);
}

/// v = v + something that is often the same in every iteration.
void Statements::count() {
  for (Variable &variable : llvm::reverse(variables)) {
    if (!variable.isAssignable || variable.isFlag || isFloat(variable.kind) ||
        variable.kind == Kind::Bool)
      continue;
    Value step =
        random.chance(60) ? literal(variable.kind) : whole(variable.kind, 0);
    variable.current = random.chance(70)
                           ? make<arith::AddIOp>(variable.current, step)
                           : make<arith::AddIOp>(step, variable.current);
    return;
  }
  assign();
}

void Statements::declareSome(int count) {
  static constexpr Kind all[] = {Kind::F64, Kind::F64, Kind::F64, Kind::F64,
                                 Kind::I64, Kind::I32, Kind::Bool};
  for (; count > 0; --count) {
    Kind kind = hasSingles && random.chance(30) ? Kind::F32 : random.pick(all);
    Value value = expression(kind, 2);
    declare(kind, tamed(value));
  }
}

/// An update that tells what the element was.
Value Statements::fetch(const Array &array, StringRef kind) {
  Value value = expression(array.kind, 2);
  if (isFloat(array.kind))
    value = tamed(value);
  if (array.element)
    value = make<ir::NarrowOp>(value, array.element);
  Values indices = place(array);
  if (kind != "compare")
    return make<ir::AtomicFetchOp>(typeOf(array.kind), kind, value,
                                   array.argument, indices);
  Value expected = random.chance(50) ? literal(array.kind) : value;
  return make<ir::CompareExchangeOp>(typeOf(array.kind), value, expected,
                                     array.argument, indices);
}

/// Of an element that belongs to the work item, so that it is what it was.
void Statements::fetchOwn(const Array &array) {
  static constexpr const char *ofAll[] = {
      "add", "add", "exchange", "exchange", "compare", "min", "max"};
  static constexpr const char *ofBits[] = {"and", "or", "xor"};
  static constexpr const char *ofTruth[] = {"and", "or", "xor", "exchange",
                                            "compare"};
  bool takesBits = !isFloat(array.kind) && random.chance(30);
  Value old = fetch(array, array.kind == Kind::Bool ? random.pick(ofTruth)
                           : takesBits              ? random.pick(ofBits)
                                                    : random.pick(ofAll));
  if (random.chance(85))
    offer(old);
}

void Statements::update(const Array &array) {
  if (array.role == Role::Most && !array.bits.empty())
    return (void)fetch(array, array.bits);
  if (array.role == Role::Sum && !isFloat(array.kind) && random.chance(20))
    return (void)fetch(array, "add");
  Value value = expression(array.kind, 2);
  if (array.element && (array.role == Role::Most || random.chance(50)))
    value = make<ir::NarrowOp>(value, array.element);
  Values indices = place(array);
  if (array.role == Role::Most && array.takesMaxima)
    return (void)ir::AtomicMaxOp::create(b, here(), value, array.argument,
                                         indices, false);
  if (array.role == Role::Most)
    return (void)ir::AtomicMinOp::create(b, here(), value, array.argument,
                                         indices, false);
  ir::AtomicAddOp::create(b, here(), value, array.argument, indices, false);
}

void Statements::write() {
  SmallVector<Array *> found;
  for (Array &array : arrays)
    if (!array.isConstant && array.role != Role::Read &&
        (array.role != Role::Common || common))
      found.push_back(&array);
  if (found.empty())
    return assign();
  Array &array = *random.pick(found);
  if (array.role == Role::Common)
    return storeCommon(array);
  // Of floats in serial code only: in a range it may not be known that the
  // element belongs to the work item, and then there is no derivative.
  bool mayFetch =
      array.role == Role::Own && (!isFloat(array.kind) || !array.own);
  if (mayFetch && random.chance(12))
    return fetchOwn(array);
  bool updates =
      array.role == Role::Sum || array.role == Role::Most || random.chance(15);
  if (updates && array.kind != Kind::Bool)
    return update(array);
  Value value = expression(array.kind, 2);
  bool wraps = array.element && random.chance(60);
  if (wraps && array.kind == Kind::I32 && random.chance(50)) {
    Value factor = integer(random.between(100, 40000), array.kind);
    value = make<arith::MulIOp>(value, factor);
  }
  if (!isFloat(array.kind) && array.kind != Kind::Bool && !wraps) {
    Value count = integer(random.between(2, 5), array.kind);
    value = ir::RemOp::create(b, here(), value, count);
  }
  Values indices = place(array);
  ir::StoreOp::create(b, here(), value, array.argument, indices);
  if (wraps && array.kind == Kind::I32 && array.role == Role::Own)
    useWrapped(array, indices);
}

/// What a narrow element has become is a factor.
void Statements::useWrapped(const Array &array, const Values &indices) {
  Value element = make<ir::LoadOp>(typeOf(array.kind), array.argument, indices);
  Value factor = fromNarrow(Kind::F64, element), x = number(Kind::F64, 1);
  Value product = make<arith::MulFOp>(x, factor);
  declare(Kind::F64, product);
}

void Statements::storeCommon(const Array &array) {
  Values indices = place(array);
  ir::StoreOp::create(b, here(), std::exchange(common, {}), array.argument,
                      indices);
}

/// x[i] = f(x[i])
void Statements::inPlace() {
  SmallVector<Array *> found;
  for (Array &array : arrays)
    if (!array.isConstant && array.role == Role::Own && isFloat(array.kind))
      found.push_back(&array);
  if (found.empty())
    return write();
  Array &array = *random.pick(found);
  Values indices = place(array);
  Value old = make<ir::LoadOp>(typeOf(array.kind), array.argument, indices);
  Scope scope(*this);
  offer(old);
  Value change = number(array.kind, 2);
  Value next = random.chance(50) ? make<arith::MulFOp>(old, change)
                                 : make<arith::AddFOp>(old, change);
  next = tamed(next);
  ir::StoreOp::create(b, here(), next, array.argument, indices);
}

/// A value of an element that is stored to before the value is used.
void Statements::readThenOverwrite() {
  SmallVector<Array *> found;
  for (Array &array : arrays)
    if (!array.isConstant && array.role == Role::Own && isFloat(array.kind))
      found.push_back(&array);
  if (found.empty())
    return assign();
  Array &array = *random.pick(found);
  Values indices = place(array);
  Value old = make<ir::LoadOp>(typeOf(array.kind), array.argument, indices);
  Value next = number(array.kind, 1);
  ir::StoreOp::create(b, here(), next, array.argument, indices);
  Value used = make<ir::SinOp>(old);
  Value product = make<arith::MulFOp>(old, used);
  declare(array.kind, product);
}

void Statements::sink() {
  Value sum;
  for (Variable &variable : variables) {
    if (variable.kind != Kind::F64 || !variable.isAssignable ||
        random.chance(20))
      continue;
    Value weight = literal(Kind::F64);
    Value part = make<arith::MulFOp>(variable.current, weight);
    sum = sum ? make<arith::AddFOp>(sum, part) : part;
  }
  for (size_t k = 0; k < locals.size(); ++k) {
    if (locals[k].kind != Kind::F64)
      continue;
    Value at = index(locals[k].size);
    Value part = make<ir::LocalLoadOp>(b.getF64Type(), locals[k].array, at);
    sum = sum ? make<arith::AddFOp>(sum, part) : part;
  }
  SmallVector<Array *> found;
  for (Array &array : arrays)
    if (array.kind == Kind::F64 && !array.isConstant &&
        array.role != Role::Read && array.role != Role::Most &&
        array.role != Role::Common)
      found.push_back(&array);
  if (!sum || found.empty())
    return;
  Array &array = *random.pick(found);
  Values indices = place(array);
  if (array.role != Role::Sum && random.chance(50))
    ir::StoreOp::create(b, here(), sum, array.argument, indices);
  else
    ir::AtomicAddOp::create(b, here(), sum, array.argument, indices, false);
}

//===-- Variables of regions ----------------------------------------------===//

/// Each assignable variable with a chance of `percent`; flags that a jump may
/// raise in any case.
Statements::Carried Statements::chooseCarried(int percent) {
  Carried carried;
  for (unsigned k = 0; k < variables.size(); ++k) {
    int number = int(k);
    bool isFlag = variables[k].isFlag;
    bool isUsed = number == flags.breaks || number == flags.continues ||
                  number == flags.returns;
    if (variables[k].isAssignable && (isFlag ? isUsed : random.chance(percent)))
      carried.push_back(k);
  }
  return carried;
}

Values Statements::currentOf(const Carried &carried) {
  Values values;
  for (unsigned k : carried)
    values.push_back(variables[k].current);
  return values;
}

void Statements::setCurrent(const Carried &carried, ValueRange values) {
  for (auto [k, value] : llvm::zip_first(carried, values))
    variables[k].current = value;
}

std::vector<bool> Statements::freeze(const Carried &carried) {
  std::vector<bool> old;
  for (auto [k, variable] : llvm::enumerate(variables)) {
    old.push_back(variable.isAssignable);
    variable.isAssignable &= llvm::is_contained(carried, unsigned(k));
  }
  return old;
}

void Statements::restore(const std::vector<bool> &assignable) {
  for (auto [variable, old] : llvm::zip(variables, assignable))
    variable.isAssignable = old;
}

//===-- Branches ----------------------------------------------------------===//

void Statements::branch(Value condition, llvm::function_ref<void()> then,
                        llvm::function_ref<void()> otherwise) {
  Carried carried = chooseCarried(60);
  Values old = currentOf(carried);
  bool hasElse = !carried.empty() || otherwise;
  auto op = scf::IfOp::create(b, here(), ValueRange(old).getTypes(), condition,
                              /*addThenBlock=*/true, hasElse);
  std::vector<bool> outer = freeze(carried);
  for (unsigned side = 0; side < (hasElse ? 2 : 1); ++side) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&op->getRegion(side).front());
    setCurrent(carried, old);
    Scope scope(*this);
    if (auto &part = side == 0 ? then : otherwise)
      part();
    scf::YieldOp::create(b, here(), currentOf(carried));
  }
  restore(outer);
  setCurrent(carried, op.getResults());
}

void Statements::ifStatement(int depth) {
  Value yes = condition(2);
  auto then = [&] { body(depth, 3); };
  auto otherwise = [&] { body(depth, 2); };
  if (random.chance(60))
    branch(yes, then, otherwise);
  else
    branch(yes, then, nullptr);
}

void Statements::ifWithoutResults(int depth) {
  Value yes = condition(2);
  auto op = scf::IfOp::create(b, here(), TypeRange{}, yes, true, false);
  std::vector<bool> outer = freeze({});
  Flags outerFlags = flags;
  flags = {};
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(op.thenBlock());
    Scope scope(*this);
    body(depth, 2);
    scf::YieldOp::create(b, here());
  }
  flags = outerFlags;
  restore(outer);
}

void Statements::jump(int depth) {
  SmallVector<int> allowed;
  for (int flag : {flags.breaks, flags.continues, flags.returns})
    if (flag >= 0 && variables[size_t(flag)].isAssignable)
      allowed.push_back(flag);
  if (allowed.empty())
    return assign();
  int flag = random.pick(allowed);
  Value leaves = condition(2);
  branch(
      leaves,
      [&] {
        statements(random.below(2), 0);
        variables[size_t(flag)].current = boolean(true);
      },
      nullptr);
  raised.push_back(flag);
}

} // namespace costate::fuzz
