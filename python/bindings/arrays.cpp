#include "bindings/Foreign.h"
#include "bindings/Numbers.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

namespace costate::python {

using nb::literals::operator""_a;
using Release = nb::call_guard<GilRelease>;
using HostData = nb::ndarray<nb::ro, nb::device::cpu>;
using HostRoom = nb::ndarray<nb::device::cpu>;

template <class N>
static void checkAlike(const AnyArray &array, const N &data) {
  const std::vector<int64_t> shape = array.shape();
  bool alike =
      data.dtype() == dlpackType(array.dtype()) && data.ndim() == shape.size();
  for (size_t dim = 0; alike && dim < shape.size(); ++dim)
    alike = static_cast<int64_t>(data.shape(dim)) == shape[dim];
  if (!alike)
    reject("an array of " + contentsText(array) + " was given " +
           contentsText(data) +
           "; both have to be alike, see astype and reshape");
}

/// Appends the elements of `data` from dimension `dim` on, row-major.
static std::byte *gather(const HostData &data, size_t dim,
                         const std::byte *from, std::byte *to, size_t bytes) {
  if (dim == data.ndim()) {
    std::memcpy(to, from, bytes);
    return to + bytes;
  }
  for (size_t i = 0; i < data.shape(dim); ++i)
    to = gather(data, dim + 1,
                from + static_cast<int64_t>(i * bytes) * data.stride(dim), to,
                bytes);
  return to;
}

static void write(AnyArray &array, const HostData &data) {
  checkAlike(array, data);
  Loc loc = callerLoc();
  GilRelease release;
  const void *from = data.data();
  std::vector<std::byte> copy;
  if (!isContiguous(data)) {
    copy.resize(array.bytes());
    gather(data, 0, static_cast<const std::byte *>(from), copy.data(),
           sizeOf(array.dtype()));
    from = copy.data();
  }
  array.write(from, array.bytes(), loc);
}

static void writeAt(AnyArray &array, const std::vector<int64_t> &index,
                    const HostData &data) {
  if (data.dtype() != dlpackType(array.dtype()) || !isContiguous(data))
    reject("an array of " + contentsText(array) + " was given " +
           contentsText(data) + "; see astype and ascontiguousarray");
  Loc loc = callerLoc();
  GilRelease release;
  array.write_at(index, data.data(), data.size() * sizeOf(array.dtype()), loc);
}

static void read(const AnyArray &array, const HostRoom &data) {
  checkAlike(array, data);
  if (!isContiguous(data))
    reject("an array is read into memory that is not contiguous; read into "
           "a new one and assign that");
  GilRelease release;
  array.read(data.data(), array.bytes());
}

static void readAt(const AnyArray &array, const std::vector<int64_t> &index,
                   const HostRoom &data) {
  if (data.dtype() != dlpackType(array.dtype()) || !isContiguous(data))
    reject("elements of an array of " + contentsText(array) +
           " are not read into " + contentsText(data));
  GilRelease release;
  array.read_at(index, data.data(), data.size() * sizeOf(array.dtype()));
}

using NumpyArray = nb::ndarray<nb::numpy>;

static NumpyArray numpyArray(const AnyArray &array, void *data,
                             nb::handle owner) {
  const std::vector<int64_t> shape = array.shape();
  std::vector<size_t> extents(shape.begin(), shape.end());
  return NumpyArray(data, extents.size(), extents.data(), owner, nullptr,
                    dlpackType(array.dtype()));
}

static NumpyArray toNumpy(const AnyArray &array) {
  auto memory =
      std::make_unique<std::byte[]>(std::max<size_t>(array.bytes(), 1));
  std::byte *data = memory.get();
  {
    GilRelease release;
    array.read(data, array.bytes());
  }
  nb::capsule owner(memory.release(), [](void *bytes) noexcept {
    delete[] static_cast<std::byte *>(bytes);
  });
  return numpyArray(array, data, owner);
}

static void fill(AnyArray &array, nb::handle number) {
  Loc loc = callerLoc();
  withType(array.dtype(), [&]<class T>(T) {
    std::optional<T> value = convert<T>(number);
    if (!value)
      reject("an array of " + contentsText(array) + " cannot be filled with " +
             nb::repr(number).c_str() + ", which its dtype does not have");
    GilRelease release;
    Array<T>(array).fill(*value, loc);
  });
}

static AnyArray make(const Device &device, DType type,
                     const std::vector<int64_t> &shape, bool grad, bool dual,
                     const std::optional<ElementForm> &form, int directions,
                     bool scratch) {
  Flags flags = (grad ? costate::grad : none) | (dual ? costate::dual : none);
  ArrayOptions options;
  options.directions = directions;
  options.scratch = scratch;
  return device.array(type, shape, flags, options,
                      form.value_or(ElementForm()));
}

static nb::tuple shapeOf(const AnyArray &array) {
  nb::list shape;
  for (int64_t extent : array.shape())
    shape.append(extent);
  return nb::tuple(shape);
}

void bindArrays(nb::module_ &module) {
  nb::class_<AnyArray> array(
      module, "Array",
      "An array on a device, row-major and contiguous. Objects share the "
      "storage, which lives as long as any of them.");
  bindInterop(array);
  array
      .def(
          "__init__",
          [](AnyArray *self, const Device &device, DType type,
             const std::vector<int64_t> &shape, bool grad, bool dual,
             const std::optional<ElementForm> &form, int directions,
             bool scratch) {
            GilRelease release;
            new (self) AnyArray(make(device, type, shape, grad, dual, form,
                                     directions, scratch));
          },
          "device"_a, "dtype"_a, "shape"_a, "grad"_a = false, "dual"_a = false,
          "form"_a = nb::none(), "directions"_a = 0, "scratch"_a = false,
          "All elements are zero, those of its gradient and tangent too. "
          "`shape` counts elements; of an array with `form` the other "
          "properties count numbers. BadArgument for a negative extent, a "
          "rank above 8, more bytes than an address can count, a gradient of "
          "an array that is not floating point; OutOfMemory.")
      .def_prop_ro("dtype", &AnyArray::dtype)
      .def_prop_ro("shape", &shapeOf)
      .def_prop_ro("ndim", &AnyArray::rank)
      .def_prop_ro("size", [](const AnyArray &array) { return array.size(); })
      .def_prop_ro("nbytes", &AnyArray::bytes)
      .def_prop_ro("device", &AnyArray::device)
      .def_prop_ro("form",
                   [](const AnyArray &array) -> std::optional<ElementForm> {
                     if (!array.form().count)
                       return std::nullopt;
                     return array.form();
                   })
      .def_prop_ro("component_dim", &AnyArray::component_dim,
                   "Of an array with `form`: where its components stand.")
      .def_prop_ro("has_grad", &AnyArray::has_grad)
      .def_prop_ro("has_dual", &AnyArray::has_dual)
      .def_prop_ro("grad", &AnyArray::grad,
                   "The adjoint array, of the same shape, f32 for f16. "
                   "MissingGradient if there is none.")
      .def_prop_ro("dual", &AnyArray::dual,
                   "The tangent array. MissingGradient if there is none.")
      .def_prop_ro("version", &AnyArray::version,
                   "Counts the writes by launches and by the host.")
      .def("fill", &fill, "number"_a.none(),
           "BadArgument if the dtype does not have the number.")
      .def("write", &write, "data"_a,
           "Replaces all elements by those of an object with the buffer or "
           "the DLPack protocol, of the same shape and dtype and on the host; "
           "one that is not contiguous is copied first. BadArgument "
           "otherwise.")
      .def("write_at", &writeAt, "index"_a, "data"_a,
           "Writes the elements at an index of the outermost dimensions.")
      .def("read", &read, "data"_a,
           "Copies all elements into such an object, which has to be "
           "contiguous.")
      .def("read_at", &readAt, "index"_a, "data"_a,
           "Copies the elements at an index of the outermost dimensions into "
           "such an object.")
      .def("to_numpy", &toNumpy, "A new numpy.ndarray.")
      .def(
          "same_as",
          [](const AnyArray &array, const AnyArray &other) {
            return array.storage() == other.storage();
          },
          "other"_a, "Whether both share the storage.")
      .def("__repr__", [](const AnyArray &array) {
        return "<costate.Array " + contentsText(array) + " on " +
               array.device().name() + ">";
      });
}

} // namespace costate::python
