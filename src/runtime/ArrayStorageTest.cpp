#include "runtime/ArrayStorage.h"
#include "runtime/cpu/CpuDevice.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace costate;
using namespace costate::runtime;

class ArrayStorageTest : public testing::Test {
protected:
  ErrorCode errorOf(std::vector<int64_t> extents, DType dtype = DType::F64,
                    bool grad = false) {
    auto array = makeArray(device, dtype, extents, grad, false);
    EXPECT_FALSE(array.ok());
    text = array.ok() ? "" : array.error().text;
    return array.ok() ? ErrorCode::Internal : array.error().code;
  }
  std::shared_ptr<Device> device = *openCpu(1, 16 << 20);
  std::string text;
};

TEST_F(ArrayStorageTest, ImpossibleShapesAreNamed) {
  EXPECT_EQ(errorOf({3, -1}), ErrorCode::BadArgument);
  EXPECT_NE(text.find("(3, -1)"), std::string::npos);
  EXPECT_EQ(errorOf({INT64_MAX, INT64_MAX}), ErrorCode::BadArgument);
  EXPECT_EQ(errorOf({INT64_MAX / 4}), ErrorCode::BadArgument);
  EXPECT_EQ(errorOf({0, INT64_MAX}), ErrorCode::BadArgument);
  EXPECT_EQ(errorOf({1, 1, 1, 1, 1, 1, 1, 1, 1}), ErrorCode::BadArgument);
  EXPECT_EQ(errorOf({1 << 30}), ErrorCode::OutOfMemory);
  EXPECT_NE(text.find("8 GiB"), std::string::npos) << text;
  EXPECT_EQ(errorOf({4}, DType::I32, true), ErrorCode::BadArgument);
  EXPECT_NE(text.find("integer array cannot have a gradient"),
            std::string::npos);
}

TEST_F(ArrayStorageTest, AnAdjointThatDoesNotFitReleasesTheArray) {
  EXPECT_EQ(errorOf({1200000}, DType::F64, true), ErrorCode::OutOfMemory);
  EXPECT_EQ(device->memory().current, 0u);
}

TEST_F(ArrayStorageTest, CompanionsHaveTheShapeOfTheArray) {
  auto array = makeArray(device, DType::F32, {2, 3}, true, true);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ((*array)->size, 6);
  EXPECT_EQ((*array)->grad->extents, (*array)->extents);
  EXPECT_EQ((*array)->dual->dtype, DType::F32);
  EXPECT_LT((*array)->identity, (*array)->grad->identity);
  EXPECT_TRUE((*array)->grad->hasTangent());
  auto scalar = makeArray(device, DType::Bool, {}, false, false);
  EXPECT_EQ((*scalar)->buffer.bytes, 1u);
  auto empty = makeArray(device, DType::F64, {0, 5}, false, false);
  EXPECT_EQ((*empty)->size, 0);
}

TEST_F(ArrayStorageTest, CompanionsMakeTheirTangentsWhenTheyAreAskedFor) {
  auto array = makeArray(device, DType::F64, {64}, true, true);
  size_t before = device->memory().current;
  auto tangent = (*array)->grad->tangent();
  ASSERT_TRUE(tangent.ok());
  EXPECT_EQ((*tangent)->extents, (*array)->extents);
  EXPECT_EQ(device->memory().current, before + 512);
  EXPECT_EQ(*(*array)->grad->tangent(), *tangent);
  EXPECT_NE(*(*tangent)->tangent(), nullptr);
  auto single = makeArray(device, DType::F64, {64}, true, false);
  EXPECT_FALSE((*single)->grad->hasTangent());
  EXPECT_EQ(*(*single)->grad->tangent(), nullptr);
}

TEST_F(ArrayStorageTest, ThreadsThatAskForATangentGetTheSameOne) {
  auto array = makeArray(device, DType::F64, {8}, true, true);
  std::vector<ArrayStorage *> seen(8);
  {
    std::vector<std::jthread> threads;
    for (ArrayStorage *&one : seen)
      threads.emplace_back([&] { one = (*array)->dual->tangent()->get(); });
  }
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1u);
}

TEST_F(ArrayStorageTest, ATangentThatDoesNotFitIsAnErrorAndChangesNothing) {
  auto array = makeArray(device, DType::F64, {600000}, true, true);
  ASSERT_TRUE(array.ok());
  auto tangent = (*array)->grad->tangent();
  ASSERT_FALSE(tangent.ok());
  EXPECT_EQ(tangent.error().code, ErrorCode::OutOfMemory);
}
