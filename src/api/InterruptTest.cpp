#include "conformance/Errors.h"
#include "costate/costate.h"
#include "costate/syntax.h"

using namespace costate;
using costate::test::expectError;

namespace {

/// Ends every launch that is long.
class Interrupt : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    set_interrupt_check([] { return true; });
  }
  void TearDown() override { set_interrupt_check(nullptr); }

  Device device = Device::open(GetParam(), {.threads = 3});
  Array<double> x = device.array<double>({1000});

  Kernel add = kernel("add", [](ArrayRef<double, 1> x) {
    parallel(x.size(), [&](Index i) { x(i) += 1.0; });
  });

  void expectInterrupted(const Kernel &endless) {
    expectError(ErrorCode::Interrupted, {"kernel `endless` was interrupted"},
                [&] { endless(x); });
    x.fill(1);
    add(x);
    EXPECT_EQ(x.to_host()[999], 2);
  }
};

TEST_P(Interrupt, EndsSerialLoops) {
  expectInterrupted(kernel("endless", [](ArrayRef<double, 1> x) {
    WHILE (x(0) > -1.0) {
      x(0) += 1.0;
    }
  }));
}

TEST_P(Interrupt, EndsLoopsOfAllWorkItems) {
  expectInterrupted(kernel("endless", [](ArrayRef<double, 1> x) {
    parallel(x.size(), [&](Index i) {
      WHILE (x(i) > -1.0) {
        x(i) += 1.0;
      }
    });
  }));
}

TEST_P(Interrupt, EndsLoopsOfOneWorkItem) {
  expectInterrupted(kernel("endless", [](ArrayRef<double, 1> x) {
    parallel(x.size(), [&](Index i) {
      IF (i == 999) {
        WHILE (x(i) > -1.0) {
          x(i) += 1.0;
        }
      }
    });
  }));
}

INSTANTIATE_TEST_SUITE_P(Devices, Interrupt, testing::Values("cpu", "simt"));

} // namespace
