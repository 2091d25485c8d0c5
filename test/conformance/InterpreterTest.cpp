/// The reference interpreter and compiled code, operation by operation.

#include "ir/interpreter/Interpreter.h"
#include "compiler/Compiler.h"
#include "runtime/cpu/CpuDevice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace costate;
using compiler::Mode;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Numbers at which operations differ, as bits of the type that is named.
std::vector<uint64_t> edges(const std::string &type) {
  if (type == "i1")
    return {0, 1};
  if (type == "i32")
    return {0,  1,          2,          7,          31,        32,
            33, 0x7fffffff, 0x80000000, 0xfffffff9, 0xffffffff};
  if (type == "i64")
    return {0,          1,         2,          7,     63,   64,
            1ull << 32, INT64_MAX, 1ull << 63, ~6ull, ~0ull};
  std::vector<uint64_t> bits;
  for (double value : {0., -0., 0.3, 1., -1., 1.5, 2.5, -2.5, 7., 1e10, -3e9,
                       1e-310, 1e300, -1e300, 9.3e18, 1.9e19, inf, -inf, nan})
    bits.push_back(type == "f64" ? std::bit_cast<uint64_t>(value)
                                 : std::bit_cast<uint32_t>(float(value)));
  return bits;
}

size_t sizeOf(const std::string &type) {
  return type == "i1" ? 1 : type.ends_with("32") ? 4 : 8;
}

void put(ir::HostArray &array, const std::string &type,
         const std::vector<uint64_t> &values) {
  size_t size = sizeOf(type);
  array.extents = {static_cast<int64_t>(values.size())};
  array.bytes.resize(values.size() * size);
  for (size_t k = 0; k < values.size(); ++k)
    std::memcpy(array.bytes.data() + k * size, &values[k], size);
}

/// All combinations of edges, one array per operand.
std::vector<ir::HostArray> inputs(const std::vector<std::string> &types) {
  std::vector<std::vector<uint64_t>> columns(types.size());
  std::vector<uint64_t> row(types.size());
  auto fill = [&](auto &self, size_t k) -> void {
    if (k == types.size()) {
      for (size_t c = 0; c < k; ++c)
        columns[c].push_back(row[c]);
      return;
    }
    for (uint64_t bits : edges(types[k])) {
      row[k] = bits;
      self(self, k + 1);
    }
  };
  fill(fill, 0);
  std::vector<ir::HostArray> arrays(types.size());
  for (size_t k = 0; k < types.size(); ++k)
    put(arrays[k], types[k], columns[k]);
  return arrays;
}

struct Operation {
  std::string text; ///< with operands %0 %1 %2
  std::vector<std::string> from;
  std::string to;
  double ulps = 0; ///< how far the functions of the host may be off
};

std::string arrayType(const std::string &element) {
  return "!costate.array<" + element + ", 1>";
}

std::string kernelText(const Operation &op) {
  std::string head = "costate.kernel @k(%r: " + arrayType(op.to), loads;
  for (size_t k = 0; k < op.from.size(); ++k) {
    std::string n = std::to_string(k), type = arrayType(op.from[k]);
    head += ", %x" + n + ": " + type;
    loads += "%" + n + " = costate.load %x" + n + "[%i] : " + type + "\n";
  }
  return head + ") {\n%n = costate.extent %r[0] : " + arrayType(op.to) +
         "\ncostate.range (%i) in (%n) {\n" + loads + "%v = " + op.text +
         "\ncostate.store %v, %r[%i] : " + arrayType(op.to) + "\n}\n}";
}

std::vector<std::byte> compiled(compiler::Program &program,
                                ir::HostArray result,
                                std::vector<ir::HostArray> arrays) {
  static auto device = *runtime::openCpu(1, 0);
  auto code = program.compile(Mode::Primal, {});
  EXPECT_TRUE(code) << code.error().text;
  if (!code)
    return {};
  std::vector<uint64_t> slots;
  arrays.insert(arrays.begin(), result);
  for (ir::HostArray &array : arrays) {
    slots.push_back(reinterpret_cast<uintptr_t>(array.bytes.data()));
    slots.push_back(array.extents[0]);
  }
  runtime::LaunchRequest request{&*code, slots, {}, false};
  EXPECT_TRUE(device->launch(request));
  EXPECT_TRUE(device->synchronize());
  return arrays[0].bytes;
}

std::vector<std::byte> interpreted(compiler::Program &program,
                                   ir::HostArray result,
                                   std::vector<ir::HostArray> arrays) {
  auto kernel = program.interpret(Mode::Primal, {});
  EXPECT_TRUE(kernel) << kernel.error().text;
  std::vector<ir::InterpreterArgument> arguments = {{&result}};
  for (ir::HostArray &array : arrays)
    arguments.push_back({&array});
  auto report = kernel->interpreter.run(arguments);
  EXPECT_TRUE(report) << report.error().text;
  return result.bytes;
}

template <class T> T element(const std::vector<std::byte> &bytes, size_t k) {
  T value;
  std::memcpy(&value, bytes.data() + k * sizeof(T), sizeof(T));
  return value;
}

/// Equal bits (any NaN for a NaN, either 0 for a 0), or close by.
template <class T> bool agree(T a, T b, double ulps) {
  if (a == b || (a != a && b != b))
    return true;
  T above = std::nextafter(std::fabs(a), T(inf)) - std::fabs(a);
  return std::fabs(a - b) <= ulps * above;
}

bool agree(const std::vector<std::byte> &a, const std::vector<std::byte> &b,
           const Operation &op, size_t k) {
  if (op.to == "f64")
    return agree(element<double>(a, k), element<double>(b, k), op.ulps);
  if (op.to == "f32")
    return agree(element<float>(a, k), element<float>(b, k), op.ulps);
  size_t size = sizeOf(op.to);
  return std::memcmp(a.data() + k * size, b.data() + k * size, size) == 0;
}

std::string describe(const std::vector<std::byte> &bytes, const Operation &op,
                     size_t k) {
  if (op.to == "f64")
    return std::to_string(element<double>(bytes, k));
  if (op.to == "f32")
    return std::to_string(element<float>(bytes, k));
  return op.to == "i64"   ? std::to_string(element<int64_t>(bytes, k))
         : op.to == "i32" ? std::to_string(element<int32_t>(bytes, k))
                          : std::to_string(element<uint8_t>(bytes, k));
}

void expectAgreement(const Operation &op) {
  auto program = compiler::Program::parse(kernelText(op), "k.mlir", "k", {});
  ASSERT_TRUE(program) << op.text << ": " << program.error().text;
  std::vector<ir::HostArray> arrays = inputs(op.from);
  ir::HostArray result;
  size_t count = arrays[0].extents[0];
  put(result, op.to, std::vector<uint64_t>(count));
  auto a = compiled(**program, result, arrays);
  auto b = interpreted(**program, result, arrays);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < count; ++k)
    if (!agree(a, b, op, k)) {
      ADD_FAILURE() << op.text << " differs in row " << k << ": "
                    << describe(a, op, k) << " and " << describe(b, op, k);
      return;
    }
}

void expectAgreement(const std::string &op, const std::string &type,
                     int operands, const std::string &to = "",
                     double ulps = 0) {
  const char *lists[] = {"", " %0", " %0, %1", " %0, %1, %2"};
  expectAgreement({op + lists[operands] + " : " + type,
                   std::vector<std::string>(operands, type),
                   to.empty() ? type : to, ulps});
}

TEST(InterpreterAndCompiledCode, AgreeOnIntegers) {
  for (std::string type : {"i32", "i64"}) {
    for (std::string sign : {"", "unsigned "})
      for (std::string op : {"div", "rem", "shl", "shr"})
        expectAgreement("costate." + op + " " + sign, type, 2);
    expectAgreement("math.absi", type, 1);
  }
  for (std::string type : {"i1", "i32", "i64"})
    for (std::string op : {"addi", "subi", "muli", "andi", "ori", "xori",
                           "minsi", "maxsi", "minui", "maxui"})
      expectAgreement("arith." + op, type, 2);
  for (std::string op : {"ctpop", "ctlz", "cttz"})
    expectAgreement("math." + op, "i32", 1);
}

TEST(InterpreterAndCompiledCode, AgreeOnComparisons) {
  for (std::string type : {"i1", "i32", "i64"})
    for (std::string predicate :
         {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
      expectAgreement("arith.cmpi " + predicate + ",", type, 2, "i1");
  for (std::string type : {"f32", "f64"})
    for (std::string predicate :
         {"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq",
          "ugt", "uge", "ult", "ule", "une", "uno", "true"})
      expectAgreement("arith.cmpf " + predicate + ",", type, 2, "i1");
}

TEST(InterpreterAndCompiledCode, AgreeOnConversions) {
  auto convert = [](const std::string &op, const std::string &from,
                    const std::string &to) {
    expectAgreement({op + " %0 : " + from + " to " + to, {from}, to});
  };
  for (std::string real : {"f32", "f64"}) {
    for (std::string integer : {"i32", "i64"}) {
      convert("costate.to_int", real, integer);
      convert("costate.to_int unsigned", real, integer);
    }
    for (std::string integer : {"i1", "i32", "i64"}) {
      convert("arith.sitofp", integer, real);
      convert("arith.uitofp", integer, real);
    }
  }
  for (std::string op : {"arith.extui", "arith.extsi"}) {
    convert(op, "i1", "i32");
    convert(op, "i32", "i64");
  }
  convert("arith.trunci", "i64", "i32");
  convert("arith.trunci", "i64", "i1");
  convert("arith.extf", "f32", "f64");
  convert("arith.truncf", "f64", "f32");
  convert("arith.bitcast", "f64", "i64");
  convert("arith.bitcast", "i32", "f32");
}

TEST(InterpreterAndCompiledCode, AgreeOnFloats) {
  for (std::string type : {"f32", "f64"}) {
    for (std::string op : {"addf", "subf", "mulf", "divf", "remf", "minnumf",
                           "maxnumf", "minimumf", "maximumf"})
      expectAgreement("arith." + op, type, 2);
    expectAgreement("arith.negf", type, 1);
    expectAgreement("math.copysign", type, 2);
    expectAgreement("costate.strong_mul", type, 2);
    expectAgreement("costate.strong_mul symmetric", type, 2);
    for (std::string op : {"absf", "floor", "ceil", "round", "roundeven",
                           "trunc", "sqrt", "rsqrt"})
      expectAgreement("math." + op, type, 1);
    for (std::string op : {"isfinite", "isnan"})
      expectAgreement("math." + op, type, 1, "i1");
    expectAgreement("math.fma", type, 3);
    expectAgreement(
        {"arith.select %0, %1, %2 : " + type, {"i1", type, type}, type});
  }
}

TEST(InterpreterAndCompiledCode, AgreeOnFunctionsButForTheLastBits) {
  for (std::string type : {"f32", "f64"}) {
    for (std::string op :
         {"sin",  "cos",   "tan",   "asin",  "acos", "atan", "sinh",  "cosh",
          "tanh", "asinh", "acosh", "atanh", "exp",  "exp2", "expm1", "log",
          "log2", "log10", "log1p", "cbrt",  "erf",  "erfc"})
      expectAgreement("math." + op, type, 1, "", 4);
    expectAgreement("math.atan2", type, 2, "", 4);
    expectAgreement("math.powf", type, 2, "", 4);
    expectAgreement("costate.hypot", type, 2, "", 4);
  }
}

} // namespace
