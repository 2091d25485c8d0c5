#include "interpreter/Interpreter.h"
#include "interpreter/Roundings.h"

#include "ir/Kernel.h"
#include "ir/Registration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

using namespace costate;
using namespace costate::interpreter;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Result<Interpreter> parse(const std::string &text) {
  mlir::DialectRegistry registry;
  ir::registerDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      text, mlir::ParserConfig(&context), "k.mlir");
  EXPECT_TRUE(module);
  return Interpreter::make(*module->getOps<ir::KernelOp>().begin());
}

template <class T> struct Data : HostArray {
  Data(std::vector<int64_t> shape, std::vector<T> values) {
    extents = shape;
    bytes.resize(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  Data(std::vector<T> values) : Data({int64_t(values.size())}, values) {}

  std::vector<T> values() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

/// Any NaN equals any other.
template <class T>
testing::AssertionResult
equal(const std::vector<T> &values,
      const std::vector<std::type_identity_t<T>> &expected) {
  auto same = [](T a, T b) { return a == b || (a != a && b != b); };
  if (std::ranges::equal(values, expected, same))
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << testing::PrintToString(values) << " instead of "
         << testing::PrintToString(expected);
}

InterpreterArgument integer(int64_t value) { return {nullptr, value, 0}; }
InterpreterArgument real(double value) { return {nullptr, 0, value}; }

Result<InterpreterReport> run(const std::string &text,
                              std::vector<InterpreterArgument> arguments,
                              InterpreterOptions options = {}) {
  auto interpreter = parse(text);
  EXPECT_TRUE(interpreter) << interpreter.error().text;
  return interpreter->run(arguments, options);
}

template <class... Arrays>
InterpreterReport runs(const std::string &text, Arrays &...arrays) {
  auto report = run(text, {{&arrays}...});
  EXPECT_TRUE(report) << report.error().text;
  return report ? *report : InterpreterReport();
}

void expectFailure(const Result<InterpreterReport> &result, ErrorCode code,
                   const std::string &text) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code);
  EXPECT_NE(result.error().text.find(text), std::string::npos)
      << result.error().text;
}

/// Applies an operation to each row of operands.
template <class To, class From>
std::vector<To> apply(const std::string &op, const std::string &from,
                      const std::string &to,
                      std::vector<std::vector<From>> operands) {
  std::string text = "costate.kernel @k(%r: !costate.array<" + to + ", 1>";
  std::string loads;
  for (size_t k = 0; k < operands.size(); ++k) {
    std::string n = std::to_string(k);
    std::string type = "!costate.array<" + from + ", 1>";
    text += ", %x" + n + ": " + type;
    loads += "  %" + n + " = costate.load %x" + n + "[%i] : " + type + "\n";
  }
  text += ") {\n%n = costate.extent %r[0] : !costate.array<" + to +
          ", 1>\ncostate.range (%i) in (%n) {\n" + loads + "  %v = " + op +
          "\n  costate.store %v, %r[%i] : !costate.array<" + to + ", 1>\n}\n}";
  Data<To> result(std::vector<To>(operands[0].size()));
  std::vector<Data<From>> inputs(operands.begin(), operands.end());
  std::vector<InterpreterArgument> arguments = {{&result}};
  for (Data<From> &input : inputs)
    arguments.push_back({&input});
  auto report = run(text, arguments);
  EXPECT_TRUE(report) << report.error().text;
  return result.values();
}

constexpr int32_t min32 = std::numeric_limits<int32_t>::min();
constexpr int64_t min64 = std::numeric_limits<int64_t>::min();
constexpr int64_t max64 = std::numeric_limits<int64_t>::max();

std::vector<int32_t> apply32(const std::string &op, std::vector<int32_t> a,
                             std::vector<int32_t> b) {
  return apply<int32_t, int32_t>(op + " %0, %1 : i32", "i32", "i32", {a, b});
}

TEST(Interpreter, IntegersWrap) {
  EXPECT_TRUE(
      equal(apply32("arith.addi", {min32, 1}, {-1, 2}), {0x7fffffff, 3}));
  EXPECT_TRUE(equal(apply32("arith.muli", {1 << 30, -3}, {4, 5}), {0, -15}));
  EXPECT_TRUE(equal((apply<int64_t, int64_t>("arith.subi %0, %1 : i64", "i64",
                                             "i64", {{min64}, {1}})),
                    {max64}));
}

TEST(Interpreter, DivisionOfTheDialectIsTotal) {
  EXPECT_TRUE(
      equal(apply32("costate.div", {7, -7, 7, min32, min32}, {2, 2, 0, -1, 0}),
            {3, -3, 0, min32, 0}));
  EXPECT_TRUE(equal(apply32("costate.rem", {7, -7, 7, min32}, {3, 3, 0, -1}),
                    {1, -1, 0, 0}));
  EXPECT_TRUE(equal(apply32("costate.div unsigned", {-1, min32, 3}, {2, -1, 0}),
                    {0x7fffffff, 0, 0}));
  EXPECT_TRUE(equal(apply32("costate.rem unsigned", {-1, 7}, {10, 0}), {5, 0}));
}

TEST(Interpreter, ShiftsOfTheDialectMaskTheirCount) {
  EXPECT_TRUE(
      equal(apply32("costate.shl", {1, 1, 5}, {31, 32, 33}), {min32, 1, 10}));
  EXPECT_TRUE(
      equal(apply32("costate.shr", {-8, -8, 8}, {1, 33, -1}), {-4, -4, 0}));
  EXPECT_TRUE(equal(apply32("costate.shr unsigned", {-8, -1}, {1, 63}),
                    {0x7ffffffc, 1}));
}

TEST(Interpreter, DivisionOfArithRounds) {
  EXPECT_TRUE(equal(apply32("arith.divsi", {7, -7}, {-2, 2}), {-3, -3}));
  EXPECT_TRUE(equal(apply32("arith.floordivsi", {7, -7, -7, 6}, {-2, 2, -2, 3}),
                    {-4, -4, 3, 2}));
  EXPECT_TRUE(equal(apply32("arith.ceildivsi", {7, -7, -7, 6}, {-2, 2, -2, 3}),
                    {-3, -3, 4, 2}));
  EXPECT_TRUE(equal(apply32("arith.ceildivui", {-1, 6}, {2, 3}), {min32, 2}));
  EXPECT_TRUE(equal(apply32("arith.remsi", {-7, min32}, {3, -1}), {-1, 0}));
}

TEST(Interpreter, AnOperationWithoutDefinedResultFails) {
  const char *text = R"(costate.kernel @k(%a: i32, %b: i32) {
  %r = arith.divsi %a, %b : i32
})";
  expectFailure(run(text, {integer(1), integer(0)}), ErrorCode::KernelFailed,
                "kernel `k` at k.mlir:2: `arith.divsi` has no defined result");
  expectFailure(run(text, {integer(min32), integer(-1)}),
                ErrorCode::KernelFailed, "no defined result");
  expectFailure(
      run("costate.kernel @k(%a: i64) { %r = arith.shli %a, %a : i64 }",
          {integer(64)}),
      ErrorCode::KernelFailed, "`arith.shli`");
  expectFailure(
      run("costate.kernel @k(%a: f64) { %r = arith.fptosi %a : f64 to i32 }",
          {real(3e9)}),
      ErrorCode::KernelFailed, "`arith.fptosi`");
}

TEST(Interpreter, BoolsAreOneBit) {
  auto text = [](const std::string &op) { return op + " %0, %1 : i1"; };
  std::vector<std::vector<uint8_t>> all = {{0, 0, 1, 1}, {0, 1, 0, 1}};
  EXPECT_TRUE(
      equal((apply<uint8_t, uint8_t>(text("arith.addi"), "i1", "i1", all)),
            {0, 1, 1, 0}));
  EXPECT_TRUE(
      equal((apply<uint8_t, uint8_t>(text("arith.cmpi slt,"), "i1", "i1", all)),
            {0, 0, 1, 0})); // true is -1
  EXPECT_TRUE(equal((apply<int32_t, uint8_t>("arith.extsi %0 : i1 to i32", "i1",
                                             "i32", {{0, 1, 7}})),
                    {0, -1, -1})); // any byte but 0 is true
  EXPECT_TRUE(equal((apply<double, uint8_t>("arith.uitofp %0 : i1 to f64", "i1",
                                            "f64", {{0, 1}})),
                    {0, 1}));
}

TEST(Interpreter, IntegersCompareWithAndWithoutSign) {
  auto compare = [](const std::string &predicate) {
    return apply<uint8_t, int32_t>("arith.cmpi " + predicate + ", %0, %1 : i32",
                                   "i32", "i1", {{-1, 1, 1}, {1, -1, 1}});
  };
  EXPECT_TRUE(equal(compare("eq"), {0, 0, 1}));
  EXPECT_TRUE(equal(compare("ne"), {1, 1, 0}));
  EXPECT_TRUE(equal(compare("slt"), {1, 0, 0}));
  EXPECT_TRUE(equal(compare("sle"), {1, 0, 1}));
  EXPECT_TRUE(equal(compare("sgt"), {0, 1, 0}));
  EXPECT_TRUE(equal(compare("sge"), {0, 1, 1}));
  EXPECT_TRUE(equal(compare("ult"), {0, 1, 0}));
  EXPECT_TRUE(equal(compare("ule"), {0, 1, 1}));
  EXPECT_TRUE(equal(compare("ugt"), {1, 0, 0}));
  EXPECT_TRUE(equal(compare("uge"), {1, 0, 1}));
}

TEST(Interpreter, FloatsCompareInSixteenWays) {
  auto compare = [](const std::string &predicate) {
    return apply<uint8_t, double>("arith.cmpf " + predicate + ", %0, %1 : f64",
                                  "f64", "i1", {{1, 2, 2, nan}, {2, 1, 2, 1}});
  };
  EXPECT_TRUE(equal(compare("false"), {0, 0, 0, 0}));
  EXPECT_TRUE(equal(compare("oeq"), {0, 0, 1, 0}));
  EXPECT_TRUE(equal(compare("ogt"), {0, 1, 0, 0}));
  EXPECT_TRUE(equal(compare("oge"), {0, 1, 1, 0}));
  EXPECT_TRUE(equal(compare("olt"), {1, 0, 0, 0}));
  EXPECT_TRUE(equal(compare("ole"), {1, 0, 1, 0}));
  EXPECT_TRUE(equal(compare("one"), {1, 1, 0, 0}));
  EXPECT_TRUE(equal(compare("ord"), {1, 1, 1, 0}));
  EXPECT_TRUE(equal(compare("ueq"), {0, 0, 1, 1}));
  EXPECT_TRUE(equal(compare("ugt"), {0, 1, 0, 1}));
  EXPECT_TRUE(equal(compare("uge"), {0, 1, 1, 1}));
  EXPECT_TRUE(equal(compare("ult"), {1, 0, 0, 1}));
  EXPECT_TRUE(equal(compare("ule"), {1, 0, 1, 1}));
  EXPECT_TRUE(equal(compare("une"), {1, 1, 0, 1}));
  EXPECT_TRUE(equal(compare("uno"), {0, 0, 0, 1}));
  EXPECT_TRUE(equal(compare("true"), {1, 1, 1, 1}));
}

std::vector<double> apply64(const std::string &op,
                            std::vector<std::vector<double>> operands) {
  return apply<double, double>(op + " : f64", "f64", "f64", operands);
}

TEST(Interpreter, MinAndMaxPreferNumbers) {
  std::vector<std::vector<double>> all = {{1, nan, 1, nan}, {2, 1, nan, nan}};
  EXPECT_TRUE(equal(apply64("arith.minnumf %0, %1", all), {1, 1, 1, nan}));
  EXPECT_TRUE(equal(apply64("arith.maxnumf %0, %1", all), {2, 1, 1, nan}));
  EXPECT_TRUE(equal(apply64("arith.minimumf %0, %1", all), {1, nan, nan, nan}));
  EXPECT_TRUE(equal(apply64("arith.maximumf %0, %1", all), {2, nan, nan, nan}));
  EXPECT_TRUE(std::signbit(apply64("arith.minimumf %0, %1", {{0.}, {-0.}})[0]));
  EXPECT_FALSE(
      std::signbit(apply64("arith.maximumf %0, %1", {{-0.}, {0.}})[0]));
}

TEST(Interpreter, SineAndCosineTogether) {
  Data<double> x({0.7, 0});
  runs(R"(costate.kernel @k(%x: !costate.array<f64, 1>) {
  %z = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %v = costate.load %x[%z] : !costate.array<f64, 1>
  %s, %c = math.sincos %v : f64
  costate.store %s, %x[%z] : !costate.array<f64, 1>
  costate.store %c, %x[%one] : !costate.array<f64, 1>
})",
       x);
  EXPECT_TRUE(equal(x.values(), {std::sin(0.7), std::cos(0.7)}));
}

TEST(Interpreter, FmaRoundsOnce) {
  double x = 1 + 0x1p-52;
  double exact = 0x1p-51 + 0x1p-104; // x * x - 1
  EXPECT_TRUE(equal(apply64("math.fma %0, %1, %2", {{x}, {x}, {-1}}), {exact}));
}

TEST(Interpreter, SinglePrecisionIsSingle) {
  EXPECT_TRUE(equal((apply<float, float>("arith.addf %0, %1 : f32", "f32",
                                         "f32", {{16777216.f}, {1.f}})),
                    {16777216.f}));
  EXPECT_TRUE(
      equal((apply<float, float>("math.sqrt %0 : f32", "f32", "f32", {{2.f}})),
            {std::sqrt(2.f)}));
}

TEST(Interpreter, StrongMulIsZeroWhereTheAdjointIs) {
  EXPECT_TRUE(equal(apply64("costate.strong_mul %0, %1",
                            {{0, -0., 2, inf}, {inf, nan, 3, 0}}),
                    {0, 0, 6, nan}));
  EXPECT_TRUE(equal(apply64("costate.strong_mul symmetric %0, %1",
                            {{0, inf, 2, inf}, {nan, -0., 3, inf}}),
                    {0, 0, 6, inf}));
}

TEST(Interpreter, ToIntSaturates) {
  std::vector<double> values = {1.9, -1.9, nan, 1e30, -1e30, 3e9, -0.5};
  auto convert = [&](const std::string &sign, const std::string &type) {
    return "costate.to_int " + sign + "%0 : f64 to " + type;
  };
  EXPECT_TRUE(equal(
      (apply<int32_t, double>(convert("", "i32"), "f64", "i32", {values})),
      {1, -1, 0, 0x7fffffff, min32, 0x7fffffff, 0}));
  EXPECT_TRUE(equal(
      (apply<int64_t, double>(convert("", "i64"), "f64", "i64", {values})),
      {1, -1, 0, max64, min64, 3000000000, 0}));
  EXPECT_TRUE(equal((apply<uint32_t, double>(convert("unsigned ", "i32"), "f64",
                                             "i32", {values})),
                    {1, 0, 0, 4294967295, 0, 3000000000, 0}));
  EXPECT_TRUE(equal((apply<uint64_t, double>(convert("unsigned ", "i64"), "f64",
                                             "i64", {values})),
                    {1, 0, 0, 18446744073709551615u, 0, 3000000000, 0}));
}

TEST(Interpreter, ConversionsKeepWhatFits) {
  EXPECT_TRUE(equal((apply<double, int64_t>("arith.uitofp %0 : i64 to f64",
                                            "i64", "f64", {{-1, 3}})),
                    {0x1p64, 3}));
  EXPECT_TRUE(equal((apply<double, int64_t>("arith.sitofp %0 : i64 to f64",
                                            "i64", "f64", {{-1, min64}})),
                    {-1, -0x1p63}));
  EXPECT_TRUE(
      equal((apply<int32_t, int64_t>("arith.trunci %0 : i64 to i32", "i64",
                                     "i32", {{(1ll << 32) + 5, -2}})),
            {5, -2}));
  EXPECT_TRUE(equal((apply<int64_t, int32_t>("arith.extui %0 : i32 to i64",
                                             "i32", "i64", {{-1}})),
                    {4294967295}));
  EXPECT_TRUE(equal((apply<int64_t, double>("arith.bitcast %0 : f64 to i64",
                                            "f64", "i64", {{1.0}})),
                    {0x3ff0000000000000}));
}

//===-- Loops and branches ------------------------------------------------===//

const char *const loopText = R"(
costate.kernel @k(%r: !costate.array<i64, 1>, %lo: i64, %hi: i64, %step: i64) {
  %z = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n, %last = scf.for %k = %lo to %hi step %step iter_args(%a = %z, %b = %z) -> (i64, i64) : i64 {
    %c = arith.addi %a, %one : i64
    scf.yield %c, %k : i64, i64
  }
  costate.store %n, %r[%z] : !costate.array<i64, 1>
  costate.store %last, %r[%one] : !costate.array<i64, 1>
})";

std::vector<int64_t> loop(int64_t lo, int64_t hi, int64_t step) {
  Data<int64_t> result({0, 0});
  auto report =
      run(loopText, {{&result}, integer(lo), integer(hi), integer(step)});
  EXPECT_TRUE(report);
  return result.values();
}

TEST(Interpreter, LoopsCountUpAndDown) {
  EXPECT_TRUE(equal(loop(0, 5, 1), {5, 4}));
  EXPECT_TRUE(equal(loop(0, 5, 2), {3, 4}));
  EXPECT_TRUE(equal(loop(5, 0, -2), {3, 1}));
  EXPECT_TRUE(equal(loop(5, 0, 1), {0, 0}));
  EXPECT_TRUE(equal(loop(0, 5, -1), {0, 0}));
  EXPECT_TRUE(equal(loop(min64, max64, max64), {3, max64 - 1}));
  EXPECT_TRUE(equal(loop(max64, min64, min64), {2, -1}));
}

TEST(Interpreter, AStepOfZeroFails) {
  Data<int64_t> result({0, 0});
  expectFailure(run(loopText, {{&result}, integer(0), integer(5), integer(0)}),
                ErrorCode::KernelFailed,
                "k.mlir:5: the step of this loop is 0");
}

TEST(Interpreter, LoopsCountInAnyType) {
  Data<int32_t> result({0, 0});
  runs(R"(costate.kernel @k(%r: !costate.array<i32, 1>) {
  %z = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %z32 = arith.constant 0 : i32
  %lo = arith.constant 2147483640 : i32
  %hi = arith.constant -2147483640 : i32
  %step = arith.constant 3 : i32
  %a = scf.for unsigned %k = %lo to %hi step %step iter_args(%s = %z32) -> i32 : i32 {
    scf.yield %k : i32
  }
  costate.store %a, %r[%z] : !costate.array<i32, 1>
  %i0 = arith.constant 0 : index
  %i9 = arith.constant 9 : index
  %i4 = arith.constant 4 : index
  %b = scf.for %k = %i0 to %i9 step %i4 iter_args(%s = %z32) -> i32 {
    %v = arith.index_cast %k : index to i32
    scf.yield %v : i32
  }
  costate.store %b, %r[%one] : !costate.array<i32, 1>
})",
       result);
  EXPECT_TRUE(equal(result.values(), {-2147483641, 8}));
}

TEST(Interpreter, CarriedValuesMoveTogether) {
  Data<int64_t> result({3, 5});
  runs(R"(costate.kernel @k(%r: !costate.array<i64, 1>) {
  %z = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %five = arith.constant 5 : i64
  %x = costate.load %r[%z] : !costate.array<i64, 1>
  %y = costate.load %r[%one] : !costate.array<i64, 1>
  %a, %b = scf.for %k = %z to %five step %one iter_args(%c = %x, %d = %y) -> (i64, i64) : i64 {
    scf.yield %d, %c : i64, i64
  }
  costate.store %a, %r[%z] : !costate.array<i64, 1>
  costate.store %b, %r[%one] : !costate.array<i64, 1>
})",
       result);
  EXPECT_TRUE(equal(result.values(), {5, 3}));
}

TEST(Interpreter, AConditionalLoopForwardsWhatItsConditionPasses) {
  Data<double> x({1}), y({0});
  Data<int64_t> iterations({0});
  runs(R"(
costate.kernel @k(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %t: !costate.array<i64, 1>) {
  %z = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %limit = arith.constant 100.0 : f64
  %v = costate.load %x[%z] : !costate.array<f64, 1>
  %n, %w = scf.while (%k = %z, %a = %v) : (i64, f64) -> (i64, f64) {
    %b = arith.addf %a, %a : f64
    %more = arith.cmpf olt, %b, %limit : f64
    scf.condition(%more) %k, %b : i64, f64
  } do {
  ^bb0(%k: i64, %b: f64):
    %next = arith.addi %k, %one : i64
    scf.yield %next, %b : i64, f64
  }
  costate.store %w, %y[%z] : !costate.array<f64, 1>
  costate.store %n, %t[%z] : !costate.array<i64, 1>
})",
       x, y, iterations);
  EXPECT_TRUE(equal(y.values(), {128}));
  EXPECT_TRUE(equal(iterations.values(), {6}));
}

TEST(Interpreter, ABranchRunsOneSide) {
  const char *text = R"(costate.kernel @k(%x: !costate.array<f64, 1>, %c: i1) {
  %z = arith.constant 0 : i64
  %far = arith.constant 9 : i64
  %one = arith.constant 1.0 : f64
  %v = scf.if %c -> f64 {
    scf.yield %one : f64
  } else {
    %w = costate.load %x[%far] : !costate.array<f64, 1>
    scf.yield %w : f64
  }
  scf.if %c {
    costate.store %v, %x[%z] : !costate.array<f64, 1>
  }
})";
  Data<double> x({5});
  ASSERT_TRUE(run(text, {{&x}, integer(1)}));
  EXPECT_TRUE(equal(x.values(), {1}));
  expectFailure(run(text, {{&x}, integer(0)}), ErrorCode::OutOfRange,
                "kernel `k` at k.mlir:8: index 9 is outside dimension 0 of "
                "argument 1, whose extent is 1");
}

//===-- Arrays and ranges -------------------------------------------------===//

TEST(Interpreter, ExtentsAreThoseThatAreKnown) {
  const char *text = R"(
costate.kernel @k(%x: !costate.array<f64, 2> {costate.extents = array<i64: -1, 3>}) {
})";
  Data<double> fits({1, 3}, {0, 0, 0}), other({3, 1}, {0, 0, 0});
  ASSERT_TRUE(run(text, {{&fits}}));
  expectFailure(run(text, {{&other}}), ErrorCode::BadArgument,
                "argument 1 has extent 1 where the kernel declares 3");
}

TEST(Interpreter, IndicesAreRowMajor) {
  Data<float> x({2, 3}, {0, 1, 2, 3, 4, 5});
  Data<float> y({3, 2}, std::vector<float>(6));
  runs(R"(
costate.kernel @k(%x: !costate.array<f32, 2>, %y: !costate.array<f32, 2>) {
  %n = costate.extent %x[0] : !costate.array<f32, 2>
  %m = costate.extent %x[1] : !costate.array<f32, 2>
  costate.range (%i, %j) in (%n, %m) {
    %v = costate.load %x[%i, %j] : !costate.array<f32, 2>
    costate.store %v, %y[%j, %i] : !costate.array<f32, 2>
  }
})",
       x, y);
  EXPECT_TRUE(equal(y.values(), {0, 3, 1, 4, 2, 5}));
}

const char *const sumText = R"(
costate.kernel @k(%x: !costate.array<f64, 1>, %s: !costate.array<f32, 1>, %n: i64) {
  %z = arith.constant 0 : i64
  %sum, %single = costate.range (%i) in (%n) -> (f64, f32) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.truncf %v : f64 to f32
    costate.yield %v, %w : f64, f32
  }
  %t = arith.truncf %sum : f64 to f32
  %u = arith.addf %t, %single : f32
  costate.store %u, %s[%z] : !costate.array<f32, 1>
})";

TEST(Interpreter, SumsDoNotDependOnTheOrderOfWorkItems) {
  Data<double> x({1e8, 1, -1e8, 0.5, 3e7, 1, 1, 1});
  Data<float> reference({0});
  ASSERT_TRUE(run(sumText, {{&x}, {&reference}, integer(8)}));
  for (uint64_t order = 1; order < 20; ++order) {
    Data<float> s({0});
    ASSERT_TRUE(run(sumText, {{&x}, {&s}, integer(8)}, {.order = order}));
    EXPECT_EQ(s.values(), reference.values());
  }
  Data<float> none({7});
  ASSERT_TRUE(run(sumText, {{&x}, {&none}, integer(-3)}));
  EXPECT_TRUE(equal(none.values(), {0}));
}

TEST(Interpreter, TooManyWorkItemsAreAnError) {
  const char *text = R"(costate.kernel @k(%n: i64, %m: i64) {
  costate.range (%i, %j, %k) in (%n, %n, %m) {
  }
})";
  expectFailure(run(text, {integer(1ll << 32), integer(1)}),
                ErrorCode::KernelFailed, "more work items than can be counted");
  EXPECT_TRUE(run(text, {integer(1ll << 32), integer(0)}));
  expectFailure(
      run(text, {integer(1 << 20), integer(1 << 20)}, {.steps = 1000}),
      ErrorCode::KernelFailed, "has run 1000 operations");
}

TEST(Interpreter, AtomicAdditionsWrapAndRound) {
  Data<int32_t> n({0x7fffffff});
  Data<double> x({1e16});
  InterpreterReport report = runs(R"(
costate.kernel @k(%n: !costate.array<i32, 1>, %x: !costate.array<f64, 1>) {
  %z = arith.constant 0 : i64
  %three = arith.constant 3 : i64
  %one = arith.constant 1 : i32
  %two = arith.constant -2.0 : f64
  costate.range (%i) in (%three) {
    costate.atomic_add %one, %n[%z] : !costate.array<i32, 1>
    costate.atomic_add %two, %x[%z] : !costate.array<f64, 1>
  }
})",
                                  n, x);
  EXPECT_TRUE(equal(n.values(), {min32 + 2}));
  EXPECT_TRUE(equal(x.values(), {1e16 - 6}));
  EXPECT_EQ(report.largestAddend, 2);
  EXPECT_EQ(report.steps, 1 + 1 + 3 * 3u);
}

/// What becomes of 1 when 1024 work items add a quarter of its last bit: in an
/// element of all of them, in elements of their own, and in a range's sum.
struct Quarters {
  std::vector<double> shared, own, sum;
};

template <class T>
Quarters quarters(const std::string &type, double lastBit, uint64_t seed) {
  char quarter[40];
  std::snprintf(quarter, sizeof(quarter), "%.17e", lastBit / 4);
  std::string array = "!costate.array<" + type + ", 1>";
  std::string text = "costate.kernel @k(%x: " + array + ", %y: " + array + R"(,
    %s: !costate.array<f64, 1>) {
  %z = arith.constant 0 : i64
  %n = arith.constant 1024 : i64
  %one = arith.constant 1.0 : f64
  %tiny = arith.constant 5.5511151231257827e-17 : f64
  %sum = costate.range (%i) in (%n) -> (f64) {
    %isFirst = arith.cmpi eq, %i, %z : i64
    %w = arith.select %isFirst, %one, %tiny : f64
    %v = arith.constant )" +
                     quarter + " : f32\n" +
                     "costate.atomic_add %v, %x[%z] : " + array + "\n" +
                     "costate.atomic_add exclusive %v, %y[%i] : " + array + R"(
    costate.yield %w : f64
  }
  costate.store %sum, %s[%z] : !costate.array<f64, 1>
})";
  if (type == "f64")
    text.replace(text.find(" : f32\n"), 6, " : f64");
  Data<T> x({T(1)}), y(std::vector<T>(1024, T(1)));
  Data<double> s({0});
  auto report = run(text, {{&x}, {&y}, {&s}}, {.roundings = seed});
  EXPECT_TRUE(report) << report.error().text;
  auto bits = [](auto values, double lastBit) {
    std::vector<double> bits;
    for (auto value : values)
      bits.push_back((double(value) - 1) / lastBit);
    return bits;
  };
  return {bits(x.values(), lastBit), bits(y.values(), lastBit),
          bits(s.values(), 0x1p-52)};
}

template <class T> void expectSpread(const char *type, double lastBit) {
  Quarters nearest = quarters<T>(type, lastBit, 0),
           one = quarters<T>(type, lastBit, 1),
           other = quarters<T>(type, lastBit, 2);
  EXPECT_TRUE(equal(nearest.shared, {0}));
  EXPECT_TRUE(equal(nearest.sum, {0}));
  EXPECT_NE(one.shared, other.shared);
  EXPECT_NE(one.sum, other.sum);
  for (const Quarters &some : {one, other}) {
    EXPECT_NEAR(some.shared[0], 256, 56);
    EXPECT_NEAR(some.sum[0], 256, 56);
  }
  EXPECT_EQ(one.own, nearest.own);
}

TEST(Interpreter, SumsWithoutAnOrderRoundStochastically) {
  expectSpread<double>("f64", 0x1p-52);
  expectSpread<float>("f32", 0x1p-23);
  expectSpread<_Float16>("f16", 0x1p-10);
}

/// Nothing to round.
TEST(Interpreter, ExactSumsAreExactWithAnyRoundings) {
  Roundings roundings(1);
  for (double addend : {0.0, -0.0, 1.0, -1.0, 0x1p-52, 0x1p51, inf, -inf})
    EXPECT_EQ(roundings.sum(1.0, addend, 1.0 + addend), 1.0 + addend);
  EXPECT_EQ(roundings.sum(1e308, 1e308, inf), inf);
  EXPECT_TRUE(std::isnan(roundings.sum(inf, -inf, nan)));
}

TEST(Interpreter, StochasticSumsAreNeighboursOfTheExactOne) {
  Roundings roundings(1);
  std::set<double> sums;
  for (int k = 0; k < 100; ++k)
    for (double sign : {1.0, -1.0})
      sums.insert(roundings.sum(sign, sign * 0x1p-54, sign));
  EXPECT_EQ(sums, (std::set{-1 - 0x1p-52, -1.0, 1.0, 1 + 0x1p-52}));
}

/// NaN counts as missing, -0 is less than 0, and unsigned elements have no
/// sign.
TEST(Interpreter, MinimaAndMaximaOfElements) {
  Data<double> x({3, -0.0, nan, 5, nan}), least({0, nan}), most({-0.0, 9});
  Data<uint32_t> n({7, 7});
  runs(R"(
costate.kernel @k(%x: !costate.array<f64, 1>, %l: !costate.array<f64, 1>,
                  %m: !costate.array<f64, 1>, %n: !costate.array<ui32, 1>) {
  %z = arith.constant 0 : i64
  %o = arith.constant 1 : i64
  %five = arith.constant 5 : i64
  %minus = arith.constant -1 : i32
  costate.range (%i) in (%five) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_min %v, %l[%z] : !costate.array<f64, 1>
    costate.atomic_min %v, %l[%o] : !costate.array<f64, 1>
    costate.atomic_max %v, %m[%z] : !costate.array<f64, 1>
    costate.atomic_max %v, %m[%o] : !costate.array<f64, 1>
    costate.atomic_min %minus, %n[%z] : !costate.array<ui32, 1>
    costate.atomic_max %minus, %n[%o] : !costate.array<ui32, 1>
  }
})",
       x, least, most, n);
  EXPECT_TRUE(equal(least.values(), {-0.0, -0.0}));
  EXPECT_TRUE(equal(most.values(), {5, 9}));
  EXPECT_TRUE(equal(n.values(), {7, ~0u}));
}

TEST(Interpreter, OneWorkItemTakes) {
  Data<double> x({7, 5}), y({0, 0, 0});
  runs(R"(
costate.kernel @k(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %z = arith.constant 0 : i64
  %three = arith.constant 3 : i64
  costate.range (%i) in (%three) {
    %v = costate.atomic_take %x[%z] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
})",
       x, y);
  EXPECT_TRUE(equal(x.values(), {0, 5}));
  EXPECT_TRUE(equal(y.values(), {7, 0, 0}));
}

TEST(Interpreter, CustomRunsItsFirstRegion) {
  Data<double> x({9});
  runs(R"(
costate.kernel @k(%x: !costate.array<f64, 1>) {
  %z = arith.constant 0 : i64
  %v = costate.load %x[%z] : !costate.array<f64, 1>
  %w = costate.custom(%v) {
  ^bb0(%a: f64):
    %r = math.sqrt %a : f64
    costate.yield %r : f64
  } partials {
  ^bb0(%a: f64, %r: f64):
    costate.yield %a : f64
  } : (f64) -> f64
  %s = costate.stop_gradient %w : f64
  costate.store %s, %x[%z] : !costate.array<f64, 1>
})",
       x);
  EXPECT_TRUE(equal(x.values(), {3}));
}

//===-- Races -------------------------------------------------------------===//

/// `body` for each of three work items %i; %v is the same for all.
std::string rangeText(const std::string &body) {
  return R"(costate.kernel @k(%x: !costate.array<f64, 1>) {
  %z = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = arith.constant 3 : i64
  %v = arith.constant 1.0 : f64
  costate.range (%i) in (%n) {
    %w = arith.sitofp %i : i64 to f64
)" + body +
         "\n}\n}";
}

const std::string
    loadOwn = "%a = costate.load %x[%i] : !costate.array<f64, 1>\n",
    loadFirst = "%b = costate.load %x[%z] : !costate.array<f64, 1>\n",
    storeOwn = "costate.store %v, %x[%i] : !costate.array<f64, 1>\n",
    storeSame = "costate.store %v, %x[%z] : !costate.array<f64, 1>\n",
    storeFirst = "costate.store %w, %x[%z] : !costate.array<f64, 1>\n",
    addOwn = "costate.atomic_add %v, %x[%i] : !costate.array<f64, 1>\n",
    addFirst = "costate.atomic_add %v, %x[%z] : !costate.array<f64, 1>\n",
    loadAgain = "%c = costate.load %x[%i] : !costate.array<f64, 1>\n",
    addAlone = "costate.atomic_add exclusive %v, %x[%z] : "
               "!costate.array<f64, 1>\n",
    minFirst = "costate.atomic_min %v, %x[%z] : !costate.array<f64, 1>\n",
    maxFirst = "costate.atomic_max %v, %x[%z] : !costate.array<f64, 1>\n",
    takeFirst = "%d = costate.atomic_take %x[%z] : !costate.array<f64, 1>\n";

TEST(Interpreter, RacesAreRefusedInAnyOrder) {
  for (const std::string &body :
       {storeFirst, storeSame + loadFirst, storeFirst + storeSame,
        storeSame + addOwn, storeOwn + loadFirst, loadFirst + storeOwn,
        storeOwn + addFirst, addFirst + loadOwn, loadFirst + addOwn, addAlone,
        addAlone + loadFirst, minFirst + loadFirst, minFirst + maxFirst,
        minFirst + addFirst, takeFirst + addFirst})
    for (uint64_t order = 0; order < 6; ++order) {
      Data<double> x({1, 2, 3});
      expectFailure(run(rangeText(body), {{&x}}, {.order = order}),
                    ErrorCode::Race,
                    "element [0] of argument 1 is used by work items ");
      EXPECT_TRUE(
          run(rangeText(body), {{&x}}, {.order = order, .races = false}));
    }
}

/// Whoever comes last leaves its value.
TEST(Interpreter, TwoSharedStoresOfOneElementRace) {
  std::string two = "%u = arith.constant 2.0 : f64\n" + storeSame +
                    "costate.store %u, %x[%z] : !costate.array<f64, 1>\n";
  Data<double> x({1, 2, 3});
  expectFailure(run(rangeText(two), {{&x}}), ErrorCode::Race, "element [0]");
}

TEST(Interpreter, WhatIsNoRacePasses) {
  std::string twice = // what a function does that is called twice
      "costate.store %v, %x[%z] : !costate.array<f64, 1> loc(\"f\":1:1)\n";
  for (const std::string &body :
       {loadFirst, addFirst, storeSame, twice + twice,
        loadOwn + storeOwn + addOwn + loadAgain, addOwn + loadOwn,
        addFirst + addOwn, minFirst, maxFirst, takeFirst}) {
    Data<double> x({1, 2, 3});
    EXPECT_TRUE(run(rangeText(body), {{&x}}));
  }
}

TEST(Interpreter, RangesAreFencesForRaces) {
  Data<double> x({1, 2, 3});
  runs(R"(costate.kernel @k(%x: !costate.array<f64, 1>) {
  %z = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = arith.constant 3 : i64
  %v = arith.constant 1.0 : f64
  scf.for %k = %z to %n step %one : i64 {
    costate.range (%i) in (%n) {
      %j = arith.addi %i, %k : i64
      %m = costate.rem %j, %n : i64
      costate.store %v, %x[%m] : !costate.array<f64, 1>
    }
  }
})",
       x);
}

//===-- Tapes -------------------------------------------------------------===//

TEST(Interpreter, TapesAreLastInFirstOut) {
  Data<double> x({2, 3, 4});
  InterpreterReport report =
      runs(R"(costate.kernel @k(%x: !costate.array<f64, 1>) {
  %n = arith.constant 3 : i64
  %z = arith.constant 0 : i64
  %yes = arith.constant true
  %half = arith.constant 0.5 : f32
  tape.push %half, %yes : f32, i1
  costate.range (%i) in (%n) {
    %a = costate.load %x[%i] : !costate.array<f64, 1>
    %b = arith.mulf %a, %a : f64
    tape.push %a, %yes, %yes : f64, i1, i1
    tape.push %b : f64
    tape.pivot
    %c = tape.pop : f64
    %d, %p, %q = tape.pop : f64, i1, i1
    %r = arith.subf %c, %d : f64
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
  tape.pivot
  %h, %y = tape.pop : f32, i1
  %w = arith.extf %h : f32 to f64
  costate.atomic_add %w, %x[%z] : !costate.array<f64, 1>
})",
           x);
  EXPECT_TRUE(equal(x.values(), {2.5, 6, 12}));
  EXPECT_EQ(report.pushes, 7u);
  EXPECT_EQ(report.peakTapeBytes, 5 + 9 + 8u);
  EXPECT_EQ(report.largestAddend, 16);
}

TEST(Interpreter, AWrongPopIsADefect) {
  expectFailure(run("costate.kernel @k() { %a = tape.pop : f64 }", {}),
                ErrorCode::Internal,
                "pop of a record of (f64) finds an empty tape");
  expectFailure(
      run(R"(costate.kernel @k(%v: f64) {
  tape.push %v : f64
  %a, %b = tape.pop : f64, i1
})",
          {real(1)}),
      ErrorCode::Internal,
      "k.mlir:3: pop of a record of (f64, i1) finds a record of (f64)");
  expectFailure(run(R"(costate.kernel @k(%v: f64) {
  tape.push record(0) %v : f64
  tape.push record(1) %v : f64
  %a = tape.pop record(0) : f64
  %b = tape.pop record(1) : f64
})",
                    {real(1)}),
                ErrorCode::Internal,
                "k.mlir:4: pop of record 0 of (f64) finds record 1 of (f64)");
}

TEST(Interpreter, ARecordLeftOnATapeIsADefect) {
  expectFailure(
      run("costate.kernel @k(%v: f64) { tape.push %v : f64 }", {real(1)}),
      ErrorCode::Internal, "the kernel ends with 1 records on its tape");
  Data<double> x({1, 2, 3});
  expectFailure(run(rangeText("tape.push %v : f64"), {{&x}}),
                ErrorCode::Internal,
                "work item 0 ends with 1 records on its tape; the last is a "
                "record of (f64)");
}

TEST(Interpreter, ATapeHasALimit) {
  const char *text = R"(costate.kernel @k(%v: f64) {
  tape.push %v : f64
  tape.push %v : f64
  %a = tape.pop : f64
  %b = tape.pop : f64
})";
  EXPECT_TRUE(run(text, {real(1)}, {.tapeBytes = 16}));
  expectFailure(run(text, {real(1)}, {.tapeBytes = 15}), ErrorCode::OutOfMemory,
                "k.mlir:3: a record of 8 bytes does not fit after the 8 bytes");
}

//===-- The search for inf and NaN ----------------------------------------===//

TEST(Interpreter, FiniteNumbersThatGiveNoNumberAreFound) {
  const char *text = R"(costate.kernel @k(%x: f64, %y: f64, %c: i1) {
  costate.check_finite "f(%) is %#" %y if %c from %x : (f64) -> f64
})";
  expectFailure(run(text, {real(2), real(inf), integer(1)}),
                ErrorCode::NotFinite,
                "kernel `k` at k.mlir:2: f(2.000000) is inf");
  EXPECT_TRUE(run(text, {real(2), real(inf), integer(0)}));
  EXPECT_TRUE(run(text, {real(2), real(1), integer(1)}));
  EXPECT_TRUE(run(text, {real(nan), real(nan), integer(1)}));
}

TEST(Interpreter, ElementsThatAreNoNumbersAreFound) {
  const char *text =
      R"(costate.kernel @k(%x: !costate.array<f64, 1>, %v: f64, %c: i1) {
  %one = arith.constant 1 : i64
  costate.check_element added "@ + % = %" %v, %x[%one] if %c : f64, !costate.array<f64, 1>
  costate.check_element "@ holds %" %v, %x[%one] if %c : f64, !costate.array<f64, 1>
})";
  Data<double> x({1, inf}), y({inf, 1});
  expectFailure(run(text, {{&x}, real(3), integer(1)}), ErrorCode::NotFinite,
                "k.mlir:3: an element + 3.000000 = inf");
  expectFailure(run(text, {{&y}, real(nan), integer(1)}), ErrorCode::NotFinite,
                "k.mlir:4: an element holds nan");
  EXPECT_TRUE(run(text, {{&x}, real(3), integer(0)}));
  EXPECT_TRUE(run(text, {{&y}, real(3), integer(1)}));
}

//===-- Arguments ---------------------------------------------------------===//

TEST(Interpreter, ArgumentsAreChecked) {
  const char *text =
      R"(costate.kernel @k(%x: !costate.array<f64, 2>, %y: !costate.array<f64, 2>, %s: f64) {
  %z = arith.constant 0 : i64
  costate.store %s, %x[%z, %z] : !costate.array<f64, 2>
})";
  Data<double> x({1, 1}, {1}), y({1, 1}, {1}), flat({1}), wrong({2, 1}, {1}),
      negative({-1, -1}, {1});
  auto refused = [&](std::vector<InterpreterArgument> arguments,
                     const std::string &why) {
    expectFailure(run(text, arguments), ErrorCode::BadArgument, why);
  };
  refused({{&x}}, "takes 3 arguments, not 1");
  refused({{&flat}, {&y}, real(1)}, "argument 1 has 1 dimensions");
  refused({{&wrong}, {&y}, real(1)}, "argument 1 has 8 bytes");
  refused({{&negative}, {&y}, real(1)}, "argument 1 has 8 bytes");
  refused({real(1), {&y}, real(1)}, "argument 1 is an array");
  refused({{&x}, {&y}, {&y}}, "argument 3 is a scalar");
  refused({{&x}, {&x}, real(1)}, "argument 2 is written, or the same array is");
}

TEST(Interpreter, PrivateArraysStartWithZerosInEachIteration) {
  std::string text =
      R"(costate.kernel @k(%x: !costate.array<f64, 1>, %i: i64) {
  %z = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  scf.for %k = %z to %n step %one : i64 {
    %a = costate.local : !costate.local<f64, 3>
    %b = costate.local : !costate.local<i1, 1>
    %v = costate.load %x[%k] : !costate.array<f64, 1>
    %old = costate.local_load %a[%i] : !costate.local<f64, 3>
    costate.local_store %v, %a[%i] : !costate.local<f64, 3>
    %new = costate.local_load %a[%i] : !costate.local<f64, 3>
    %f = costate.local_load %b[%z] : !costate.local<i1, 1>
    %t = arith.constant true
    costate.local_store %t, %b[%z] : !costate.local<i1, 1>
    %w = arith.select %f, %v, %old : f64
    %s = arith.addf %new, %w : f64
    costate.store %s, %x[%k] : !costate.array<f64, 1>
  }
})";
  Data<double> x({5, 7});
  ASSERT_TRUE(run(text, {{&x}, integer(2)}));
  EXPECT_TRUE(equal(x.values(), {5, 7}));
  expectFailure(run(text, {{&x}, integer(3)}), ErrorCode::OutOfRange,
                "index 3 is outside of a private array of 3 elements");
}

TEST(Interpreter, NamesWhatItDoesNotKnow) {
  auto interpreter = parse(R"(costate.kernel @k(%a: f64, %b: i32) {
  %c = math.fpowi %a, %b : f64, i32
})");
  ASSERT_FALSE(interpreter);
  EXPECT_EQ(interpreter.error().code, ErrorCode::BadKernel);
  EXPECT_EQ(interpreter.error().text, "kernel `k` at k.mlir:2: the interpreter "
                                      "does not know `math.fpowi`");
}

} // namespace
