#include "ir/Text.h"

#include <gtest/gtest.h>

using costate::ir::faultOf;

static std::string faultIn(const std::string &text) {
  auto fault = faultOf(text);
  return fault ? std::to_string(fault->line) + ": " + fault->text : "";
}

TEST(Text, NamesAreDefinedInFrontOfTheirUse) {
  EXPECT_EQ(faultIn(R"(costate.kernel @k(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[%i] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
  }
})"),
            "2: %i is used in front of the region that defines it, in line 3");
  EXPECT_NE(faultIn("a.a %i\nscf.for %i = %a to %b step %c {"), "");
  EXPECT_NE(faultIn("a.a %i\nscf.while (%i = %a) : (f64) -> f64 {"), "");
  EXPECT_NE(faultIn("a.a %i\nscf.for %k = %a to %b iter_args(%i = %v)"), "");
  EXPECT_NE(faultIn("a.a %i#1\nscf.if %c {\n %i:2 = \"a.a\"()"), "");
  EXPECT_NE(faultIn("a.a %i\n\"scf.if\"(%c) ({ ^bb0(%i: f64):"), "");
  EXPECT_NE(faultIn("scf.if %c { a.a %i }\nscf.if %c { %i = a.a"), "");
  EXPECT_NE(faultIn("a.a %i\ncostate.kernel @k(%i: i64) {"), "");
  EXPECT_NE(faultIn("%i = a.a %b { \"a.a\"(%i) ({ %i = a.a"), "");
}

TEST(Text, NamesOfOtherRegionsAreOthers) {
  EXPECT_EQ(faultIn(R"(
costate.kernel @a(%x: !costate.array<f64, 1> {costate.note = 1 : i64}) attributes {a = 1} {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v:2 = scf.while (%a = %n) : (i64) -> (i64, i64) {
      %c = arith.constant true
      scf.condition(%c) %a, %a : i64, i64
    } do {
    ^bb0(%b: i64, %d: i64):
      scf.yield %d : i64
    }
    scf.for %k = %v#0 to %v#1 step %n : i64 {
      scf.yield
    }
  }
  costate.range (%i) in (%n) {
    %c = arith.constant true
    scf.if %c { "a.a"(%i) ({ ^bb0(%k: i64): }, { ^bb0(%k: i64): }) : (i64) -> () }
  }
}
costate.kernel @b(%n: i64) {
  costate.range (%x) in (%n) {}
}
func.func @c(%x: f64, %n: i1) -> f64 {
  cf.cond_br %n, ^bb1, ^bb2
^bb1:
  a.a %late
^bb2:
  %late = a.a
})"),
            "");
}

TEST(Text, BracketsDoNotNestForEver) {
  EXPECT_EQ(faultIn("\n" + std::string(300, '(')),
            "2: more than 256 brackets are open; kernels do not nest so deep");
}
