#include "costate/array.h"

#include "api/Checked.h"
#include "api/CustomScope.h"
#include "api/GraphImpl.h"
#include "api/Recording.h"
#include "costate/device.h"
#include "runtime/ArrayStorage.h"

#include <cstring>

using namespace costate;
using namespace costate::api;
using detail::CustomScope;
using detail::SingleUse;
using runtime::ArrayStorage;
using runtime::Box;

static ArrayStorage &storageOf(const AnyArray &array) {
  if (!array)
    raise(ErrorCode::BadArgument,
          "this array has no storage; make one with device.array<T>(...)");
  return *array.storage();
}

static std::string describe(const ArrayStorage &storage) {
  return "an array of " + runtime::contentsText(storage);
}

static Box allOf(const AnyArray &array) {
  return Box::whole(array.storage()->extents);
}

/// To be called before the host writes `values`, packed, or one number for all,
/// to these elements of `array`.
static void noteHostWrite(const AnyArray &array, const Box &elements, Loc loc,
                          std::span<const std::byte> values = {}) {
  SingleUse write(*array.storage(), &elements, detail::hostWriteText, loc);
  write.tellCustomLaunches();
  detail::recordHostWrite(array.storage(), elements, loc, values, [&] {
    write.tellWatchers();
    write.countWrites();
  });
}

static std::span<const std::byte> bytesAt(const void *values, size_t bytes) {
  return {static_cast<const std::byte *>(values), bytes};
}

/// To be called before the host looks at `array`.
static void noteHostRead(const AnyArray &array) {
  SingleUse read(*array.storage(), nullptr,
                 [](Loc) { return std::string("the host"); });
  read.tellCustomLaunches();
  read.tellWatchers();
}

DType AnyArray::dtype() const { return storageOf(*this).dtype; }
int AnyArray::rank() const {
  return static_cast<int>(storageOf(*this).extents.size());
}
std::vector<int64_t> AnyArray::shape() const {
  return storageOf(*this).extents;
}
const ElementForm &AnyArray::form() const { return storageOf(*this).form; }
int AnyArray::component_dim() const {
  return static_cast<int>(storageOf(*this).componentDim);
}
int64_t AnyArray::size() const { return storageOf(*this).size; }
size_t AnyArray::bytes() const { return storageOf(*this).buffer.bytes; }
Device AnyArray::device() const { return Device(storageOf(*this).device); }
bool AnyArray::has_grad() const { return storageOf(*this).grad != nullptr; }
bool AnyArray::has_dual() const { return storageOf(*this).hasTangent(); }
uint64_t AnyArray::version() const { return storageOf(*this).version.load(); }

int64_t AnyArray::size(int dim) const {
  const ArrayStorage &storage = storageOf(*this);
  if (dim < 0 || static_cast<size_t>(dim) >= storage.extents.size())
    raise(ErrorCode::BadArgument, describe(storage) + " has no dimension " +
                                      std::to_string(dim) +
                                      "; dimensions count from 0");
  return storage.extents[dim];
}

AnyArray AnyArray::grad() const {
  const ArrayStorage &storage = storageOf(*this);
  if (!storage.grad && storage.isCompanion)
    raise(ErrorCode::MissingGradient,
          describe(storage) +
              ", which is itself a gradient or a tangent, has no gradient; the "
              "`dual()` of a gradient takes second derivatives");
  if (!storage.grad)
    raise(ErrorCode::MissingGradient,
          describe(storage) +
              " has no gradient; make it with device.array<T>(..., grad)");
  return AnyArray(storage.grad);
}

AnyArray AnyArray::dual() const {
  ArrayStorage &storage = storageOf(*this);
  if (!storage.hasTangent() && storage.isCompanion)
    raise(ErrorCode::MissingGradient,
          describe(storage) +
              ", which is a gradient, has no tangent; make the array that it "
              "belongs to with device.array<T>(..., grad | dual)");
  if (!storage.hasTangent())
    raise(ErrorCode::MissingGradient,
          describe(storage) +
              " has no tangent; make it with device.array<T>(..., dual)");
  return AnyArray(checked(storage.tangent()));
}

/// Of one element.
static int64_t numbersIn(const ArrayStorage &storage) {
  return std::max<int64_t>(storage.form.count, 1);
}

static void checkBytes(const ArrayStorage &storage, size_t bytes) {
  if (bytes == storage.buffer.bytes)
    return;
  raise(ErrorCode::BadArgument,
        describe(storage) + " has " +
            std::to_string(storage.size / numbersIn(storage)) +
            " elements, but the host has " +
            std::to_string(bytes / sizeOf(storage.dtype) /
                           static_cast<size_t>(numbersIn(storage))) +
            "; give as many values");
}

void AnyArray::write(const void *from, size_t bytes, Loc loc) {
  detail::requireNoCapture("copy from the host");
  ArrayStorage &storage = storageOf(*this);
  checkBytes(storage, bytes);
  noteHostWrite(*this, allOf(*this), loc, bytesAt(from, bytes));
  checked(storage.device->upload(storage.buffer, from));
}

/// The elements behind `index`.
static Box boxAt(const ArrayStorage &storage, std::span<const int64_t> index) {
  Box box = Box::whole(storage.extents);
  bool isInside = index.size() <= box.dims.size();
  for (size_t dim = 0; isInside && dim < index.size(); ++dim) {
    isInside = index[dim] >= 0 && index[dim] < storage.extents[dim];
    box.dims[dim] = runtime::IndexSet(index[dim], index[dim] + 1);
  }
  if (!isInside)
    raise(ErrorCode::BadArgument,
          "the index " + runtime::shapeText({index.begin(), index.end()}) +
              " is outside of " + describe(storage));
  return box;
}

static void checkBytesAt(const ArrayStorage &storage, const Box &elements,
                         size_t bytes) {
  const size_t width = sizeOf(storage.dtype);
  if (bytes != static_cast<size_t>(elements.size()) * width)
    raise(ErrorCode::BadArgument,
          "an index of " + describe(storage) + " leads to " +
              std::to_string(elements.size()) + " numbers, but the host has " +
              std::to_string(bytes / width));
}

/// The memory of `elements`, which stand one after the other; empty if there
/// are none.
static runtime::Buffer partOf(const ArrayStorage &storage, const Box &elements,
                              size_t bytes) {
  runtime::Buffer part{storage.buffer.address, 0};
  runtime::forEachRuns(
      elements, storage.extents, [&](const runtime::Runs &one) {
        part.address += static_cast<size_t>(one.first) * sizeOf(storage.dtype);
        part.bytes = bytes;
      });
  return part;
}

void AnyArray::write_at(std::span<const int64_t> index, const void *from,
                        size_t bytes, Loc loc) {
  detail::requireNoCapture("copy from the host");
  ArrayStorage &storage = storageOf(*this);
  Box elements = boxAt(storage, index);
  checkBytesAt(storage, elements, bytes);
  noteHostWrite(*this, elements, loc, bytesAt(from, bytes));
  checked(storage.device->upload(partOf(storage, elements, bytes), from));
}

void AnyArray::read_at(std::span<const int64_t> index, void *to,
                       size_t bytes) const {
  detail::requireNoCapture("copy to the host");
  ArrayStorage &storage = storageOf(*this);
  Box elements = boxAt(storage, index);
  checkBytesAt(storage, elements, bytes);
  noteHostRead(*this);
  checked(storage.device->download(to, partOf(storage, elements, bytes)));
}

void AnyArray::read(void *to, size_t bytes) const {
  detail::requireNoCapture("copy to the host");
  ArrayStorage &storage = storageOf(*this);
  checkBytes(storage, bytes);
  noteHostRead(*this);
  checked(storage.device->download(to, storage.buffer));
}

namespace {
struct CapturedFill {
  CapturedFill(const AnyArray &array, Loc loc)
      : array(array), all(allOf(array)),
        write(*array.storage(), &all, detail::hostWriteText, loc) {}

  const AnyArray array;
  const Box all;
  const SingleUse write;
};
} // namespace

/// As a step of a graph.
static void captureFill(detail::Capture &capture, const AnyArray &array,
                        const void *element, Loc loc) {
  ArrayStorage &storage = *array.storage();
  runtime::KeptFill fill{storage.buffer, {}, sizeOf(storage.dtype)};
  std::memcpy(fill.pattern.data(), element, fill.patternBytes);
  auto kept = std::make_shared<CapturedFill>(array, loc);
  capture.append(*storage.device, {fill, {kept, &kept->write}});
}

void AnyArray::fill_element(const void *element, Loc loc) {
  ArrayStorage &storage = storageOf(*this);
  if (detail::Capture *capture = detail::Capture::current())
    return captureFill(*capture, *this, element, loc);
  const size_t width = sizeOf(storage.dtype);
  noteHostWrite(*this, allOf(*this), loc, bytesAt(element, width));
  checked(storage.fill(storage.buffer, element, width));
}

void AnyArray::check_dtype(DType expected) const {
  if (dtype() != expected)
    raise(ErrorCode::BadArgument, describe(storageOf(*this)) +
                                      " cannot be used as an array of " +
                                      nameOf(expected));
}

void AnyArray::check_form(DType dtype, const ElementForm &expected) const {
  if (this->dtype() != dtype || form().name != expected.name)
    raise(ErrorCode::BadArgument, describe(storageOf(*this)) +
                                      " cannot be used as an array of " +
                                      expected.name);
}

static void requireNoRecording() {
  if (detail::recordingTape())
    raise(ErrorCode::BadArgument,
          "a `Tape` cannot record what is written through a pointer; use "
          "from_host or fill, or take the pointer outside of the recording");
}

static void requireHost(const ArrayStorage &storage) {
  detail::requireNoCapture("let the host use its arrays");
  const runtime::DeviceInfo &device = storage.device->info();
  if (!device.isHost)
    raise(ErrorCode::BadArgument,
          describe(storage) + " lives in the memory of `" + device.name +
              "`, which the host cannot address; use to_host and from_host");
}

void AnyArray::written_outside(Loc loc) {
  ArrayStorage &storage = storageOf(*this);
  detail::requireNoCapture("let others write its arrays");
  CustomScope::forEach(
      [this](CustomScope &scope) { scope.writeOutside(handle); });
  detail::noteUnseenWrite(storage,
                          [loc] { return detail::hostWriteText(loc); });
}

static std::string strangerText() {
  return "others who had been lent its memory";
}

LentMemory AnyArray::lend(bool writable, Loc loc) {
  ArrayStorage &storage = storageOf(*this);
  detail::requireNoCapture("lend its arrays");
  noteHostRead(*this);
  if (!writable)
    return {storage.buffer.address, handle};
  requireNoRecording();
  noteHostWrite(*this, allOf(*this), loc);
  storage.strangers.fetch_add(1);
  auto giveBack = [array = handle](void *) {
    array->strangers.fetch_sub(1);
    detail::noteUnseenWrite(*array, strangerText);
  };
  return {storage.buffer.address,
          std::shared_ptr<void>(storage.buffer.address, giveBack)};
}

const void *AnyArray::address() const {
  ArrayStorage &storage = storageOf(*this);
  requireHost(storage);
  noteHostRead(*this);
  return storage.buffer.address;
}

void *AnyArray::writable_address(Loc loc) {
  ArrayStorage &storage = storageOf(*this);
  requireHost(storage);
  requireNoRecording();
  noteHostWrite(*this, allOf(*this), loc);
  storage.isOpen = true;
  return storage.buffer.address;
}
