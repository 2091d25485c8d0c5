#include "compiler/SpirvFixture.h"

#include "Labels.h"
#include "base/DeviceSymbol.h"

#include <cstring>

COSTATE_LABEL("Spirv.AtomicsOfAllKinds", slow);
COSTATE_LABEL("Spirv.EveryFunctionOfTheLibrary", slow);
COSTATE_LABEL("Spirv.FunctionsOfF32NeedNoF64", slow);
COSTATE_LABEL("Spirv.Intrinsics", slow);
COSTATE_LABEL("Spirv.NarrowNumbers", slow);

namespace costate::compiler {
namespace {

TEST_F(Spirv, AKernelFindsItsWordsThroughThePushConstant) {
  std::string code = text(withNumber("double", "  %y = fmul double %x, %x\n"));
  EXPECT_TRUE(contains(code, "\"f$2erange0$kernel\"")) << code;
  EXPECT_TRUE(contains(code, "PushConstant")) << code;
  EXPECT_TRUE(contains(code, "NoContraction")) << code;
  EXPECT_TRUE(contains(code, "BuiltIn WorkgroupSize")) << code;
  EXPECT_TRUE(contains(code, "SpecId 0")) << code;
}

/// Fences of the whole device at every barrier would take much of the time.
TEST_F(Spirv, BarriersOfABlockAreForTheBlock) {
  std::string code = text(withNumber(
      "double",
      "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
      "  %y = fmul double %x, %x\n",
      "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"));
  std::istringstream words(code.substr(code.find("OpControlBarrier")));
  std::string op, execution, memory;
  words >> op >> execution >> memory;
  EXPECT_EQ(execution, memory) << code;
  size_t at = code.find(execution + " = OpConstant ");
  ASSERT_NE(at, code.npos) << code;
  EXPECT_TRUE(code.substr(0, code.find('\n', at)).ends_with(" 2")) << code;
}

/// In all entry points, after the extension.
TEST(SpirvModes, ThreadsComeTogetherAgainWhereTheDeviceCan) {
  auto count = [](bool reconverges) {
    VulkanFeatures features = all();
    features.reconvergence = reconverges;
    Result<std::string> code =
        emit(withNumber("double", "  %y = fmul double %x, %x\n"), features);
    EXPECT_TRUE(code.ok());
    std::vector<uint32_t> words(code->size() / 4);
    std::memcpy(words.data(), code->data(), code->size());
    constexpr uint32_t executionMode = 16, maximallyReconverges = 6023;
    int found = 0;
    for (size_t at = 5; at < words.size(); at += words[at] >> 16)
      found += (words[at] & 0xffff) == executionMode &&
               words[at + 2] == maximallyReconverges;
    return std::pair(found, contains(*code, "SPV_KHR_maximal_reconvergence"));
  };
  EXPECT_EQ(count(true), std::pair(1, true));
  EXPECT_EQ(count(false), std::pair(0, false));
}

/// A kernel that only sorts, for devices whose blocks have several warps.
TEST(SpirvModes, WorkItemsAreSortedWhereSubgroupsAreWarps) {
  for (bool hasWarps : {false, true}) {
    VulkanFeatures features = all();
    features.warps = hasWarps;
    Result<std::string> code = emit(sortedTiles, features);
    ASSERT_TRUE(code.ok()) << code.error().text;
    for (const char *twin : {"tiles", "tiles.shared", "tiles.drain"})
      EXPECT_TRUE(contains(*code, deviceSymbol(twin) + '\0')) << twin;
    EXPECT_EQ(contains(*code, deviceSymbol("tiles.sort")), hasWarps);
  }
}

/// A part of a place may be negative, so that its quotient has a sign.
TEST_F(Spirv, PlacesInArraysAreSumsOfNumbersWithSigns) {
  std::string code =
      text(withNumber("i64", "  %m = alloca [32 x double]\n"
                             "  %k = and i64 %x, 31\n"
                             "  %to = getelementptr double, ptr %m, i64 %k\n"
                             "  store double 1.0, ptr %to\n"
                             "  %n = and i64 %thread, 3\n"
                             "  %b = shl nsw i64 %n, 3\n"
                             "  %s = sub nsw i64 0, %b\n"
                             "  %r = getelementptr i8, ptr %m, i64 %s\n"
                             "  %q = getelementptr i8, ptr %r, i64 32\n"
                             "  %d = load double, ptr %q\n"
                             "  %y = fptosi double %d to i64\n"));
  EXPECT_TRUE(contains(code, "OpShiftRightArithmetic")) << code;
}

/// Of floats; doubles help with denormals, and where there is no fma.
TEST_F(Spirv, QuotientsAndRootsAreRoundedCorrectly) {
  std::string quotient = withNumber("float", "  %y = fdiv float %x, 3.0e+00\n"),
              root = withNumber("float",
                                "  %y = call float @llvm.sqrt.f32(float %x)\n");
  std::string declared = "declare float @llvm.sqrt.f32(float)\n";
  VulkanFeatures nearly = all();
  nearly.div32 = nearly.sqrt32 = false;
  for (const std::string &ir : {quotient, declared + root}) {
    EXPECT_FALSE(contains(checked(ir, all()), " Fma "));
    VulkanFeatures features = nearly;
    std::string code = checked(ir, features);
    EXPECT_TRUE(contains(code, " Fma ")) << code;
    EXPECT_EQ(contains(code, "OpFConvert"), ir == quotient) << code;
    features.denorm32 = false;
    code = checked(ir, features);
    EXPECT_TRUE(contains(code, " Fma ")) << code;
    EXPECT_FALSE(contains(code, "OpFConvert")) << code;
    features.fma32 = false;
    code = checked(ir, features);
    EXPECT_TRUE(contains(code, "OpFConvert")) << code;
  }
  std::string fast = withNumber("float", "  %y = fdiv afn float %x, 3.0e+00\n");
  EXPECT_FALSE(contains(checked(fast, nearly), "OpFConvert"));
}

TEST_F(Spirv, QuotientsThatADeviceHasNotAreNotAskedFor) {
  VulkanFeatures features = all();
  features.miscompilesI64Division = true;
  for (const char *divisor : {"4", "10", "-8", "%threads"})
    for (const char *op : {"sdiv", "srem", "udiv", "urem"}) {
      std::string line = std::string("  %y = ") + op + " i64 %x, " + divisor;
      std::string code = checked(withNumber("i64", line + "\n"), features);
      for (const char *name : {"OpSDiv", "OpSRem", "OpSMod", "OpUMod"})
        EXPECT_FALSE(contains(code, name)) << line << "\n" << code;
      bool calls = std::string(divisor) != "4";
      EXPECT_EQ(contains(code, "OpFunctionCall"), calls) << line;
    }
}

TEST_F(Spirv, LoopsAndBranchesAreStructured) {
  std::string code = text(withNumber(
      "i64", "  br label %head\n"
             "head:\n"
             "  %i = phi i64 [ 0, %0 ], [ %n, %next ]\n"
             "  %s = phi i64 [ %x, %0 ], [ %t, %next ]\n"
             "  %c = icmp slt i64 %i, %threads\n"
             "  br i1 %c, label %body, label %end\n"
             "body:\n"
             "  %odd = and i64 %s, 1\n"
             "  switch i64 %odd, label %next [ i64 0, label %even\n"
             "                                 i64 1, label %stop ]\n"
             "even:\n  %h = lshr i64 %s, 1\n  br label %next\n"
             "stop:\n  %z = icmp eq i64 %s, 7\n"
             "  br i1 %z, label %end, label %next\n"
             "next:\n"
             "  %t = phi i64 [ %s, %body ], [ %h, %even ], [ %i, %stop ]\n"
             "  %n = add i64 %i, 1\n  br label %head\n"
             "end:\n  %y = add i64 %s, %i\n"));
  EXPECT_TRUE(contains(code, "OpLoopMerge")) << code;
  EXPECT_TRUE(contains(code, "OpSelectionMerge")) << code;
}

/// As one becomes whose condition no iteration changes, once that is asked in
/// front.
TEST_F(Spirv, ALoopMayHaveNoEnd) {
  std::string code =
      text(withNumber("double", "  %never = fcmp oeq double %x, 0.0\n"
                                "  br i1 %never, label %forever, label %end\n"
                                "forever:\n"
                                "  store volatile double %x, ptr %memory\n"
                                "  br label %forever\n"
                                "end:\n"
                                "  %y = fmul double %x, %x\n"));
  EXPECT_TRUE(contains(code, "OpLoopMerge")) << code;
}

/// What reports an error is inlined.
TEST_F(Spirv, ChecksReportInOnePlace) {
  std::string code = text(withNumber(
      "i64",
      "  %c = icmp ult i64 %x, 10\n"
      "  br i1 %c, label %next, label %low\n"
      "low:\n  call void @costate_device_index_error(ptr %words, i64 1, "
      "i64 2, i64 3, i64 %x, i64 10)\n  unreachable\n"
      "next:\n  %d = icmp ult i64 %thread, 20\n"
      "  br i1 %d, label %end, label %high\n"
      "high:\n  call void @costate_device_index_error(ptr %words, i64 "
      "4, i64 5, i64 6, i64 %thread, i64 20)\n  unreachable\n"
      "end:\n  %y = add i64 %x, %thread\n",
      "declare void @costate_device_index_error(ptr, i64, i64, i64, i64, i64) "
      "noreturn\n"));
  EXPECT_EQ(countOf(code, "OpAtomicExchange"), 2u)
      << code; // taken and given back
}

/// Drivers make each call the code of the function.
TEST_F(Spirv, LoopsThatCallFunctionsAreNotUnrolled) {
  std::string code = text(
      withNumber("double",
                 "  br label %head\n"
                 "head:\n"
                 "  %i = phi i64 [ 0, %0 ], [ %n, %head ]\n"
                 "  %s = phi double [ %x, %0 ], [ %t, %head ]\n"
                 "  %f = call double @_Z3sind(double %s)\n"
                 "  %t = fadd double %f, %x\n"
                 "  %n = add nsw i64 %i, 1\n"
                 "  %c = icmp slt i64 %n, %threads\n"
                 "  br i1 %c, label %head, label %end\n"
                 "end:\n  %y = fadd double %t, %t\n",
                 "declare double @_Z3sind(double) #1\n"
                 "attributes #1 = { nounwind willreturn memory(none) }\n"));
  // Inlined into the kernel, or called once.
  size_t products = countOf(code, " Fma ");
  EXPECT_GT(products, 10u);
  EXPECT_LT(products, 60u) << code;
}

TEST_F(Spirv, PrivateArraysAreVariables) {
  for (std::string type : {"double", "float", "i8", "i16", "half", "i64"}) {
    std::string code = text(withNumber(
        type, "  %m = alloca [100 x " + type + "]\n  %to = getelementptr " +
                  type + ", ptr %m, i64 %thread\n  store " + type +
                  " %x, ptr %to\n  %from = getelementptr " + type +
                  ", ptr %m, i64 %threads\n  %y = load " + type +
                  ", ptr %from\n"));
    EXPECT_TRUE(contains(code, "OpVariable")) << code;
    EXPECT_TRUE(contains(code, " Function")) << code;
  }
}

/// In a called function nothing comes between the two.
TEST_F(Spirv, PrivateArraysMayBeAliveFromWhereTheyAreMade) {
  std::string code = text(
      withNumber("double", "  %y = call double @kept(double %x, i64 %thread)\n",
                 "declare void @llvm.lifetime.start.p0(ptr)\n"
                 "declare void @llvm.lifetime.end.p0(ptr)\n"
                 "define internal double @kept(double %x, i64 %i) noinline {\n"
                 "  %m = alloca [100 x double]\n"
                 "  call void @llvm.lifetime.start.p0(ptr %m)\n"
                 "  %to = getelementptr double, ptr %m, i64 %i\n"
                 "  store double %x, ptr %to\n"
                 "  %half = lshr i64 %i, 1\n"
                 "  %from = getelementptr double, ptr %m, i64 %half\n"
                 "  %y = load double, ptr %from\n"
                 "  call void @llvm.lifetime.end.p0(ptr %m)\n"
                 "  ret double %y\n}\n"));
  EXPECT_TRUE(contains(code, " Function")) << code;
}

/// Variables with contents are slow to assemble: each call would write them.
TEST_F(Spirv, TablesAreReadFromMemory) {
  auto reads = [&](const std::string &type, const std::string &table) {
    std::string code = text(withNumber(
        type,
        "  %at = getelementptr i8, ptr addrspace(4) @table, i64 %thread\n"
        "  %y = load " +
            type + ", ptr addrspace(4) %at, align 1\n",
        "@table = internal addrspace(4) constant " + table));
    EXPECT_FALSE(contains(code, " Function %")) << code;
    return code;
  };
  for (std::string type :
       {"i8", "i16", "i32", "i64", "half", "float", "double"})
    EXPECT_TRUE(contains(reads(type, "[3 x i8] c\"\\01\\AB\\00\""),
                         "OpString \"costate tables 01ab00"));
  EXPECT_TRUE(contains(reads("i64", "[2 x i16] [i16 258, i16 -1]"),
                       "costate tables 0201ffff"));
  EXPECT_TRUE(contains(reads("i64", "[2 x <2 x float>] [<2 x float> <float "
                                    "1.0, float 2.0>, <2 x float> "
                                    "<float 0.0, float -2.0>]"),
                       "costate tables 0000803f0000004000000000000000c0"));
}

TEST_F(Spirv, OneOfTwoElementsOfAPrivateArray) {
  auto pointers = [&](const std::string &body) {
    return countOf(text(withNumber("double", body)), "OpConvertUToPtr");
  };
  EXPECT_EQ(pointers("  %m = alloca [6 x double]\n"
                     "  %e = getelementptr double, ptr %m, i64 1\n"
                     "  store double 0.0, ptr %e\n"
                     "  %c = fcmp ogt double %x, 1.0\n"
                     "  %one = select i1 %c, ptr %m, ptr %e\n"
                     "  store double %x, ptr %one\n"
                     "  %y = load double, ptr %e\n"),
            pointers("  %y = fadd double %x, %x\n"));
}

TEST_F(Spirv, AtomicsOfAllKinds) {
  for (std::string type : {"i8", "i16", "i32", "i64"})
    for (std::string kind : {"add", "sub", "and", "or", "xor", "xchg", "max",
                             "min", "umax", "umin", "nand"})
      text(withNumber(type, "  %y = atomicrmw " + kind + " ptr %p, " + type +
                                " %x monotonic\n"));
  for (std::string type : {"half", "float", "double"})
    for (std::string kind : {"fadd", "fsub", "fmin", "fmax", "xchg"})
      text(withNumber(type, "  %y = atomicrmw " + kind + " ptr %p, " + type +
                                " %x monotonic\n"));
  for (std::string type : {"i8", "i16", "i32", "i64"})
    text(withNumber(type, "  %f = cmpxchg ptr %a, " + type + " 7, " + type +
                              " %x monotonic monotonic\n"
                              "  %y = extractvalue { " +
                              type + ", i1 } %f, 0\n"));
}

TEST_F(Spirv, EveryFunctionOfTheLibrary) {
  for (const Function &function : functions)
    if (isCalled(function))
      for (bool isF64 : {false, true})
        text(callOf(function, isF64));
}

TEST_F(Spirv, AModuleWithoutKernelsIsValid) {
  text("define void @f() {\n  ret void\n}\n");
}

/// A device with numbers of 32 and 64 bits, but no floats of 64.
VulkanFeatures narrow() {
  VulkanFeatures features;
  features.i64Atomics = features.fma32 = true;
  return features;
}

TEST_F(Spirv, FunctionsOfF32NeedNoF64) {
  auto isDouble = [](const std::string &operation) {
    return operation == "costate.erfc" || operation == "arith.remf";
  };
  for (const Function &function : functions)
    for (bool isF64 : {false, true}) {
      if (!isCalled(function))
        continue;
      Result<std::string> code = emit(callOf(function, isF64), narrow());
      EXPECT_EQ(code.ok(), !isF64 && !isDouble(function.operation))
          << function.operation;
      if (!code) {
        EXPECT_EQ(code.error().code, ErrorCode::BadKernel);
        EXPECT_TRUE(contains(code.error().text, "64 bits"));
      }
    }
}

TEST_F(Spirv, Intrinsics) {
  struct {
    const char *type, *call, *declaration;
  } cases[] = {
      {"double", "llvm.floor.f64(double %x)", "llvm.floor.f64(double)"},
      {"double", "llvm.trunc.f64(double %x)", "llvm.trunc.f64(double)"},
      {"float", "llvm.round.f32(float %x)", "llvm.round.f32(float)"},
      {"float", "llvm.rint.f32(float %x)", "llvm.rint.f32(float)"},
      {"float", "llvm.sqrt.f32(float %x)", "llvm.sqrt.f32(float)"},
      {"double", "llvm.fma.f64(double %x, double %x, double %x)",
       "llvm.fma.f64(double, double, double)"},
      {"float", "llvm.fma.f32(float %x, float %x, float 3.0)",
       "llvm.fma.f32(float, float, float)"},
      {"double", "llvm.minnum.f64(double %x, double 1.0)",
       "llvm.minnum.f64(double, double)"},
      {"float", "llvm.maximum.f32(float %x, float 1.0)",
       "llvm.maximum.f32(float, float)"},
      {"i64", "llvm.ctlz.i64(i64 %x, i1 false)", "llvm.ctlz.i64(i64, i1)"},
      {"i32", "llvm.cttz.i32(i32 %x, i1 false)", "llvm.cttz.i32(i32, i1)"},
      {"i16", "llvm.ctpop.i16(i16 %x)", "llvm.ctpop.i16(i16)"},
      {"i64", "llvm.bitreverse.i64(i64 %x)", "llvm.bitreverse.i64(i64)"},
      {"i32", "llvm.bswap.i32(i32 %x)", "llvm.bswap.i32(i32)"},
      {"i64", "llvm.fshl.i64(i64 %x, i64 %x, i64 %thread)",
       "llvm.fshl.i64(i64, i64, i64)"},
      {"i32", "llvm.smax.i32(i32 %x, i32 7)", "llvm.smax.i32(i32, i32)"},
      {"i32", "llvm.sadd.sat.i32(i32 %x, i32 %x)",
       "llvm.sadd.sat.i32(i32, i32)"},
      {"i8", "llvm.usub.sat.i8(i8 %x, i8 3)", "llvm.usub.sat.i8(i8, i8)"},
  };
  for (auto [type, call, declaration] : cases)
    text(withNumber(type,
                    std::string("  %y = call ") + type + " @" + call + "\n",
                    std::string("declare ") + type + " @" + declaration));
}

TEST_F(Spirv, NarrowNumbers) {
  for (std::string type : {"i8", "i16"})
    for (std::string op : {"add", "sub", "mul", "sdiv", "udiv", "srem", "urem",
                           "and", "or", "xor", "shl", "lshr", "ashr"})
      text(withNumber(type, "  %y = " + op + " " + type + " %x, 3\n"));
  text(withNumber("i8", "  %f = sitofp i8 %x to double\n"
                        "  %g = fmul double %f, 1.5\n"
                        "  %y = fptosi double %g to i8\n"));
  text(withNumber("half", "  %f = fpext half %x to float\n"
                          "  %g = fmul float %f, %f\n"
                          "  %y = fptrunc float %g to half\n"));
}

/// Drivers do anything with numbers that lie elsewhere.
TEST_F(Spirv, NumbersAreAtMultiplesOfTheirSize) {
  for (std::string access :
       {"  %y = load double, ptr %q, align 4\n",
        "  store double %x, ptr %q, align 1\n  %y = fneg double %x\n"}) {
    access = "  %q = getelementptr i8, ptr %p, i64 4\n" + access;
    Result<std::string> code = emit(withNumber("double", access), all());
    ASSERT_FALSE(code.ok()) << access;
    EXPECT_TRUE(contains(code.error().text,
                         "memory of 8 bytes is accessed at multiples of"))
        << code.error().text;
  }
}

TEST_F(Spirv, WhatHasNoCodeIsNamedAndTheProcessLivesOn) {
  Result<std::string> code = emit(
      withNumber("double", "  %y = call double @costate_other(double %x)\n",
                 "declare double @costate_other(double)"),
      all());
  ASSERT_FALSE(code.ok());
  EXPECT_TRUE(contains(code.error().text, "costate_other"))
      << code.error().text;
}

} // namespace
} // namespace costate::compiler
