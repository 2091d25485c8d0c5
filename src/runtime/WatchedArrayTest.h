#pragma once
/// Arrays of the CPU whose writes somebody watches, for tests.

#include "runtime/cpu/CpuDevice.h"

#include <gtest/gtest.h>

namespace costate::runtime {

class WatchedArrayTest : public testing::Test {
protected:
  using Values = std::vector<double>;

  std::shared_ptr<ArrayStorage> make(std::vector<int64_t> extents) {
    return *makeArray(device, DType::F64, extents, false, false);
  }
  static Values contents(const ArrayStorage &array) {
    Values values(static_cast<size_t>(array.size));
    EXPECT_TRUE(array.device->download(values.data(), array.buffer).ok());
    return values;
  }
  /// Calls `visit` with the row-major position of each element of `box`.
  template <class Visit>
  static void forEachElement(const Box &box, const ArrayStorage &array,
                             Visit visit) {
    forEachRuns(box, array.extents, [&](const Runs &runs) {
      for (int64_t run = 0; run < runs.count; ++run)
        for (int64_t k = 0; k < runs.length; ++k)
          visit(static_cast<size_t>(runs.first + run * runs.pitch + k));
    });
  }
  /// Announces and writes `value` to `box`.
  static Result<> write(ArrayStorage &array, const Box &box, double value,
                        bool certain = false, bool past = false) {
    ArrayWrite write{array, box, [] { return std::string("the test"); }};
    write.certain = certain;
    write.past = past;
    if (array.isWatched())
      if (Result<> allowed = array.announce(write); !allowed)
        return allowed;
    forEachElement(box, array, [&](size_t at) {
      reinterpret_cast<double *>(array.buffer.address)[at] = value;
    });
    return {};
  }
  /// The slots [begin, end) of the first dimension.
  static Box slots(const ArrayStorage &array, int64_t begin, int64_t end) {
    Box box = Box::whole(array.extents);
    box.dims[0] = IndexSet(begin, end);
    return box;
  }

  std::shared_ptr<Device> device = *openCpu(1, 1 << 20);
  std::shared_ptr<ArrayStorage> x = make({4, 2});
  Box whole = Box::whole({4, 2});
};

} // namespace costate::runtime
