#pragma once
/// Tests that run on each device of this machine.

#include "runtime/conformance/Devices.h"

#include <gtest/gtest.h>

namespace costate::runtime::conformance {

class OnDevice : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override { open(size_t(256) << 20); }
  /// Skips the test if there is none. `limit` in bytes.
  void open(size_t limit) {
    Result<std::shared_ptr<Device>> opened =
        conformance::open(GetParam(), limit);
    if (!opened && opened.error().code == ErrorCode::NoDevice)
      GTEST_SKIP() << opened.error().text;
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    device = *opened;
  }

  std::shared_ptr<Device> device;
};

} // namespace costate::runtime::conformance
