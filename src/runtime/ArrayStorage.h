#pragma once
/// The memory of an array with its shape and its history.

#include "runtime/Device.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace costate::runtime {

/// Shape, dtype and device never change; the memory is released with the last
/// owner.
struct ArrayStorage {
  ArrayStorage(std::shared_ptr<Device> device, DType dtype,
               std::vector<int64_t> extents);
  ~ArrayStorage();
  ArrayStorage(const ArrayStorage &) = delete;
  ArrayStorage &operator=(const ArrayStorage &) = delete;

  const std::shared_ptr<Device> device;
  const DType dtype;
  const std::vector<int64_t> extents;
  const uint64_t identity; ///< unique in this process, grows with age
  int64_t size = 1;        ///< elements
  Buffer buffer;
  std::atomic<uint64_t> version = 0; ///< counts writes by launches and the host
  std::shared_ptr<ArrayStorage> grad, dual; ///< or null

  /// An adjoint or a tangent. Its own tangent, if `makesTangent`, is made when
  /// it is first asked for.
  bool isCompanion = false, makesTangent = false;
  bool hasTangent() const { return dual || makesTangent; }
  /// The tangent array, zero at first; null if there is none. OutOfMemory.
  Result<std::shared_ptr<ArrayStorage>> tangent();

private:
  std::mutex mutex;
  std::shared_ptr<ArrayStorage> madeTangent;
};

/// A zeroed array, with a zeroed adjoint and tangent if asked for. BadArgument
/// or OutOfMemory with the shape in the text.
Result<std::shared_ptr<ArrayStorage>>
makeArray(std::shared_ptr<Device> device, DType dtype,
          const std::vector<int64_t> &extents, bool withGrad, bool withDual);

/// `(64, 3)`
std::string shapeText(const std::vector<int64_t> &extents);

} // namespace costate::runtime
