#include "compiler/Compiler.h"
#include "compiler/Target.h"

#include <gtest/gtest.h>

namespace costate::compiler {
namespace {

constexpr const char *expSin = R"(
costate.kernel @exp_sin(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %s = costate.sin %v : f64
    %w = costate.exp %s : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}
)";

std::shared_ptr<Program> parse(const char *text, Options options = {}) {
  auto program = Program::parse(text, "test.mlir", "", options);
  EXPECT_TRUE(program) << program.error().text;
  return program ? *program : nullptr;
}

TEST(Program, TheVectoriserCallsVectorMaths) {
  auto text = parse(expSin)->print(Mode::Primal, {}, /*llvm=*/true);
  ASSERT_TRUE(text) << text.error().text;
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(COSTATE_SANITIZE)
  bool areOurs = host().maths != "sse2"; // and become part of the kernel
  EXPECT_NE(text->find(areOurs ? "x double> @llvm.fma." : "x double> @Sleef_"),
            std::string::npos)
      << *text;
#endif
}

TEST(Program, ThePrimalIsTheSameWithAndWithoutGradients) {
  auto hashOf = [](Program &program, Mode mode,
                   const std::vector<bool> &active) {
    auto code = program.compile(mode, active);
    EXPECT_TRUE(code) << code.error().text;
    return code ? code->objectHash : 0;
  };
  uint64_t hash = hashOf(*parse(expSin), Mode::Primal, {});
  auto withGradient = parse(expSin);
  EXPECT_NE(hashOf(*withGradient, Mode::Gradient, {true, true}), hash);
  EXPECT_NE(hashOf(*withGradient, Mode::Tangent, {true, true}), hash);
  EXPECT_EQ(hashOf(*withGradient, Mode::Primal, {}), hash);
}

TEST(Program, SearchesThatAreOffLeaveNoTrace) {
  const std::string scatter = R"(
costate.kernel @scatter(%at: !costate.array<i64, 1>, %x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %v = costate.load %x[%j] : !costate.array<f64, 1>
    %w = costate.log %v : f64
    costate.store %w, %x[%j] : !costate.array<f64, 1>
  }
}
)";
  for (Mode mode : {Mode::Primal, Mode::Gradient, Mode::Tangent}) {
    std::vector<bool> active;
    if (mode != Mode::Primal)
      active = {false, true};
    auto textWith = [&](Options options) {
      auto text = parse(scatter.c_str(), options)->print(mode, active, true);
      EXPECT_TRUE(text) << text.error().text;
      return text ? *text : "";
    };
    std::string plain = textWith({});
    for (const char *trace : {"costate_use", "costate_begin_range",
                              "costate_not_finite", "costate_element"})
      EXPECT_EQ(plain.find(trace), std::string::npos) << trace;
    EXPECT_NE(textWith({.debug = true}).find("costate_use"), std::string::npos);
    EXPECT_NE(textWith({.findNan = true}).find("costate_not_finite"),
              std::string::npos);
    EXPECT_EQ(textWith({}), plain);
  }
}

TEST(Program, AccessesSayWhatIsReadAndWritten) {
  auto code = parse(expSin)->compile(Mode::Gradient, {true, true});
  ASSERT_TRUE(code) << code.error().text;
  ASSERT_EQ(code->accesses.size(), 2u);
  EXPECT_TRUE(code->accesses[0].read);
  EXPECT_FALSE(code->accesses[0].written);
  EXPECT_TRUE(code->accesses[0].needed);
  EXPECT_FALSE(code->accesses[0].reloaded);
  EXPECT_FALSE(code->accesses[1].read);
  EXPECT_TRUE(code->accesses[1].activeWrite);
  ASSERT_EQ(code->parameters.size(), 4u);
  EXPECT_EQ(code->parameters[3].role, runtime::Parameter::Role::Adjoint);
  EXPECT_EQ(code->parameters[3].argument, 1u);
  EXPECT_FALSE(code->growsTape);
}

constexpr const char *looped = R"(
costate.kernel @looped(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = scf.for unsigned %k = %c0 to %n step %c1 iter_args(%u = %v) -> f64 : i64 {
      %s = costate.sin %u : f64
      scf.yield %s : f64
    }
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}
)";

std::string replaced(std::string text, const std::string &what,
                     const std::string &by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST(Program, ARunTimeLoopAndALongOneGrowTheTape) {
  auto grows = [](const std::string &text) {
    auto code = parse(text.c_str())->compile(Mode::Gradient, {true, true});
    EXPECT_TRUE(code) << code.error().text;
    return code && code->growsTape;
  };
  EXPECT_TRUE(grows(looped));
  std::string fixed =
      replaced(replaced(looped, ", %n: i64", ""),
               "  %c1 =", "  %n = arith.constant 500 : i64\n  %c1 =");
  EXPECT_FALSE(grows(fixed));
  EXPECT_TRUE(grows(replaced(fixed, "500", "30000000")));
}

TEST(Program, SitesNameTheLinesOfTheText) {
  auto program = parse(looped);
  auto code = program->compile(Mode::Primal, {});
  ASSERT_TRUE(code) << code.error().text;
  EXPECT_FALSE(code->growsTape);
  EXPECT_EQ(code->recordBytes, 0);
  EXPECT_EQ(code->name, "looped");
  ASSERT_FALSE(code->sites.empty());
  EXPECT_STREQ(code->sites[0].file, "test.mlir");
  EXPECT_EQ(code->sites[0].line, 6u);
}

TEST(Program, ErrorsNameThePlaceInTheText) {
  auto program =
      Program::parse("costate.kernel @f(%x: f64) {\n  %y = arith.mulf"
                     " %x, %z : f64\n}\n",
                     "wrong.mlir", "", Options());
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::BadKernel);
  EXPECT_EQ(program.error().text.find("wrong.mlir:2:"), 0u)
      << program.error().text;
}

TEST(Program, TextsThatNestTooDeepAreRefused) {
  auto nested = [](int depth) {
    std::string text = "costate.kernel @k(%c: i1) {\n";
    for (int k = 0; k < depth; ++k)
      text += "scf.if %c {\n";
    for (int k = 0; k < depth; ++k)
      text += "}\n";
    return Program::parse(text + "}", "test.mlir", "", {});
  };
  EXPECT_TRUE(nested(200));
  auto program = nested(20000);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::BadKernel);
  EXPECT_EQ(program.error().text,
            "test.mlir:257: error: more than 256 brackets "
            "are open; kernels do not nest so deep");
}

TEST(Program, BytecodeIsRefused) {
  auto program = Program::parse("ML\xefR\x01garbage", "test.mlir", "", {});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::BadKernel);
  EXPECT_EQ(program.error().text, "test.mlir:1: error: this is no text");
}

TEST(Program, PlansOfATextAreForReaders) {
  auto program = Program::parse(R"(
costate.kernel @k(%x: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  tape.schedule keep
  scf.for %i = %zero to %n step %one : i64 {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    tape.push %v : f64
  }
  tape.pivot
  scf.for %i = %zero to %n step %one : i64 {
    %v = tape.pop : f64
    costate.store %v, %x[%i] : !costate.array<f64, 1>
  }
})",
                                "test.mlir", "", {});
  ASSERT_TRUE(program);
  auto code = (*program)->interpret(Mode::Primal, {});
  EXPECT_TRUE(code) << code.error().text;
}

TEST(Program, OperationsOfOtherDialectsAreRefused) {
  auto program = Program::parse(
      "costate.kernel @k(%x: f64) {\n"
      "  %y = builtin.unrealized_conversion_cast %x : f64 to i64\n}\n",
      "test.mlir", "", {});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::BadKernel);
  EXPECT_EQ(program.error().text,
            "test.mlir:2:8: error: `builtin.unrealized_conversion_cast` cannot "
            "stand in a kernel; its operations are those of costate, tape, "
            "arith, func, math and scf");
}

TEST(Program, AKernelOfSeveralIsChosenByName) {
  const char *two =
      "costate.kernel @f(%x: i64) {}\ncostate.kernel @g(%x: i64) {}\n";
  auto unnamed = Program::parse(two, "two.mlir", "", Options());
  ASSERT_FALSE(unnamed);
  EXPECT_EQ(unnamed.error().text, "two.mlir: name one of its kernels: `f` `g`");
  auto wrong = Program::parse(two, "two.mlir", "h", Options());
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text,
            "two.mlir: there is no kernel `h`, only `f` `g`");
  auto second = Program::parse(two, "two.mlir", "g", Options());
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->name(), "g");
}

/// `x[i] = x[i]` of elements of `type`.
std::string copying(const std::string &type) {
  std::string array = "!costate.array<" + type + ", 1>";
  return "costate.kernel @f(%x: " + array +
         ") {\n  %n = costate.extent %x[0] : " + array +
         "\n  costate.range (%i) in (%n) {\n    %a = costate.load %x[%i] : " +
         array + "\n    costate.store %a, %x[%i] : " + array + "\n  }\n}\n";
}

TEST(Compiler, TargetsThatNothingMakesCodeForAreNamed) {
  Derivation derivation;
  derivation.target = "toaster";
  auto program = Program::parse(copying("f32"), "copy.mlir", "", Options());
  ASSERT_TRUE(program) << program.error().text;
  auto compiled = (*program)->compile(derivation);
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.error().text.find("code for `toaster`"), std::string::npos)
      << compiled.error().text;
}

TEST(Compiler, NumbersThatADeviceLacksAreNamed) {
  Derivation derivation;
  derivation.target = "vulkan1.2;subgroup=32;i64atomics";
  auto failureOf = [&](const std::string &type) -> std::string {
    auto program = Program::parse(copying(type), "copy.mlir", "", Options());
    EXPECT_TRUE(program) << program.error().text;
    auto compiled = (*program)->compile(derivation);
    return compiled ? "" : compiled.error().text;
  };
  for (std::string type : {"f32", "i32", "i64"})
    EXPECT_EQ(failureOf(type), "");
  for (auto [type, text] : {std::pair("f64", "floats of 64 bits (f64)"),
                            {"f16", "floats of 16 bits (f16)"},
                            {"i16", "elements of 16 bits"},
                            {"i8", "elements of 8 bits"}}) {
    std::string failure = failureOf(type);
    EXPECT_TRUE(failure.starts_with("copy.mlir:4:")) << failure;
    EXPECT_NE(failure.find(text), std::string::npos) << failure;
    EXPECT_NE(failure.find("another device"), std::string::npos) << failure;
  }
}

} // namespace
} // namespace costate::compiler
