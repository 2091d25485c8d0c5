/// Mistakes that the types of C++ prevent, and other front ends may make.

#include "syntax/Check.h"
#include "syntax/Tracer.h"

#include <array>
#include <gtest/gtest.h>

using namespace costate;
using namespace costate::syntax;
using detail::Handle;

static const Loc here("kernel.py", 3, 1);

namespace {
class Check : public testing::Test {
protected:
  Handle number(DType type) { return tracer.constant(type, 1, here); }
  std::string mistake() {
    auto traced = tracer.finish();
    return traced.failure ? traced.failure->text : "none";
  }
  void expect(const std::string &text) {
    EXPECT_EQ(mistake().find("kernel.py:3:1: error: " + text), 0u);
  }

  Tracer tracer{"k", here};
  Handle x = tracer.array(DType::F64, 1);
};
} // namespace

TEST_F(Check, OperandsHaveTheTypesOfTheirOperation) {
  tracer.pure(Op::Add, DType::F64, {number(DType::F64), number(DType::F32)},
              here);
  expect("operation `add` does not take (f64, f32) to f64");
}

TEST_F(Check, OperationsHaveTheirNumberOfOperands) {
  tracer.pure(Op::Fma, DType::F64, {number(DType::F64)}, here);
  expect("operation `fma` does not take (f64) to f64");
}

TEST_F(Check, AnElementHasTheRankAndTypeOfItsArray) {
  tracer.load({x, DType::F64, 0, {}}, here);
  expect("an array of rank 1 has 0 indices");
}

TEST_F(Check, IndicesAreWide) {
  tracer.store({x, DType::F64, 1, {number(DType::I32)}}, number(DType::F64),
               here);
  expect("an index of type i64 is given a value of type i32");
}

TEST_F(Check, ConditionsAreBools) {
  tracer.beginIf(number(DType::I32), here);
  tracer.end();
  expect("a condition of type bool is given a value of type i32");
}

TEST_F(Check, BlocksAreClosed) {
  tracer.beginIf(number(DType::Bool), here);
  expect("a block is left open");
}

TEST_F(Check, ReductionsAreSumsOfOneKindOrPairs) {
  std::array extents{number(DType::I64)};
  Handle index;
  tracer.beginRange(extents, &index, here);
  std::array one{index};
  tracer.endFold(Op::Min, one, here);
  expect("there is no reduction by `min` of (i64)");
}

TEST_F(Check, WhatIsClosedIsOpen) {
  tracer.end();
  expect("an `end` of no block");
  std::array values{number(DType::F64)};
  EXPECT_THROW(tracer.endFold(Op::Add, values, here), Error);
  EXPECT_THROW(tracer.beginWhileBody(number(DType::Bool), here), Error);
  EXPECT_THROW(tracer.endCustom({}, here), Error);
}
