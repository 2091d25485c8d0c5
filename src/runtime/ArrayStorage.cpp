#include "runtime/ArrayStorage.h"

#include <algorithm>
#include <limits>

namespace costate::runtime {

static uint64_t nextIdentity() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1);
}

ArrayStorage::ArrayStorage(std::shared_ptr<Device> device, DType dtype,
                           std::vector<int64_t> extents)
    : device(std::move(device)), dtype(dtype), extents(std::move(extents)),
      identity(nextIdentity()) {
  for (int64_t extent : this->extents)
    size *= extent;
}

ArrayStorage::~ArrayStorage() { device->release(buffer); }

void ArrayStorage::watch(WriteWatcher &watcher) {
  std::lock_guard lock(watchMutex);
  watchers.push_back(&watcher);
  watched = true;
}

void ArrayStorage::unwatch(WriteWatcher &watcher) {
  std::lock_guard lock(watchMutex);
  std::erase(watchers, &watcher);
  watched = !watchers.empty();
}

Result<> ArrayStorage::announce(const ArrayWrite &write,
                                const WriteWatcher *self) {
  std::lock_guard lock(watchMutex);
  for (WriteWatcher *watcher : watchers)
    if (watcher != self)
      if (Result<> allowed = watcher->beforeWrite(write); !allowed)
        return allowed;
  return {};
}

std::string shapeText(const std::vector<int64_t> &extents) {
  std::string text = "(";
  for (size_t i = 0; i < extents.size(); ++i)
    text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + ")";
}

/// Why no array can have this type, or nothing.
static Result<> checkShape(DType dtype, const std::vector<int64_t> &extents) {
  std::string what = std::string("an array of ") + nameOf(dtype) +
                     " of shape " + shapeText(extents);
  if (extents.size() > static_cast<size_t>(maxRank))
    return Failure{ErrorCode::BadArgument,
                   what + " has rank " + std::to_string(extents.size()) +
                       "; the largest rank is " + std::to_string(maxRank)};
  for (int64_t extent : extents)
    if (extent < 0)
      return Failure{ErrorCode::BadArgument, what + " has a negative extent"};
  int64_t bytes = static_cast<int64_t>(sizeOf(dtype));
  bool overflow = false;
  // A zero behind an overflow does not make the strides fit.
  for (int64_t extent : extents)
    overflow |= __builtin_mul_overflow(bytes, extent ? extent : 1, &bytes);
  if (overflow)
    return Failure{ErrorCode::BadArgument,
                   what + " has more bytes than an address can count"};
  return {};
}

static Result<std::shared_ptr<ArrayStorage>>
makePlain(const std::shared_ptr<Device> &device, DType dtype,
          const std::vector<int64_t> &extents) {
  auto array = std::make_shared<ArrayStorage>(device, dtype, extents);
  Result<Buffer> buffer =
      device->allocate(static_cast<size_t>(array->size) * sizeOf(dtype));
  if (!buffer)
    return Failure{buffer.error().code,
                   std::string("an array of ") + nameOf(dtype) + " of shape " +
                       shapeText(extents) + ": " + buffer.error().text};
  array->buffer = *buffer;
  return array;
}

static Result<std::shared_ptr<ArrayStorage>>
makeCompanion(const ArrayStorage &array, bool makesTangent) {
  Result<std::shared_ptr<ArrayStorage>> companion =
      makePlain(array.device, array.dtype, array.extents);
  if (!companion)
    return companion;
  (*companion)->isCompanion = true;
  (*companion)->makesTangent = makesTangent;
  return companion;
}

Result<std::shared_ptr<ArrayStorage>> ArrayStorage::tangent() {
  if (!makesTangent)
    return dual;
  std::lock_guard lock(mutex);
  if (madeTangent)
    return madeTangent;
  Result<std::shared_ptr<ArrayStorage>> made =
      makeCompanion(*this, /*makesTangent=*/true);
  if (made)
    madeTangent = *made;
  return made;
}

Result<std::shared_ptr<ArrayStorage>>
makeArray(std::shared_ptr<Device> device, DType dtype,
          const std::vector<int64_t> &extents, bool withGrad, bool withDual) {
  if (Result<> shape = checkShape(dtype, extents); !shape)
    return shape.error();
  if ((withGrad || withDual) && !isFloat(dtype))
    return Failure{
        ErrorCode::BadArgument,
        (dtype == DType::Bool
             ? std::string("a bool array")
             : std::string("an ") + nameOf(dtype) + " integer array") +
            " cannot have a gradient or a tangent; use f32 or f64, or "
            "leave out `grad` and `dual`"};
  Result<std::shared_ptr<ArrayStorage>> array =
      makePlain(device, dtype, extents);
  if (!array)
    return array;
  for (auto [wanted, slot] : {std::pair(withGrad, &(*array)->grad),
                              std::pair(withDual, &(*array)->dual)}) {
    if (!wanted)
      continue;
    Result<std::shared_ptr<ArrayStorage>> companion =
        makeCompanion(**array, /*makesTangent=*/withDual);
    if (!companion)
      return companion;
    *slot = *companion;
  }
  return array;
}

} // namespace costate::runtime
