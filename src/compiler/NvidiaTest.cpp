#include "compiler/NvidiaCode.h"

#include "llvm/Support/Regex.h"

namespace costate::compiler {
namespace {

void expectFailure(const std::string &ir, const std::string &part) {
  Result<std::string> text = emit(ir);
  ASSERT_FALSE(text.ok()) << *text;
  EXPECT_EQ(text.error().code, ErrorCode::Internal);
  EXPECT_TRUE(contains(text.error().text, part)) << text.error().text;
}

const std::string squarePlusOne =
    "  %s = fmul double %x, %x\n  %y = fadd double %s, 1.0\n";

/// The assembler would take it for one of more bits.
TEST(Nvidia, NegationsInAMinimumAreNotSeen) {
  auto hidden = [](const std::string &result) {
    return contains(
        ptx(withNumber("i32",
                       "  %n = sub i32 0, %x\n  %o = mul i32 %x, %x\n"
                       "  %m = call i32 @llvm.smin.i32(i32 "
                       "%n, i32 7)\n"
                       "  %y = " +
                           result + "\n",
                       "declare i32 @llvm.smin.i32(i32, i32)\n"
                       "declare i32 @llvm.smax.i32(i32, i32)\n")),
        "not.b32");
  };
  EXPECT_TRUE(hidden("call i32 @llvm.smin.i32(i32 %m, i32 %o)"));
  EXPECT_TRUE(hidden("call i32 @llvm.smax.i32(i32 %o, i32 %m)"));
  EXPECT_TRUE(hidden("add i32 %n, %m"));
}

/// `strong_mul` in an iteration that only some lanes have.
const std::string guardedIteration = "  %q = fmul T %x, 3.5\n"
                                     "  %z = fcmp oeq T %x, 0.0\n"
                                     "  %g = select i1 %z, T %x, T %q\n"
                                     "  %r = fcmp olt T %x, 7.0\n"
                                     "  %y = select i1 %r, T %g, T %x\n";

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  for (size_t at = text.find(from); at != text.npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST(Nvidia, AGuardedProductOfSomeLanesHasOneCondition) {
  for (std::string bits : {"32", "64"}) {
    std::string type = bits == "32" ? "float" : "double";
    std::string text =
        ptx(withNumber(type, replaced(guardedIteration, "T", type)));
    std::string zero = bits == "32" ? "0f00000000" : "0d0000000000000000";
    std::string joined = "mul.rn.fN[ \t]+([^,]+), ([^,]+), .*"
                         "setp.lt.fN[ \t]+([^,]+), \\2, .*"
                         "setp.neu.and.fN ([^,]+), \\2, Z, \\3;.*"
                         "selp.fN[ \t]+[^,]+, \\1, \\2, \\4;";
    llvm::Regex regex(replaced(replaced(joined, "N", bits), "Z", zero));
    EXPECT_TRUE(regex.match(text)) << text;
  }
}

TEST(Nvidia, WhatIsNoGuardIsNotJoined) {
  std::pair<std::string, std::string> changes[] = {
      {"T %g, T %x", "T %x, T %g"},       {"T %g, T %x", "T %g, T %q"},
      {"%z, T %x", "%z, T %q"},           {"oeq T %x, 0.0", "une T %x, 0.0"},
      {"oeq T %x, 0.0", "oeq T %x, 1.0"}, {"oeq T %x, 0.0", "oeq T %q, 0.0"}};
  for (const auto &[from, to] : changes) {
    std::string body =
        replaced(replaced(guardedIteration, from, to), "T", "float");
    EXPECT_FALSE(contains(ptx(withNumber("float", body)), "setp.neu.and"))
        << from << " becomes " << to;
  }
}

/// Asked after the branch of the block that loads it, but not in a loop.
TEST(Nvidia, WhetherALoadedNumberIsZeroIsAskedLate) {
  auto asked = [](const std::string &inOther, const std::string &type) {
    return ptx(withNumber(
        type, "  %z = fcmp oeq " + type +
                  " %x, 0.0\n"
                  "  %c = icmp eq i64 %thread, 7\n"
                  "  br i1 %c, label %one, label %other\n"
                  "one:\n"
                  "  %u = select i1 %z, float 1.0, float 2.0\n"
                  "  store volatile float %u, ptr %p\n"
                  "  br label %end\n" +
                  inOther + "end:\n  %y = fadd " + type + " %x, 3.0\n"));
  };
  const std::string question = "setp.eq.f32", store = "st.volatile";
  const std::string other =
      "other:\n  %v = select i1 %z, double 4.0, double 5.0\n"
      "  store volatile double %v, ptr %p\n  br label %end\n";
  std::string straight = asked(other, "float");
  EXPECT_EQ(countOf(straight, question), 2u) << straight;
  EXPECT_GT(straight.find(question), straight.find("bra")) << straight;

  std::string loop =
      asked("other:\n  br label %iteration\n"
            "iteration:\n  %k = phi i64 [ 0, %other ], [ %l, %iteration ]\n"
            "  %f = sitofp i64 %k to float\n"
            "  %v = select i1 %z, float %f, float 5.0\n"
            "  store volatile float %v, ptr %p\n  %l = add i64 %k, 1\n"
            "  %m = icmp ult i64 %l, %threads\n"
            "  br i1 %m, label %iteration, label %end\n",
            "float");
  EXPECT_GE(countOf(loop, question), 2u) << loop;
  EXPECT_GT(loop.find(question), loop.find("bra")) << loop;
  for (size_t at = loop.find(question); at != std::string::npos;
       at = loop.find(question, at + 1)) {
    std::string after = loop.substr(at, loop.find(store, at) - at);
    EXPECT_EQ(contains(after, "cvt.rn.f32"), contains(after, "$L__")) << loop;
  }

  // The bits of a half are none of a float.
  std::string half = asked(other, "half");
  EXPECT_FALSE(contains(half, "setp.eq.f32 %p")) << half;

  std::string here =
      ptx(withNumber("float", "  %z = fcmp oeq float %x, 0.0\n"
                              "  %y = select i1 %z, float 4.0, float 5.0\n"));
  EXPECT_EQ(countOf(here, question), 1u) << here;
}

TEST(Nvidia, SmallLoopsOfFewIterationsAreUnrolledOnceByASmallFactor) {
  auto loop = [](const std::string &iterations, size_t products = 1) {
    std::string squares, last = "%d0";
    for (size_t k = 1; k < products; ++k) {
      std::string next = "%d" + std::to_string(k);
      squares += "  " + next + " = mul i32 " + last + ", " + last + "\n";
      last = next;
    }
    return ptx(withNumber(
        "i32", "  %n = " + iterations +
                   "\n  %e = icmp eq i32 %n, 0\n"
                   "  br i1 %e, label %end, label %iteration\n"
                   "iteration:\n"
                   "  %k = phi i32 [ 0, %0 ], [ %l, %iteration ]\n"
                   "  %c = phi i32 [ %x, %0 ], [ %b, %iteration ]\n"
                   "  %d0 = mul i32 %c, %c\n" +
                   squares + "  %b = xor i32 " + last +
                   ", %n\n"
                   "  %l = add i32 %k, 1\n"
                   "  %m = icmp ult i32 %l, %n\n"
                   "  br i1 %m, label %iteration, label %end\n"
                   "end:\n"
                   "  %y = phi i32 [ %x, %0 ], [ %b, %iteration ]\n"));
  };
  std::string few = loop("and i32 %x, 15"), any = loop("lshr i32 %x, 1");
  EXPECT_EQ(countOf(few, "xor.b32"), 4u + 1u);
  EXPECT_EQ(countOf(few, "nounroll"), 2u); // what is left over as well
  EXPECT_GT(countOf(any, "xor.b32"), 4u + 1u);
  EXPECT_EQ(countOf(any, "nounroll"), 1u);
  EXPECT_LT(countOf(loop("and i32 %x, 15", 40), "xor.b32"), 4u);
}

TEST(Nvidia, AKernelTakesTheWordsByValueAndUsesGlobalMemory) {
  std::string text = ptx(withNumber("double", squarePlusOne, "", 3));
  EXPECT_TRUE(contains(text, ".visible .entry f$2erange0$kernel(")) << text;
  EXPECT_TRUE(
      contains(text, ".param .align 8 .b8 f$2erange0$kernel_param_0[24]"))
      << text;
  EXPECT_TRUE(contains(text, ".target sm_90")) << text;
  EXPECT_TRUE(contains(text, "ld.global.b64")) << text;
  EXPECT_TRUE(contains(text, "st.global.b64")) << text;
  EXPECT_FALSE(contains(text, ".func")) << text;
}

TEST(Nvidia, PrivateArraysAreLocalMemory) {
  std::string text = ptx(withNumber(
      "double",
      "  %m = alloca double, i64 100, align 8\n"
      "  call void @llvm.memset.p0.i64(ptr %m, i8 0, i64 800, i1 false)\n"
      "  %to = getelementptr double, ptr %m, i64 %thread\n"
      "  store double %x, ptr %to\n"
      "  %from = getelementptr double, ptr %m, i64 %threads\n"
      "  %y = load double, ptr %from\n",
      "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"));
  EXPECT_TRUE(contains(text, ".local .align 8 .b8")) << text;
  EXPECT_TRUE(contains(text, "st.local.b64")) << text;
  EXPECT_TRUE(contains(text, "ld.local.b64")) << text;
  EXPECT_FALSE(contains(text, "memset")) << text;
}

TEST(Nvidia, NothingIsContracted) {
  std::string text = ptx(withNumber("double", squarePlusOne));
  EXPECT_TRUE(contains(text, "mul.rn.f64")) << text;
  EXPECT_TRUE(contains(text, "add.rn.f64")) << text;
  EXPECT_FALSE(contains(text, "fma")) << text;
}

TEST(Nvidia, AFusedOperationThatIsAskedForIsOne) {
  std::string text =
      ptx(withNumber("float",
                     "  %y = call float @llvm.fma.f32(float %x, float %x, "
                     "float 1.0)\n",
                     "declare float @llvm.fma.f32(float, float, float)"));
  EXPECT_TRUE(contains(text, "fma.rn.f32")) << text;
}

TEST(Nvidia, DivisionAndRootAreExactAndKeepDenormals) {
  std::string text =
      ptx(withNumber("float",
                     "  %s = call float @llvm.sqrt.f32(float %x)\n"
                     "  %y = fdiv float %s, %x\n",
                     "declare float @llvm.sqrt.f32(float)"));
  EXPECT_TRUE(contains(text, "sqrt.rn.f32")) << text;
  EXPECT_TRUE(contains(text, "div.rn.f32")) << text;
  EXPECT_FALSE(contains(text, "ftz")) << text;
}

TEST(Nvidia, ApproximationsAreInstructionsThatKeepDenormals) {
  std::string text = ptx(
      withNumber("float",
                 "  %s = call float @llvm.nvvm.sin.approx.f(float %x)\n"
                 "  %e = call float @llvm.nvvm.ex2.approx.f32(float %s)\n"
                 "  %l = call float @llvm.nvvm.lg2.approx.f(float %e)\n"
                 "  %y = call float @llvm.nvvm.div.full(float %l, float %x)\n",
                 "declare float @llvm.nvvm.sin.approx.f(float)\n"
                 "declare float @llvm.nvvm.ex2.approx.f32(float)\n"
                 "declare float @llvm.nvvm.lg2.approx.f(float)\n"
                 "declare float @llvm.nvvm.div.full(float, float)"));
  for (const char *instruction :
       {"sin.approx.f32", "ex2.approx.f32", "lg2.approx.f32", "div.full.f32"})
    EXPECT_TRUE(contains(text, instruction)) << text;
  EXPECT_FALSE(contains(text, "ftz")) << text;
}

TEST(Nvidia, AtomicsHaveTheScopeOfTheDevice) {
  for (std::string type : {"float", "double"}) {
    std::string text = ptx(withNumber(type, "  %y = atomicrmw fadd ptr %a, " +
                                                type + " %x monotonic\n"));
    std::string name = type == "float" ? "f32" : "f64";
    EXPECT_TRUE(contains(text, "atom.relaxed.gpu.global.add." + name) ||
                contains(text, "atom.global.add." + name))
        << text;
    EXPECT_FALSE(contains(text, ".sys")) << text;
  }
}

/// There are none of 8 bits, and none of integers of 16 but the exchange.
TEST(Nvidia, NarrowAtomicsAreThoseOfTheWordAround) {
  for (std::string chip : {"sm_75", "sm_90"})
    for (std::string type : {"i8", "i16"}) {
      std::string added = ptx(withNumber(type, "  %y = atomicrmw add ptr %p, " +
                                                   type + " %x monotonic\n"),
                              chip);
      EXPECT_TRUE(contains(added, "atom.relaxed.gpu.global.cas.b32") ||
                  contains(added, "atom.global.cas.b32") ||
                  contains(added, "cas.b16"))
          << added;
      std::string exchanged = ptx(
          withNumber(type, "  %e = cmpxchg ptr %p, " + type + " %x, " + type +
                               " 1 monotonic monotonic\n  %y = extractvalue {" +
                               type + ", i1} %e, 0\n"),
          chip);
      EXPECT_TRUE(contains(exchanged, "cas.b32") ||
                  contains(exchanged, "cas.b16"))
          << exchanged;
      EXPECT_FALSE(contains(added + exchanged, ".sys"));
    }
}

TEST(Nvidia, HalvesAreRounded) {
  std::string text = ptx(withNumber(
      "half", "  %f = fpext half %x to float\n  %g = fmul float %f, %f\n"
              "  %h = fptrunc float %g to half\n"
              "  %y = atomicrmw fadd ptr %p, half %h monotonic\n"));
  EXPECT_TRUE(contains(text, "mul.rn.f16") || contains(text, "cvt.rn.f16.f32"))
      << text;
  EXPECT_TRUE(contains(text, "add.noftz.f16")) << text;
  EXPECT_FALSE(contains(text, ".ftz")) << text;
}

TEST(Nvidia, AtomicsThatReturnTheElementAreInstructions) {
  struct {
    const char *instruction, *ptx;
  } cases[] = {{"atomicrmw add ptr %a, i64 %x", ".add.u64"},
               {"atomicrmw and ptr %a, i64 %x", ".and.b64"},
               {"atomicrmw or ptr %a, i64 %x", ".or.b64"},
               {"atomicrmw xor ptr %a, i64 %x", ".xor.b64"},
               {"atomicrmw xchg ptr %a, i64 %x", ".exch.b64"}};
  for (auto [instruction, name] : cases)
    for (bool isWide : {false, true}) {
      std::string type = isWide ? "i64" : "i32", ir = instruction, part = name;
      if (!isWide) {
        ir.replace(ir.find("i64"), 3, "i32");
        part.replace(part.size() - 2, 2, "32");
      }
      std::string text = ptx(withNumber(type, "  %y = " + ir + " monotonic\n"));
      EXPECT_TRUE(contains(text, part)) << text;
      EXPECT_FALSE(contains(text, ".sys")) << text;
    }
  for (std::string type : {"float", "double"})
    EXPECT_TRUE(contains(ptx(withNumber(type, "  %y = atomicrmw xchg ptr %a, " +
                                                  type + " %x monotonic\n")),
                         type == "float" ? ".exch.b32" : ".exch.b64"));
  for (std::string type : {"i32", "i64"}) {
    std::string text =
        ptx(withNumber(type, "  %f = cmpxchg ptr %a, " + type + " 7, " + type +
                                 " %x monotonic monotonic\n"
                                 "  %y = extractvalue { " +
                                 type + ", i1 } %f, 0\n"));
    EXPECT_TRUE(contains(text, type == "i32" ? ".cas.b32" : ".cas.b64"))
        << text;
    EXPECT_TRUE(contains(text, "atom.relaxed.gpu.global.cas")) << text;
  }
}

TEST(Nvidia, EveryFunctionIsInTheLibraryAndNoneIsApproximate) {
  size_t found = 0;
  for (const Function &function : functions) {
    if (!isCalled(function))
      continue;
    for (bool isF64 : {false, true}) {
      std::string text = ptx(callOf(function, isF64));
      EXPECT_TRUE(contains(text, ".entry")) << function.operation;
      EXPECT_FALSE(contains(text, ".approx")) << function.operation;
      EXPECT_FALSE(contains(text, ".extern")) << function.operation;
      EXPECT_FALSE(contains(text, "ftz")) << function.operation;
      ++found;
    }
  }
  size_t called = 1; // fmod
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, library, ...)         \
  called += std::string_view(#library) != "Own";
#include "costate/detail/operations.def"
  EXPECT_EQ(found, 2 * called);
}

TEST(Nvidia, FunctionsOfConstantsAreFolded) {
  std::string text = ptx(withNumber(
      "double",
      "  %h = call double @_Z4sinhd(double 1.0e300)\n"
      "  %s = call double @_Z3sind(double -0.0)\n"
      "  %y = call double @llvm.copysign.f64(double %h, double %s)\n",
      "declare double @_Z4sinhd(double)\ndeclare double @_Z3sind(double)\n"
      "declare double @llvm.copysign.f64(double, double)"));
  EXPECT_TRUE(contains(text, ", -4503599627370496;")) << text; // -inf
}

/// So many sines of each other, of `type`, by the function `sine`.
std::string sines(int count, const std::string &type, const std::string &sine) {
  std::string body = "  %y0 = fadd " + type + " %x, 0.0\n";
  for (int i = 0; i < count; ++i)
    body += "  %y" + std::to_string(i + 1) + " = call " + type + " @" + sine +
            "(" + type + " %y" + std::to_string(i) + ")\n";
  body += "  %y = fneg " + type + " %y" + std::to_string(count) + "\n";
  return ptx(withNumber(type, body,
                        "declare " + type + " @" + sine + "(" + type + ")"));
}

TEST(Nvidia, AFewCallsAreInlinedAndManyAreNot) {
  EXPECT_FALSE(contains(sines(2, "double", "_Z3sind"), ".func"));
  EXPECT_TRUE(contains(sines(20, "double", "_Z3sind"), ".func"));
}

TEST(Nvidia, SmallFunctionsAreInlinedMoreOften) {
  std::string some = sines(250, "float", "_Z3sinf");
  EXPECT_FALSE(contains(some, "call.uni (retval0), _Z3sinf"));
  EXPECT_TRUE(contains(some, "call.uni (retval0), libclc_Z3sinf"));
  EXPECT_TRUE(
      contains(sines(500, "float", "_Z3sinf"), "call.uni (retval0), _Z3sinf"));
}

TEST(Nvidia, WhatHasNoCodeIsNamedAndTheProcessLivesOn) {
  expectFailure(withNumber("double",
                           "  %y = call double @llvm.sin.f64(double %x)\n",
                           "declare double @llvm.sin.f64(double)"),
                "`llvm.sin.f64`");
  expectFailure(withNumber("float",
                           "  %y = call float @llvm.exp2.f32(float %x)\n",
                           "declare float @llvm.exp2.f32(float)"),
                "`llvm.exp2.f32`");
  expectFailure(withNumber("double",
                           "  %y = call double @costate_other(double %x)\n",
                           "declare double @costate_other(double)"),
                "`costate_other`");
  expectFailure(withNumber("i64", "  %y = call i64 @llvm.x86.rdtsc()\n",
                           "declare i64 @llvm.x86.rdtsc()"),
                "`llvm.x86.rdtsc`");
  expectFailure(withNumber("double", "  %y = frem double %x, 3.0\n"), "`frem`");
  expectFailure(
      withNumber("i128", "  %y = atomicrmw add ptr %p, i128 %x monotonic\n"),
      "`atomicrmw`");
}

TEST(Nvidia, ANewerChipGetsTheCodeOfTheNewestThatIsKnown) {
  std::string ir = withNumber("double", squarePlusOne);
  EXPECT_TRUE(contains(ptx(ir, "sm_75"), ".target sm_75"));
  EXPECT_TRUE(contains(ptx(ir, "sm_100"), ".target sm_100"));
  EXPECT_TRUE(contains(ptx(ir, "sm_999"), ".target sm_1"));
  for (const char *chip : {"gfx90a", "", "sm_1"}) {
    Result<std::string> text = emit(ir, chip);
    ASSERT_FALSE(text.ok()) << chip;
    EXPECT_TRUE(contains(text.error().text, "no NVIDIA chip")) << chip;
  }
}

TEST(Nvidia, ManyWordsNeedANewerPtxAndTooManyAreAnError) {
  auto version = [](int words) {
    return ptx(withNumber("double", squarePlusOne, "", words));
  };
  EXPECT_TRUE(contains(version(512), ".version 7.8"));
  EXPECT_TRUE(contains(version(513), ".version 8.1"));
  EXPECT_TRUE(contains(version(4095), "[32760]"));
  expectFailure(withNumber("double", squarePlusOne, "", 4096), "4096 words");
}

TEST(Nvidia, AddressesAreGlobalHoweverTheyArrive) {
  std::string text = ptx(sums);
  EXPECT_TRUE(contains(text, "st.global.b64")) << text;
  EXPECT_TRUE(contains(text, "atom.global.add.f64")) << text;
  EXPECT_TRUE(contains(text, "atom.global.add.u64")) << text;
  EXPECT_FALSE(contains(text, "atom.add")) << text;
}

} // namespace
} // namespace costate::compiler
