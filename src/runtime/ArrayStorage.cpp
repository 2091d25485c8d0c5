#include "runtime/ArrayStorage.h"

#include <algorithm>

namespace costate::runtime {

static std::atomic<uint64_t> identities = 0;

uint64_t newestIdentity() { return identities; }

static std::atomic<uint64_t> writes = 0;

uint64_t writeCount() { return writes; }

void ArrayStorage::countWrite() {
  version.fetch_add(1);
  lastWrite = writes.fetch_add(1) + 1;
  noteChange();
}

void ArrayStorage::noteChange() const {
  static std::atomic<uint64_t> changes = 0;
  changed = changes.fetch_add(1) + 1;
}

ArrayStorage::ArrayStorage(std::shared_ptr<Device> device, DType dtype,
                           std::vector<int64_t> extents)
    : device(std::move(device)), dtype(dtype), extents(std::move(extents)),
      identity(identities.fetch_add(1) + 1) {
  for (int64_t extent : this->extents)
    size *= extent;
}

ArrayStorage::~ArrayStorage() {
  if (owner)
    device->disown(buffer, /*waits=*/!owner->isOrdered);
  else
    device->release(buffer);
}

void ArrayStorage::moveTo(void *address) {
  if (buffer.bytes)
    buffer.address = static_cast<std::byte *>(address);
  countWrite();
}

Result<> ArrayStorage::fill(Buffer part, const void *pattern,
                            size_t patternBytes) {
  auto bytes = static_cast<const std::byte *>(pattern);
  bool isZero = std::all_of(bytes, bytes + patternBytes,
                            [](std::byte one) { return one == std::byte(); });
  return isZero && form.name == sparseForm
             ? device->clear(part)
             : device->fill(part, pattern, patternBytes);
}

void ArrayStorage::watch(ArrayWatcher &watcher,
                         const std::function<bool()> &begin) {
  std::lock_guard lock(watchMutex);
  if (begin())
    watchers.push_back(&watcher);
  watched = !watchers.empty();
}

void ArrayStorage::unwatch(ArrayWatcher &watcher) {
  std::lock_guard lock(watchMutex);
  std::erase(watchers, &watcher);
  watched = !watchers.empty();
}

Result<> ArrayStorage::announce(const ArrayWrite &write,
                                const ArrayWatcher *self) {
  std::lock_guard lock(watchMutex);
  for (size_t i = 0; i < watchers.size();) {
    Result<bool> goesOn =
        watchers[i] == self ? true : watchers[i]->beforeWrite(write);
    if (!goesOn)
      return goesOn.error();
    if (*goesOn) {
      ++i;
      continue;
    }
    watchers[i] = watchers.back();
    watchers.pop_back();
    watched = !watchers.empty();
  }
  return {};
}

Result<>
ArrayStorage::announceRead(const std::function<std::string()> &reader) {
  if (readRefusers == 0)
    return {};
  std::lock_guard lock(watchMutex);
  for (ArrayWatcher *watcher : watchers)
    if (Result<> allowed = watcher->beforeRead(*this, reader); !allowed)
      return allowed;
  return {};
}

std::string shapeText(const std::vector<int64_t> &extents) {
  std::string text = "(";
  for (size_t i = 0; i < extents.size(); ++i)
    text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + ")";
}

static std::string contentsText(DType dtype, const ElementForm &form,
                                const std::vector<int64_t> &extents) {
  return (form.count ? form.name : nameOf(dtype)) + " of shape " +
         shapeText(extents);
}

std::vector<int64_t> elementExtents(const ArrayStorage &array) {
  std::vector<int64_t> extents = array.extents;
  if (array.form.count)
    extents.erase(extents.begin() + static_cast<long>(array.componentDim));
  return extents;
}

std::string contentsText(const ArrayStorage &array) {
  return contentsText(array.dtype, array.form, elementExtents(array));
}

/// What an array is to be like.
struct Plan {
  DType dtype;
  std::vector<int64_t> extents; ///< of elements
  ElementForm form;
  size_t componentDim = 0;

  std::string text() const {
    return "an array of " + contentsText(dtype, form, extents);
  }
  std::vector<int64_t> allExtents() const {
    std::vector<int64_t> all = extents;
    if (form.count)
      all.insert(all.begin() + static_cast<long>(componentDim), form.count);
    return all;
  }
};

static Plan planOf(const ArrayStorage &array) {
  return {array.dtype, elementExtents(array), array.form, array.componentDim};
}

/// Of the adjoints or tangents of `array`.
static Plan derivedPlan(const ArrayStorage &array) {
  Plan plan = planOf(array);
  plan.dtype = derivativeOf(array.dtype);
  std::string &name = plan.form.name; // of vectors and matrices: `Vec<f16, 3>`
  if (plan.dtype != array.dtype &&
      (name.starts_with("Vec<f16,") || name.starts_with("Mat<f16,")))
    name.replace(4, 3, nameOf(plan.dtype));
  return plan;
}

/// Why no array can be like this, or nothing.
static Result<> checkShape(const Plan &plan) {
  const std::vector<int64_t> extents = plan.allExtents();
  std::string what = plan.text();
  if (extents.size() > static_cast<size_t>(maxRank))
    return Failure{ErrorCode::BadArgument,
                   what + " has rank " + std::to_string(extents.size()) +
                       "; the largest rank is " + std::to_string(maxRank)};
  for (int64_t extent : extents)
    if (extent < 0)
      return Failure{ErrorCode::BadArgument, what + " has a negative extent"};
  int64_t bytes = static_cast<int64_t>(sizeOf(plan.dtype));
  bool overflow = false;
  // A zero after an overflow does not make the strides fit.
  for (int64_t extent : extents)
    overflow |= __builtin_mul_overflow(bytes, extent ? extent : 1, &bytes);
  if (overflow)
    return Failure{ErrorCode::BadArgument,
                   what + " has more bytes than an address can count"};
  return {};
}

static std::shared_ptr<ArrayStorage>
withoutMemory(const std::shared_ptr<Device> &device, const Plan &plan) {
  auto array =
      std::make_shared<ArrayStorage>(device, plan.dtype, plan.allExtents());
  array->form = plan.form;
  array->componentDim = plan.componentDim;
  return array;
}

static Result<std::shared_ptr<ArrayStorage>>
makePlain(const std::shared_ptr<Device> &device, const Plan &plan) {
  std::shared_ptr<ArrayStorage> array = withoutMemory(device, plan);
  Result<Buffer> buffer =
      device->allocate(static_cast<size_t>(array->size) * sizeOf(plan.dtype));
  if (!buffer)
    return Failure{buffer.error().code,
                   plan.text() + ": " + buffer.error().text};
  array->buffer = *buffer;
  return array;
}

static Result<std::shared_ptr<ArrayStorage>>
adoptPlain(const std::shared_ptr<Device> &device, const Plan &plan,
           AdoptedMemory memory) {
  std::shared_ptr<ArrayStorage> array = withoutMemory(device, plan);
  const size_t width = sizeOf(plan.dtype);
  array->owner = std::move(memory.owner);
  array->strangers = memory.isStrange;
  if (reinterpret_cast<uintptr_t>(memory.address) % width)
    return Failure{ErrorCode::BadArgument,
                   plan.text() +
                       " cannot be at an address that is no multiple "
                       "of " +
                       std::to_string(width) + "; copy it"};
  size_t bytes = static_cast<size_t>(array->size) * width;
  if (bytes && !memory.address)
    return Failure{ErrorCode::BadArgument,
                   plan.text() + " needs memory, but its address is null"};
  if (bytes)
    array->buffer = {memory.address, bytes};
  if (Result<> adopted = device->adopt(array->buffer); !adopted)
    return adopted.error();
  return array;
}

static Result<std::shared_ptr<ArrayStorage>>
makeAdjoint(const ArrayStorage &array, bool withTangent,
            std::optional<AdoptedMemory> memory = std::nullopt) {
  Plan plan = derivedPlan(array);
  auto adjoint = memory ? adoptPlain(array.device, plan, std::move(*memory))
                        : makePlain(array.device, plan);
  if (!adjoint)
    return adjoint;
  (*adjoint)->isCompanion = true;
  (*adjoint)->makesTangent = withTangent;
  (*adjoint)->directions = array.directions;
  return adjoint;
}

static Result<std::shared_ptr<ArrayStorage>>
makeTangent(const ArrayStorage &array) {
  Plan plan = derivedPlan(array);
  if (array.directions) {
    plan.extents.insert(plan.extents.begin(), array.directions);
    ++plan.componentDim;
  }
  if (Result<> shape = checkShape(plan); !shape)
    return shape.error();
  auto tangent = makePlain(array.device, plan);
  if (!tangent)
    return tangent;
  (*tangent)->isCompanion = true;
  (*tangent)->makesTangent = true;
  return tangent;
}

Result<std::shared_ptr<ArrayStorage>> ArrayStorage::tangent() {
  if (!makesTangent)
    return dual;
  std::lock_guard lock(mutex);
  if (madeTangent)
    return madeTangent;
  Result<std::shared_ptr<ArrayStorage>> made = makeTangent(*this);
  if (made)
    madeTangent = *made;
  return made;
}

/// Why an array cannot have these companions, or nothing.
static Result<> checkCompanions(DType dtype, bool withGrad, bool withDual,
                                int64_t directions) {
  if ((withGrad || withDual) && !isFloat(dtype))
    return Failure{
        ErrorCode::BadArgument,
        (dtype == DType::Bool
             ? std::string("a bool array")
             : std::string("an ") + nameOf(dtype) + " integer array") +
            " cannot have a gradient or a tangent; use f16, f32 or f64, or "
            "leave out `grad` and `dual`"};
  if (directions && !withDual)
    return Failure{ErrorCode::BadArgument,
                   "an array without a tangent has no directions; add `dual`, "
                   "or leave out `directions`"};
  if (directions < 0 || directions > maxDirections)
    return Failure{
        ErrorCode::BadArgument,
        "an array cannot have tangents in " + std::to_string(directions) +
            " directions; choose 1 to " + std::to_string(maxDirections) +
            ", and launch several times for more"};
  return {};
}

/// Adds the companions that are asked for.
static Result<std::shared_ptr<ArrayStorage>>
accompanied(std::shared_ptr<ArrayStorage> array, bool withGrad, bool withDual,
            std::optional<AdoptedMemory> gradient = std::nullopt) {
  if (withGrad) {
    auto adjoint = makeAdjoint(*array, withDual, std::move(gradient));
    if (!adjoint)
      return adjoint;
    array->grad = *adjoint;
  }
  if (withDual) {
    auto tangent = makeTangent(*array);
    if (!tangent)
      return tangent;
    array->dual = *tangent;
  }
  return array;
}

Result<std::shared_ptr<ArrayStorage>>
adoptArray(std::shared_ptr<Device> device, DType dtype,
           const std::vector<int64_t> &extents, AdoptedMemory memory,
           bool withGrad, bool withDual,
           std::optional<AdoptedMemory> gradient) {
  const Plan plan{dtype, extents, {}, extents.size()};
  if (Result<> shape = checkShape(plan); !shape)
    return shape.error();
  if (Result<> fits = checkCompanions(dtype, withGrad, withDual, 0); !fits)
    return fits.error();
  auto array = adoptPlain(device, plan, std::move(memory));
  return array ? accompanied(*array, withGrad, withDual, std::move(gradient))
               : array;
}

Result<std::shared_ptr<ArrayStorage>>
makeArray(std::shared_ptr<Device> device, DType dtype,
          const std::vector<int64_t> &extents, bool withGrad, bool withDual,
          int64_t directions, const ElementForm &form) {
  const Plan plan{dtype, extents, form,
                  form.layout == SoA ? 0 : extents.size()};
  Busy busy;
  if (Result<> whole = checkNotTorn(); !whole)
    return whole.error();
  if (Result<> shape = checkShape(plan); !shape)
    return shape.error();
  if (Result<> fits = checkCompanions(dtype, withGrad, withDual, directions);
      !fits)
    return fits.error();
  Result<std::shared_ptr<ArrayStorage>> array = makePlain(device, plan);
  if (!array)
    return array;
  (*array)->directions = directions;
  return accompanied(*array, withGrad, withDual);
}

} // namespace costate::runtime
