/// What some drivers make wrong code of is hidden from them.

#include "compiler/SpirvFixture.h"

namespace costate::compiler {
namespace {

/// Drivers that make wrong code of sums see none.
TEST_F(Spirv, PlacesInArraysAreHiddenFromSomeDrivers) {
  std::string ir =
      withNumber("i64", "  %m = alloca [32 x double]\n"
                        "  %k = and i64 %x, 31\n"
                        "  %to = getelementptr double, ptr %m, i64 %k\n"
                        "  store double 1.0, ptr %to\n"
                        "  %n = and i64 %thread, 31\n"
                        "  %from = getelementptr double, ptr %m, i64 %n\n"
                        "  %d = load double, ptr %from\n"
                        "  %y = fptosi double %d to i64\n");
  VulkanFeatures features = all();
  EXPECT_FALSE(contains(checked(ir, features), "OpShiftRightArithmetic"));
  features.miscompilesPlaceSums = true;
  EXPECT_TRUE(contains(checked(ir, features), "OpShiftRightArithmetic"));
}

/// A driver that takes what is known to be a sign extension for unsigned sees
/// none.
TEST_F(Spirv, SignExtensionsAreHiddenFromSomeDrivers) {
  std::string ir = withNumber("i64", "  %d = bitcast i64 %x to double\n"
                                     "  %n = fptosi double %d to i32\n"
                                     "  %w = sext i32 %n to i64\n"
                                     "  %y = sub i64 %w, %x\n");
  VulkanFeatures features = all();
  EXPECT_TRUE(contains(checked(ir, features), "OpSConvert"));
  features.miscompilesSignExtension = true;
  EXPECT_FALSE(contains(checked(ir, features), "OpSConvert"));
}

/// How many selections more hide numbers of `ir` where there is the defect.
int64_t hiddenBy(bool VulkanFeatures::*defect, const std::string &ir) {
  auto choices = [&](bool has) {
    VulkanFeatures features = all();
    features.*defect = has;
    return static_cast<int64_t>(countOf(checked(ir, features), "OpSelect "));
  };
  return choices(true) - choices(false);
}

TEST_F(Spirv, NegationsAreHiddenFromSomeDrivers) {
  auto hidden = [&](const std::string &type, const std::string &from) {
    std::string least = "@llvm.smin." + type;
    return hiddenBy(&VulkanFeatures::miscompilesNegatedMinimum,
                    withNumber(type,
                               "  %n = sub " + type + " " + from +
                                   ", %x\n  %t = add " + type +
                                   " %x, 7\n  %y = call " + type + " " + least +
                                   "(" + type + " %n, " + type + " %t)\n",
                               "declare " + type + " " + least + "(" + type +
                                   ", " + type + ")\n"));
  };
  for (std::string type : {"i32", "i64"}) {
    EXPECT_EQ(hidden(type, "0"), 1) << type;
    EXPECT_EQ(hidden(type, "5"), 0) << type;
  }
}

/// As LLVM leaves them: extrema that nothing else uses are saturated by then.
constexpr const char *saturated[] = {
    // x < 3 ? 0 : x - 3
    "  %c = icmp ult TYPE %x, 3\n  %d = sub TYPE %x, 3\n"
    "  %y = select i1 %c, TYPE 0, TYPE %d\n",
    "  %c = icmp ugt TYPE %x, 2\n  %d = add TYPE %x, -3\n"
    "  %y = select i1 %c, TYPE %d, TYPE 0\n",
    "  %c = icmp ugt TYPE %x, 9\n  %d = sub TYPE 9, %x\n"
    "  %y = select i1 %c, TYPE 0, TYPE %d\n",
    // whatever decides
    "  %c = icmp ult TYPE %x, 30\n  %d = sub TYPE %x, 3\n"
    "  %y = select i1 %c, TYPE 0, TYPE %d\n",
    // by branches that are more than a choice
    "  %c = icmp ugt TYPE %x, 2\n  br i1 %c, label %more, label %end\n"
    "more:\n  %d = add TYPE %x, -3\n  store volatile TYPE %d, ptr %p\n"
    "  br label %end\n"
    "end:\n  %y = phi TYPE [ 0, %0 ], [ %d, %more ]\n",
    "  %c = icmp ult TYPE %x, 3\n  br i1 %c, label %end, label %more\n"
    "more:\n  %d = add TYPE %x, -3\n  store volatile TYPE %d, ptr %p\n"
    "  br label %end\n"
    "end:\n  %y = phi TYPE [ 0, %0 ], [ %d, %more ]\n",
    // where nothing comes from one side
    "  %k = icmp sgt TYPE %x, 1000\n  br i1 %k, label %left, label %right\n"
    "right:\n  %c = icmp ult TYPE %x, 3\n"
    "  br i1 %c, label %tail, label %high\n"
    "high:\n  %d = add TYPE %x, -3\n  br label %end\n"
    "left:\n  %v = load volatile TYPE, ptr %p\n  br label %end\n"
    "end:\n  %r = phi TYPE [ %d, %high ], [ %v, %left ]\n"
    "  store volatile TYPE %r, ptr %p\n  br label %tail\n"
    "tail:\n  %y = phi TYPE [ 5, %right ], [ %r, %end ]\n",
    // x < z ? w : w + (x - z)
    "  %z = mul TYPE %x, %x\n  %w = mul TYPE %z, %x\n"
    "  %c = icmp ult TYPE %x, %z\n  %d = sub TYPE %x, %z\n"
    "  %s = add TYPE %w, %d\n  br i1 %c, label %less, label %end\n"
    "less:\n  store volatile TYPE %w, ptr %p\n  br label %end\n"
    "end:\n  %y = phi TYPE [ %w, %less ], [ %s, %0 ]\n",
    // max(x, z) - z
    "  %z = mul TYPE %x, %x\n  %c = icmp ugt TYPE %x, %z\n"
    "  %m = select i1 %c, TYPE %x, TYPE %z\n  %y = sub TYPE %m, %z\n",
    "  %z = mul TYPE %x, %x\n  %c = icmp ugt TYPE %x, %z\n"
    "  %m = select i1 %c, TYPE %x, TYPE %z\n  %y = sub TYPE %m, %z\n"
    "  store volatile TYPE %m, ptr %p\n",
    // x - min(x, z)
    "  %z = mul TYPE %x, %x\n  %c = icmp ult TYPE %x, %z\n"
    "  %m = select i1 %c, TYPE %x, TYPE %z\n  %y = sub TYPE %x, %m\n",
    "  %z = mul TYPE %x, %x\n  %c = icmp ult TYPE %x, %z\n"
    "  %m = select i1 %c, TYPE %x, TYPE %z\n  %y = sub TYPE %x, %m\n"
    "  store volatile TYPE %m, ptr %p\n",
    // x + 3, or all ones
    "  %d = add TYPE %x, 3\n  %c = icmp ult TYPE %d, %x\n"
    "  %y = select i1 %c, TYPE -1, TYPE %d\n",
    // min(x, ~z) + z
    "  %z = mul TYPE %x, %x\n  %n = xor TYPE %z, -1\n"
    "  %c = icmp ult TYPE %x, %n\n"
    "  %m = select i1 %c, TYPE %x, TYPE %n\n  %y = add TYPE %m, %z\n"
    "  store volatile TYPE %m, ptr %p\n",
};

constexpr const char *unsaturated[] = {
    "  %y = sub TYPE %x, 3\n",
    "  %c = icmp ult TYPE %x, 30\n  %d = sub TYPE %x, 3\n"
    "  %y = select i1 %c, TYPE 7, TYPE %d\n",
    "  %z = mul TYPE %x, %x\n  %c = icmp slt TYPE %z, 0\n"
    "  %d = sub TYPE 0, %z\n  %y = select i1 %c, TYPE %d, TYPE %z\n",
    "  %c = icmp eq TYPE %x, 0\n  %d = add TYPE %x, 1\n"
    "  %y = select i1 %c, TYPE 7, TYPE %d\n",
    // a counter after one of two exits
    "  br label %loop\n"
    "loop:\n  %i = phi TYPE [ 0, %0 ], [ %n, %next ]\n"
    "  %v = load volatile TYPE, ptr %p\n  %k = icmp eq TYPE %v, 77\n"
    "  br i1 %k, label %end, label %next\n"
    "next:\n  %n = add TYPE %i, 1\n  %e = icmp eq TYPE %n, %x\n"
    "  br i1 %e, label %end, label %loop\n"
    "end:\n  %y = phi TYPE [ %i, %loop ], [ %n, %next ]\n",
};

TEST_F(Spirv, SaturationIsHiddenFromSomeDrivers) {
  auto hidden = [&](std::string body, const std::string &type) {
    for (size_t at; (at = body.find("TYPE")) != body.npos;)
      body.replace(at, 4, type);
    return hiddenBy(&VulkanFeatures::miscompilesSaturation,
                    withNumber(type, body));
  };
  for (std::string body : saturated) {
    EXPECT_EQ(hidden(body, "i64"), 1) << body;
    EXPECT_EQ(hidden(body, "i32"), 0) << body;
  }
  for (std::string body : unsaturated)
    EXPECT_EQ(hidden(body, "i64"), 0) << body;
}

TEST_F(Spirv, BitsThatAreExchangedAreHiddenFromSomeDrivers) {
  auto hidden = [&](const std::string &type) {
    std::string made = "  %n = sitofp i64 %thread to " + type +
                       "\n  %y = atomicrmw xchg ptr %p, " + type +
                       " %n monotonic\n";
    return hiddenBy(&VulkanFeatures::crashesOnExchangedF64,
                    withNumber(type, made));
  };
  EXPECT_EQ(hidden("double"), 1);
  EXPECT_EQ(hidden("float"), 0);
}

TEST_F(Spirv, RoundingToHalfIsHiddenFromSomeDrivers) {
  std::string whole = "  %t = trunc i64 %thread to i16\n";
  for (const std::string &half :
       {std::string("  %h = fptrunc float %x to half\n"),
        whole + "  %h = sitofp i16 %t to half\n",
        whole + "  %h = uitofp i16 %t to half\n"})
    EXPECT_EQ(
        hiddenBy(&VulkanFeatures::skipsHalfRounding,
                 withNumber("float", half + "  %y = fpext half %h to float\n")),
        1)
        << half;
}

} // namespace
} // namespace costate::compiler
