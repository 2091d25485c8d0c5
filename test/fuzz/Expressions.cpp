#include "fuzz/Expressions.h"

using namespace mlir;

namespace costate::fuzz {

Value Expressions::expression(Kind kind, int depth) {
  if (isFull())
    depth = 0;
  if (kind == Kind::Bool)
    return condition(depth);
  return isFloat(kind) ? number(kind, depth) : whole(kind, depth);
}

//===-- Accesses ----------------------------------------------------------===//

/// A visible index times something plus something.
Value Expressions::linearIndex(int64_t extent) {
  static constexpr int slopes[] = {1, 1, 2, -1};
  int64_t slope = random.pick(slopes);
  Value base = visibleIndex((extent - 1) / std::abs(slope) + 1);
  if (!base)
    return {};
  int64_t span = (boundOf(base) - 1) * std::abs(slope);
  int64_t start = random.below(int(extent - span)) + (slope < 0 ? span : 0);
  Value scale = integer(slope), offset = integer(start);
  Value scaled = slope == 1 ? base : make<arith::MulIOp>(base, scale);
  return make<arith::AddIOp>(scaled, offset);
}

Value Expressions::index(int64_t extent) {
  if (random.chance(20))
    if (Value value = linearIndex(extent))
      return value;
  if (random.chance(50))
    if (Value value = visibleIndex(extent))
      return value;
  if (random.chance(60))
    return integer(random.below(int(extent)));
  Value count = integer(extent);
  auto rest = ir::RemOp::create(b, here(), whole(Kind::I64, 1), count);
  rest.setIsUnsigned(true);
  return within(rest, extent);
}

Values Expressions::anywhere(const Array &array) {
  Values indices;
  for (int64_t extent : array.extents)
    indices.push_back(index(extent));
  return indices;
}

Values Expressions::place(const Array &array) {
  bool own = array.role == Role::Own || array.role == Role::Write;
  if (own && array.own && !random.chance(1))
    return array.own();
  return anywhere(array);
}

Value Expressions::load(const Array &array) {
  Values indices = place(array);
  Value value = make<ir::LoadOp>(typeOf(array.kind), array.argument, indices);
  if (array.isPermutation && array.kind == Kind::I64)
    within(value, array.extents.front());
  return value;
}

Array *Expressions::readable(Kind kind) {
  SmallVector<Array *> found;
  for (Array &array : arrays)
    if (array.kind == kind &&
        (array.role == Role::Own || array.role == Role::Read))
      found.push_back(&array);
  return found.empty() ? nullptr : random.pick(found);
}

//===-- Numbers -----------------------------------------------------------===//

namespace {
/// What an operand must be for a function to stay tame.
enum class Domain { Any, Positive, Unit, AboveOne, Small };

struct Function {
  llvm::StringLiteral name;
  Domain domain;
};

/// Other domains than those of the table of operations, and other operations.
constexpr Function listed[] = {
    {"costate.sin", Domain::Any},        {"costate.cos", Domain::Any},
    {"costate.sin", Domain::Any},        {"costate.tanh", Domain::Any},
    {"costate.tan", Domain::Unit},       {"costate.asin", Domain::Unit},
    {"costate.acos", Domain::Unit},      {"costate.atan", Domain::Any},
    {"costate.sinh", Domain::Small},     {"costate.cosh", Domain::Small},
    {"costate.asinh", Domain::Any},      {"costate.acosh", Domain::AboveOne},
    {"costate.atanh", Domain::Unit},     {"costate.exp", Domain::Small},
    {"costate.exp2", Domain::Small},     {"costate.expm1", Domain::Small},
    {"costate.log", Domain::Positive},   {"costate.log2", Domain::Positive},
    {"costate.log10", Domain::Positive}, {"costate.log1p", Domain::Positive},
    {"costate.cbrt", Domain::Positive},  {"math.sqrt", Domain::Positive},
    {"costate.rsqrt", Domain::Positive}, {"costate.erf", Domain::Any},
    {"costate.erfc", Domain::Any},       {"math.absf", Domain::Any},
    {"arith.negf", Domain::Any},         {"math.floor", Domain::Any},
    {"math.ceil", Domain::Any},          {"math.round", Domain::Any},
    {"math.roundeven", Domain::Any},     {"math.trunc", Domain::Any},
};

constexpr Function tabulated[] = {
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, library, domain, ...) \
  COSTATE_FUNCTION_##operands("costate." #mnemonic, domain)
#define COSTATE_FUNCTION_1(name, domain) {name, Domain::domain},
#define COSTATE_FUNCTION_2(name, domain)
#include "costate/detail/operations.def"
#undef COSTATE_FUNCTION_1
#undef COSTATE_FUNCTION_2
};

const std::vector<Function> &functions() {
  static const std::vector<Function> all = [] {
    std::vector<Function> all(std::begin(listed), std::end(listed));
    for (const Function &one : tabulated)
      if (llvm::none_of(listed, [&](const Function &other) {
            return one.name == other.name;
          }))
        all.push_back(one);
    return all;
  }();
  return all;
}

const int unaries = static_cast<int>(functions().size());
constexpr int specials = 14, conversions = 4;
} // namespace

bool Expressions::isConversion(int favourite) {
  return favourite >= unaries + specials;
}

int Expressions::anyFavourite() {
  return random.below(unaries + specials + conversions);
}
Value Expressions::loadLocal(Kind kind) {
  SmallVector<Local> found;
  for (const Local &local : locals)
    if (local.kind == kind)
      found.push_back(local);
  if (found.empty())
    return {};
  Local local = random.chance(50) ? found.back() : random.pick(found);
  return make<ir::LocalLoadOp>(typeOf(kind), local.array, index(local.size));
}

Value Expressions::leaf(Kind kind) {
  if (random.chance(localPercent))
    if (Value value = loadLocal(kind))
      return value;
  if (random.chance(60))
    if (Value value = visible(kind))
      return value;
  if (random.chance(80))
    if (Array *array = readable(kind))
      return load(*array);
  return literal(kind);
}

Value Expressions::number(Kind kind, int depth) {
  int choice = random.below(100);
  if (depth > 0 && random.chance(isFocused ? 60 : 8))
    return focus(kind, depth);
  if (depth <= 0 || choice < 18)
    return leaf(kind);
  if (choice < 56)
    return binary(kind, depth);
  if (choice < 82)
    return unary(kind, depth, random.below(unaries));
  if (choice < 95)
    return special(kind, depth, random.below(specials));
  return converted(kind, depth);
}

Value Expressions::binary(Kind kind, int depth) {
  Value x = number(kind, depth - 1);
  int choice = random.below(33);
  Value y = choice < 3 ? positive(kind, depth - 1) : number(kind, depth - 1);
  if (choice < 3)
    return make<arith::DivFOp>(x, y);
  if (choice < 12)
    return make<arith::AddFOp>(x, y);
  if (choice < 19)
    return make<arith::SubFOp>(x, y);
  return make<arith::MulFOp>(x, y);
}

/// x^2 plus something.
Value Expressions::positive(Kind kind, int depth) {
  Value x = number(kind, depth);
  Value square = make<arith::MulFOp>(x, x);
  double lift = isSingular ? 0 : random.chance(50) ? 0.25 : 0.5;
  Value more = real(lift, kind);
  return make<arith::AddFOp>(square, more);
}

/// Where x is 0, a factor of the derivative is infinite, and another one is 0.
Value Expressions::edge(Kind kind) {
  Value x = leaf(kind);
  switch (random.below(3)) {
  case 0:
    return named("costate.hypot", {x, x});
  case 1:
    return named("costate.atan2", {x, x});
  default:
    Value square = make<arith::MulFOp>(x, x);
    Value power = real(random.below(4), kind);
    return named("costate.powf", {square, power});
  }
}

/// A function with a pole or an edge, where its operand is on the right side.
Value Expressions::protectedPole(Kind kind, int depth) {
  static constexpr llvm::StringLiteral names[] = {
      "costate.log",   "costate.log2", "costate.log10", "math.sqrt",
      "costate.rsqrt", "arith.divf",   "costate.powf"};
  llvm::StringRef name = random.pick(names);
  Value x = leaf(kind), zero = real(0, kind);
  Value isSafe = make<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, zero);
  auto function = [&] {
    if (name == "arith.divf")
      return named(name, {leaf(kind), x});
    if (name != "costate.powf")
      return named(name, x);
    Value half = real(0.5, kind);
    return named(name, {x, half});
  };
  auto other = [&] { return number(kind, depth - 1); };
  if (random.chance(30))
    return chosen(isSafe, typeOf(kind), function, other);
  Value y = function(), instead = other();
  return make<arith::SelectOp>(isSafe, y, instead);
}

/// The operation that this kernel prefers.
Value Expressions::focus(Kind kind, int depth) {
  if (favourite < unaries)
    return unary(kind, depth, favourite);
  if (isConversion(favourite))
    return converted(kind, depth);
  return special(kind, depth, favourite - unaries);
}

Value Expressions::unary(Kind kind, int depth, int choice) {
  const Function &function = functions()[choice];
  bool square = function.domain == Domain::Positive ||
                function.domain == Domain::AboveOne;
  Value x = square ? positive(kind, depth - 1) : number(kind, depth - 1);
  if (isSingular) {
    return named(function.name, x);
  } else if (function.domain == Domain::AboveOne) {
    Value one = real(1, kind);
    x = make<arith::AddFOp>(x, one);
  } else if (function.domain == Domain::Unit) {
    Value scale = real(0.875, kind), sine = make<ir::SinOp>(x);
    x = make<arith::MulFOp>(sine, scale);
  } else if (function.domain == Domain::Small) {
    x = make<ir::TanhOp>(x);
  }
  return named(function.name, x);
}

Value Expressions::special(Kind kind, int depth, int choice) {
  auto part = [&] { return number(kind, depth - 1); };
  switch (choice) {
  case 0: {
    Value x = part(), y = part(), z = part();
    return named("math.fma", {x, y, z});
  }
  case 1: {
    Value x = positive(kind, depth - 1), y = part();
    Value power = make<ir::TanhOp>(y);
    return make<ir::PowOp>(x, power);
  }
  case 2: {
    Value x = part(), y = positive(kind, depth - 1);
    return named("costate.hypot", {x, y});
  }
  case 3: {
    Value x = part(), y = positive(kind, depth - 1);
    return named("costate.atan2", {x, y});
  }
  case 4: {
    Value x = part(), y = positive(kind, depth - 1);
    return make<arith::RemFOp>(x, y);
  }
  case 5: {
    Value x = part(), y = part();
    return make<ir::StrongMulOp>(x, y, /*symmetric=*/random.chance(50));
  }
  case 6:
    return protectedPole(kind, depth);
  case 7:
    return edge(kind);
  case 8: {
    Value yes = condition(depth - 1), x = part(), y = part();
    return make<arith::SelectOp>(yes, x, y);
  }
  case 13:
    return random.chance(50) ? custom(kind, depth) : called(kind, depth);
  default: {
    static constexpr llvm::StringLiteral extrema[] = {
        "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"};
    Value x = part(), y = part();
    return named(extrema[choice - 9], {x, y});
  }
  }
}

/// A function of arguments like these; often one that others call as well.
func::FuncOp Expressions::functionOf(ValueRange operands, TypeRange results) {
  auto type = b.getFunctionType(operands.getTypes(), results);
  for (func::FuncOp known : callees)
    if (known.getFunctionType() == type && random.chance(60))
      return known;
  Fresh scope(*this);
  int outer = std::exchange(loops, 0);
  std::string name = "f" + std::to_string(functionCount++);
  auto module = b.getBlock()->getParentOp()->getParentOfType<ModuleOp>();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  auto function = func::FuncOp::create(b, here(), name, type);
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  for (Value argument : function.getArguments())
    offer(argument);
  SmallVector<Value> values;
  for (Type result : results)
    values.push_back(expression(
        result.isInteger() ? Kind::I64 : kindOf(function.getArgument(0)), 3));
  func::ReturnOp::create(b, here(), values);
  loops = outer;
  callees.push_back(function);
  return function;
}

Value Expressions::called(Kind kind, int depth) {
  Value operands[] = {number(kind, depth - 1), whole(Kind::I64, depth - 1),
                      number(kind, depth - 1)};
  SmallVector<Type> results = {typeOf(kind)};
  if (random.chance(30))
    results.insert(results.end(), {b.getI64Type(), typeOf(kind)});
  func::FuncOp function = functionOf(operands, results);
  auto call = func::CallOp::create(b, here(), function, operands);
  Value first = call.getResult(0);
  if (results.size() == 1)
    return tamed(first);
  offer(call.getResult(1));
  Value sine = make<ir::SinOp>(first);
  return tamed(make<arith::MulFOp>(sine, call.getResult(2)));
}

/// tanh(x + ... + x + y), n mod 3 times x, with partial derivatives that
/// use the result.
Value Expressions::custom(Kind kind, int depth) {
  Type type = typeOf(kind);
  Value x = number(kind, depth - 1), n = whole(Kind::I64, depth - 1);
  Value inputs[] = {x, n, number(kind, depth - 1)};
  auto op = ir::CustomOp::create(b, here(), type, inputs);
  OpBuilder::InsertionGuard guard(b);
  Location loc = here();
  Block *primal = b.createBlock(&op.getPrimal());
  Value a = primal->addArgument(type, loc);
  Value count = primal->addArgument(b.getI64Type(), loc);
  Value sum = primal->addArgument(type, loc);
  auto iterations = [&](Value value) {
    Value three = integer(3);
    auto rest = ir::RemOp::create(b, here(), value, three);
    rest.setIsUnsigned(true);
    return Value(rest);
  };
  Value zero = integer(0), one = integer(1);
  auto loop = scf::ForOp::create(b, here(), zero, iterations(count), one, sum);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value next = make<arith::AddFOp>(loop.getRegionIterArg(0), a);
    scf::YieldOp::create(b, here(), next);
  }
  Value result = make<ir::TanhOp>(loop.getResult(0));
  ir::YieldOp::create(b, here(), result);

  Block *partials = b.createBlock(&op.getPartials());
  partials->addArgument(type, loc);
  count = partials->addArgument(b.getI64Type(), loc);
  partials->addArgument(type, loc);
  Value y = partials->addArgument(type, loc);
  Value unit = real(1, kind);
  Value low = make<arith::SubFOp>(unit, y), high = make<arith::AddFOp>(unit, y);
  Value slope = make<arith::MulFOp>(low, high);
  Value times = make<arith::UIToFPOp>(type, iterations(count));
  Value byX = make<arith::MulFOp>(slope, times);
  ir::YieldOp::create(b, here(), ValueRange{byX, slope});
  return op.getResult();
}

Type Expressions::narrowType(Kind kind) {
  if (isFloat(kind))
    return b.getF16Type();
  auto sign = random.chance(50) ? IntegerType::Unsigned : IntegerType::Signless;
  return IntegerType::get(b.getContext(), random.chance(50) ? 8 : 16, sign);
}

/// To an f16, from either float type.
Value Expressions::rounded(Kind kind, int depth) {
  Value x = number(random.chance(50) ? Kind::F64 : Kind::F32, depth - 1);
  x = make<ir::NarrowOp>(x, narrowType(kind));
  return kind == Kind::F32 ? x : make<arith::ExtFOp>(typeOf(kind), x);
}

/// Narrowed once or twice.
Value Expressions::narrowed(Value value, Kind kind) {
  for (int times = random.chance(50) ? 2 : 1; times > 0; --times)
    value = make<ir::NarrowOp>(value, narrowType(kind));
  return value;
}

/// From a narrow integer, between -1 and 1.
Value Expressions::fromNarrow(Kind kind, Value integer) {
  Value x = make<arith::SIToFPOp>(typeOf(kind), integer);
  Value scale = real(0.125, kind);
  Value scaled = make<arith::MulFOp>(x, scale);
  return make<ir::SinOp>(scaled);
}

/// From an integer or the other float type.
Value Expressions::converted(Kind kind, int depth) {
  if (random.chance(20))
    return fromNarrow(kind, narrowed(whole(Kind::I32, depth - 1), Kind::I32));
  if (hasSingles && random.chance(30))
    return rounded(kind, depth);
  if (hasSingles && random.chance(70)) {
    bool narrows = kind == Kind::F32 || random.chance(50);
    Value x = number(narrows ? Kind::F64 : Kind::F32, depth - 1);
    if (narrows)
      x = make<arith::TruncFOp>(typeOf(Kind::F32), x);
    return kind == Kind::F32 ? x : make<arith::ExtFOp>(typeOf(kind), x);
  }
  Value n = integer(random.between(2, 6));
  auto rest = ir::RemOp::create(b, here(), whole(Kind::I64, depth - 1), n);
  if (random.chance(70))
    return make<arith::SIToFPOp>(typeOf(kind), rest);
  rest.setIsUnsigned(true);
  return make<arith::UIToFPOp>(typeOf(kind), rest);
}

Value Expressions::tamed(Value value) {
  if (!isa<FloatType>(value.getType()) || loops == 0 || random.chance(25))
    return value;
  if (random.chance(30)) {
    Value half = real(0.5, kindOf(value));
    return make<arith::MulFOp>(value, half);
  }
  static constexpr llvm::StringLiteral names[] = {"costate.sin", "costate.tanh",
                                                  "costate.cos"};
  return named(random.pick(names), value);
}

//===-- Integers ----------------------------------------------------------===//

Value Expressions::whole(Kind kind, int depth) {
  int choice = random.below(100);
  if (depth <= 0 || choice < 40)
    return leaf(kind);
  if (choice < 75)
    return integerOperation(kind, depth);
  if (choice < 84) {
    Value x = number(Kind::F64, depth - 1), two = real(2);
    Value scaled = make<arith::MulFOp>(x, two);
    auto cast = ir::ToIntOp::create(b, here(), typeOf(kind), scaled);
    cast.setIsUnsigned(random.chance(20));
    return cast;
  }
  if (choice < 90) {
    Value yes = condition(depth - 1), x = whole(kind, depth - 1);
    return make<arith::SelectOp>(yes, x, whole(kind, depth - 1));
  }
  if (kind == Kind::I32 && random.chance(40)) {
    return narrowed(whole(kind, depth - 1), kind);
  }
  if (kind == Kind::I32)
    return make<arith::TruncIOp>(typeOf(kind), whole(Kind::I64, depth - 1));
  if (choice < 93) {
    static constexpr int steps[] = {1, 2, -1, -3};
    Value lo = whole(kind, depth - 1), hi = whole(kind, depth - 1);
    Value step = integer(random.pick(steps));
    return make<ir::TripCountOp>(lo, hi, step);
  }
  if (choice < 94) {
    Value key = whole(kind, depth - 1), stream = whole(kind, depth - 1);
    return make<ir::PhiloxOp>(key, stream, leaf(kind));
  }
  Value narrow =
      random.chance(30) ? condition(depth - 1) : whole(Kind::I32, depth - 1);
  if (narrow.getType().isInteger(1) || random.chance(30))
    return make<arith::ExtUIOp>(typeOf(kind), narrow);
  return make<arith::ExtSIOp>(typeOf(kind), narrow);
}

Value Expressions::integerOperation(Kind kind, int depth) {
  static constexpr llvm::StringLiteral names[] = {
      "arith.addi",  "arith.addi",  "arith.subi",  "arith.muli",
      "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui",
      "arith.andi",  "arith.ori",   "arith.xori",  "costate.div",
      "costate.rem", "costate.shl", "costate.shr"};
  Value x = whole(kind, depth - 1);
  if (random.chance(6))
    return named(random.chance(50) ? "math.ctpop" : "math.ctlz", x);
  Value y = whole(kind, depth - 1);
  Value result = named(random.pick(names), {x, y});
  Operation *op = result.getDefiningOp();
  if (isa<ir::DivOp, ir::RemOp, ir::ShrOp>(op) && random.chance(30))
    op->setAttr("isUnsigned", b.getUnitAttr());
  return result;
}

//===-- Conditions --------------------------------------------------------===//

Value Expressions::negated(Value condition) {
  Value yes = boolean(true);
  return make<arith::XOrIOp>(condition, yes);
}

Value Expressions::condition(int depth) {
  int choice = random.below(100);
  if (depth <= 0 || choice < 12)
    if (Value value = choice < 30 ? leaf(Kind::Bool) : visible(Kind::Bool))
      return value;
  if (choice < 70 || depth <= 0)
    return comparison(depth);
  if (choice < 80)
    return negated(condition(depth - 1));
  if (choice < 88)
    return shortCircuit(depth);
  Value x = condition(depth - 1), y = condition(depth - 1);
  if (random.chance(50))
    return make<arith::AndIOp>(x, y);
  return make<arith::OrIOp>(x, y);
}

Value Expressions::comparison(int depth) {
  if (random.chance(45)) {
    Kind kind = random.chance(80) ? Kind::I64 : Kind::I32;
    Value x = whole(kind, depth - 1), y = whole(kind, depth - 1);
    auto predicate = arith::CmpIPredicate(random.below(10));
    return make<arith::CmpIOp>(predicate, x, y);
  }
  Value x = number(Kind::F64, depth - 1), y = number(Kind::F64, depth - 1);
  auto predicate = arith::CmpFPredicate(random.between(1, 14));
  return make<arith::CmpFOp>(predicate, x, y);
}

Value Expressions::shortCircuit(int depth) {
  Value first = condition(depth - 1);
  auto second = [&] { return condition(depth - 1); };
  return random.chance(60) ? both(first, second) : either(first, second);
}

/// An `if` with one result.
Value Expressions::chosen(Value condition, Type type,
                          llvm::function_ref<Value()> yes,
                          llvm::function_ref<Value()> no) {
  auto branch = scf::IfOp::create(b, here(), TypeRange{type}, condition,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  for (unsigned side : {0, 1}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&branch->getRegion(side).front());
    Scope scope(*this);
    Value value = side == 0 ? yes() : no();
    scf::YieldOp::create(b, here(), value);
  }
  return branch.getResult(0);
}

Value Expressions::both(Value first, llvm::function_ref<Value()> second) {
  return chosen(first, b.getI1Type(), second, [&] { return boolean(false); });
}

Value Expressions::either(Value first, llvm::function_ref<Value()> second) {
  return chosen(first, b.getI1Type(), [&] { return boolean(true); }, second);
}

} // namespace costate::fuzz
