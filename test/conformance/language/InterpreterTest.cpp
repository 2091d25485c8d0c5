/// The reference interpreter and compiled code, operation by operation.

#include "interpreter/Interpreter.h"
#include "Labels.h"
#include "compiler/Compiler.h"
#include "runtime/cpu/CpuDevice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

COSTATE_LABEL("*", host);

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

void put(interpreter::HostArray &array, const std::string &type,
         const std::vector<uint64_t> &values) {
  size_t size = sizeOf(type);
  array.extents = {static_cast<int64_t>(values.size())};
  array.bytes.resize(values.size() * size);
  for (size_t k = 0; k < values.size(); ++k)
    std::memcpy(array.bytes.data() + k * size, &values[k], size);
}

/// All combinations of edges, one array per operand.
std::vector<interpreter::HostArray>
inputs(const std::vector<std::string> &types) {
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
  std::vector<interpreter::HostArray> arrays(types.size());
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

/// A kernel that applies each of `operations` to the same operands.
std::string kernelText(const std::vector<Operation> &operations) {
  const std::vector<std::string> &from = operations[0].from;
  std::string head = "costate.kernel @k(", body, sep;
  for (size_t k = 0; k < from.size(); ++k) {
    std::string n = std::to_string(k), type = arrayType(from[k]);
    head += sep + "%x" + n + ": " + type;
    sep = ", ";
    body += "%" + n + " = costate.load %x" + n + "[%i] : " + type + "\n";
  }
  for (size_t k = 0; k < operations.size(); ++k) {
    std::string n = std::to_string(k), type = arrayType(operations[k].to);
    head += ", %r" + n + ": " + type;
    body += "%v" + n + " = " + operations[k].text + "\ncostate.store %v" + n +
            ", %r" + n + "[%i] : " + type + "\n";
  }
  return head + ") {\n%n = costate.extent %x0[0] : " + arrayType(from[0]) +
         "\ncostate.range (%i) in (%n) {\n" + body + "}\n}";
}

using Arrays = std::vector<interpreter::HostArray>;

void runCompiled(compiler::Program &program, Arrays &arrays) {
  static auto device = *runtime::openCpu(1, 0);
  auto code = program.compile(Mode::Primal, {});
  ASSERT_TRUE(code) << code.error().text;
  std::vector<uint64_t> slots;
  for (interpreter::HostArray &array : arrays) {
    slots.push_back(reinterpret_cast<uintptr_t>(array.bytes.data()));
    slots.push_back(array.extents[0]);
  }
  runtime::LaunchRequest request{&*code, slots, {}, false};
  EXPECT_TRUE(device->launch(request));
  EXPECT_TRUE(device->synchronize());
}

void runInterpreted(compiler::Program &program, Arrays &arrays) {
  auto kernel = program.interpret(Mode::Primal, {});
  ASSERT_TRUE(kernel) << kernel.error().text;
  std::vector<interpreter::InterpreterArgument> arguments;
  for (interpreter::HostArray &array : arrays)
    arguments.push_back({&array});
  auto report = kernel->interpreter.run(arguments);
  EXPECT_TRUE(report) << report.error().text;
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

void compare(const Operation &op, const interpreter::HostArray &a,
             const interpreter::HostArray &b) {
  for (size_t k = 0; k < static_cast<size_t>(a.extents[0]); ++k)
    if (!agree(a.bytes, b.bytes, op, k)) {
      ADD_FAILURE() << op.text << " differs in row " << k << ": "
                    << describe(a.bytes, op, k) << " and "
                    << describe(b.bytes, op, k);
      return;
    }
}

void expectAgreement(const std::vector<Operation> &operations) {
  auto program =
      compiler::Program::parse(kernelText(operations), "k.mlir", "k", {});
  ASSERT_TRUE(program) << program.error().text;
  Arrays compiled = inputs(operations[0].from);
  size_t operands = compiled.size(), rows = compiled[0].extents[0];
  for (const Operation &op : operations)
    put(compiled.emplace_back(), op.to, std::vector<uint64_t>(rows));
  Arrays interpreted = compiled;
  runCompiled(**program, compiled);
  runInterpreted(**program, interpreted);
  for (size_t k = 0; k < operations.size(); ++k)
    compare(operations[k], compiled[operands + k], interpreted[operands + k]);
}

/// Operations to be compared, when it goes, on all combinations of edges; those
/// on the same operands share a kernel.
class Agreement {
public:
  ~Agreement() {
    for (auto &[from, operations] : byOperands)
      expectAgreement(operations);
  }

  void add(const Operation &op) { byOperands[op.from].push_back(op); }
  void add(const std::string &op, const std::string &type, int operands,
           const std::string &to = "", double ulps = 0) {
    const char *lists[] = {"", " %0", " %0, %1", " %0, %1, %2"};
    add({op + lists[operands] + " : " + type,
         std::vector<std::string>(operands, type), to.empty() ? type : to,
         ulps});
  }

private:
  std::map<std::vector<std::string>, std::vector<Operation>> byOperands;
};

TEST(InterpreterAndCompiledCode, AgreeOnIntegers) {
  Agreement all;
  for (std::string type : {"i32", "i64"}) {
    for (std::string sign : {"", "unsigned "})
      for (std::string op : {"div", "rem", "shl", "shr"})
        all.add("costate." + op + " " + sign, type, 2);
    all.add("math.absi", type, 1);
  }
  for (std::string type : {"i1", "i32", "i64"})
    for (std::string op : {"addi", "subi", "muli", "andi", "ori", "xori",
                           "minsi", "maxsi", "minui", "maxui"})
      all.add("arith." + op, type, 2);
  for (std::string op : {"ctpop", "ctlz", "cttz"})
    all.add("math." + op, "i32", 1);
}

TEST(InterpreterAndCompiledCode, AgreeOnComparisons) {
  Agreement all;
  for (std::string type : {"i1", "i32", "i64"})
    for (std::string predicate :
         {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
      all.add("arith.cmpi " + predicate + ",", type, 2, "i1");
  for (std::string type : {"f32", "f64"})
    for (std::string predicate :
         {"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq",
          "ugt", "uge", "ult", "ule", "une", "uno", "true"})
      all.add("arith.cmpf " + predicate + ",", type, 2, "i1");
}

TEST(InterpreterAndCompiledCode, AgreeOnConversions) {
  Agreement all;
  auto convert = [&](const std::string &op, const std::string &from,
                     const std::string &to) {
    all.add({op + " %0 : " + from + " to " + to, {from}, to});
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
  Agreement all;
  for (std::string type : {"f32", "f64"}) {
    for (std::string op : {"addf", "subf", "mulf", "divf", "remf", "minnumf",
                           "maxnumf", "minimumf", "maximumf"})
      all.add("arith." + op, type, 2);
    all.add("arith.negf", type, 1);
    all.add("math.copysign", type, 2);
    all.add("costate.strong_mul", type, 2);
    all.add("costate.strong_mul symmetric", type, 2);
    for (std::string op : {"absf", "floor", "ceil", "round", "roundeven",
                           "trunc", "sqrt", "rsqrt"})
      all.add("math." + op, type, 1);
    for (std::string op : {"isfinite", "isnan"})
      all.add("math." + op, type, 1, "i1");
    all.add("math.fma", type, 3);
    all.add({"arith.select %0, %1, %2 : " + type, {"i1", type, type}, type});
  }
}

TEST(InterpreterAndCompiledCode, AgreeOnFunctionsButForTheLastBits) {
  Agreement all;
  for (std::string type : {"f32", "f64"}) {
    for (std::string op :
         {"sin",  "cos",   "tan",   "asin",  "acos", "atan", "sinh",  "cosh",
          "tanh", "asinh", "acosh", "atanh", "exp",  "exp2", "expm1", "log",
          "log2", "log10", "log1p", "cbrt",  "erf",  "erfc"})
      all.add("math." + op, type, 1, "", 4);
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, ...)                  \
  all.add("costate." #mnemonic, type, operands, "", 4);
#include "costate/detail/operations.def"
  }
}

} // namespace
