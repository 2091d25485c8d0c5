#include "bindings/Foreign.h"

#include "costate/dlpack.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace costate::python {

using nb::literals::operator""_a;
using Foreign = nb::ndarray<>;

/// What lets go of `object`, on any thread.
static std::function<void()> dropper(nb::object object) {
  return [held = object.release().ptr()] {
    if (!Py_IsInitialized())
      return;
    GilAcquire acquire;
    Py_DECREF(held);
  };
}

//===-- Memory of others --------------------------------------------------===//

static OutsideMemory outside(uintptr_t address, nb::object owner,
                             bool announced, bool ordered) {
  return {reinterpret_cast<void *>(address), dropper(std::move(owner)),
          announced, ordered};
}

static AnyArray adopt(const Device &device, DType type,
                      const std::vector<int64_t> &shape, uintptr_t address,
                      nb::object owner, uintptr_t gradAddress,
                      nb::object gradOwner, bool grad, bool dual,
                      bool announced, bool ordered) {
  Flags flags = (grad ? costate::grad : none) | (dual ? costate::dual : none);
  OutsideMemory memory = outside(address, owner, announced, ordered), gradient;
  if (gradAddress)
    gradient = outside(gradAddress, gradOwner, true, ordered);
  GilRelease release;
  return device.adopt(type, shape, std::move(memory), flags,
                      std::move(gradient));
}

static DType dtypeOf(const Foreign &data) {
  for (int i = 0; i <= static_cast<int>(DType::F64); ++i)
    if (data.dtype() == dlpackType(static_cast<DType>(i)))
      return static_cast<DType>(i);
  reject("an array cannot have the elements of " + contentsText(data) +
         "; use bool, integers of 8 to 64 bits, or floats of 16 to 64 bits");
}

static const char *memoryOf(const Foreign &data) {
  switch (data.device_type()) {
  case nb::device::cpu::value:
  case nb::device::cuda_host::value:
    return "host";
  case nb::device::cuda::value:
    if (data.device_id() == 0)
      return "cuda";
  }
  reject("the memory of " + contentsText(data) +
         " is of a device that Costate does not use; copy it to the host or "
         "to the first NVIDIA GPU");
}

/// The device that can use the memory of `data`.
static Device deviceFor(const Foreign &data,
                        const std::optional<Device> &wanted) {
  std::string memory = memoryOf(data);
  Device device = wanted ? *wanted : Device::best();
  std::string name = device.name();
  bool isOwn = name == "cuda" || name == "hip" || name == "metal";
  if ((isOwn ? name : "host") != memory)
    reject("the memory of " + contentsText(data) + " is that of the " +
           (memory == "host" ? "host" : "GPU") + ", which device `" +
           device.name() + "` does not use; copy it there");
  return device;
}

static AnyArray fromDlpack(nb::object source, std::optional<Device> wanted,
                           bool grad, bool dual, bool announced) {
  Foreign data;
  if (!nb::try_cast<Foreign>(source, data))
    reject(std::string("an object of type ") +
           nb::type_name(source.type()).c_str() +
           " has neither the DLPack nor the buffer protocol, or is read-only");
  DType type = dtypeOf(data);
  Device device = deviceFor(data, wanted);
  if (!isContiguous(data))
    reject("the elements of " + contentsText(data) +
           " have gaps or another order than row-major; pass a contiguous "
           "copy, such as numpy.ascontiguousarray(x) or x.contiguous()");
  std::vector<int64_t> shape(data.shape_ptr(), data.shape_ptr() + data.ndim());
  auto address = reinterpret_cast<uintptr_t>(data.data());
  return adopt(device, type, shape, address, nb::cast(std::move(data)), 0,
               nb::none(), grad, dual, announced, false);
}

//===-- Memory in the hands of others -------------------------------------===//

static nb::capsule capsuleOf(const LentMemory &memory) {
  return nb::capsule(new LentMemory(memory), [](void *lent) noexcept {
    delete static_cast<LentMemory *>(lent);
  });
}

static std::vector<size_t> extentsOf(const AnyArray &array) {
  std::vector<int64_t> shape = array.shape();
  return {shape.begin(), shape.end()};
}

static LentMemory lend(AnyArray &array, bool writable) {
  Loc loc = callerLoc();
  GilRelease release;
  array.device().synchronize();
  return array.lend(writable, loc);
}

/// The same, but that a stream of the consumer waits.
static LentMemory lendTo(AnyArray &array, std::optional<int64_t> stream,
                         bool writable) {
  Loc loc = callerLoc();
  GilRelease release;
  let_wait(array.device(), stream);
  return array.lend(writable, loc);
}

/// As DLPack counts them.
static int32_t deviceType(const AnyArray &array) {
  constexpr int32_t vulkan = 7, metal = 8, rocm = 10;
  std::string name = array.device().name();
  return name == "cuda"               ? nb::device::cuda::value
         : name == "hip"              ? rocm
         : name == "metal"            ? metal
         : name.starts_with("vulkan") ? vulkan
                                      : nb::device::cpu::value;
}

static bool isLent(int32_t deviceType) {
  return deviceType == nb::device::cpu::value ||
         deviceType == nb::device::cuda::value;
}

static nb::object view(AnyArray &array, bool writable) {
  if (deviceType(array) != nb::device::cpu::value)
    reject("the host cannot address the memory of an array on `" +
           array.device().name() + "`; use to_numpy and write");
  LentMemory memory = lend(array, writable);
  std::vector<size_t> shape = extentsOf(array);
  auto make = [&]<class N>(N *) {
    return nb::cast(N(memory.address, shape.size(), shape.data(),
                      capsuleOf(memory), nullptr, dlpackType(array.dtype())));
  };
  if (writable)
    return make(static_cast<nb::ndarray<nb::numpy> *>(nullptr));
  return make(static_cast<nb::ndarray<nb::numpy, nb::ro> *>(nullptr));
}

/// The wish of that name, or None; takes it out.
static nb::object takeWish(nb::kwargs &wishes, const char *name) {
  if (!wishes.contains(name))
    return nb::none();
  nb::object wish = wishes[name];
  nb::del(wishes[name]);
  return wish;
}

static std::optional<int64_t> streamOf(nb::object wish) {
  std::optional<int64_t> stream;
  if (!nb::try_cast(wish, stream))
    reject("the stream of a consumer is an integer or None, and not of type " +
           std::string(nb::type_name(wish.type()).c_str()));
  return stream;
}

static nb::object toDlpack(AnyArray &array, nb::kwargs wishes) {
  nb::object stream = takeWish(wishes, "stream");
  bool writable = !takeWish(wishes, "read_only").is(nb::bool_(true));
  if (!isLent(deviceType(array)))
    throw nb::buffer_error(
        ("only the device itself uses the memory of an array on `" +
         array.device().name() + "`; pass a copy, such as x.to_numpy()")
            .c_str());
  if (PyObject_IsTrue(takeWish(wishes, "copy").ptr())) {
    if (deviceType(array) != nb::device::cpu::value)
      throw nb::buffer_error("no copies of arrays on `cuda`");
    return nb::cast(&array).attr("to_numpy")().attr("__dlpack__")(**wishes);
  }
  LentMemory memory = deviceType(array) == nb::device::cuda::value
                          ? lendTo(array, streamOf(stream), writable)
                          : lend(array, writable);
  std::vector<size_t> shape = extentsOf(array);
  nb::ndarray<nb::array_api> data(
      memory.address, shape.size(), shape.data(), capsuleOf(memory), nullptr,
      dlpackType(array.dtype()), deviceType(array), 0);
  nb::object exported = nb::cast(data);
  return exported.attr("__dlpack__")(**wishes);
}

void bindInterop(nb::class_<AnyArray> &array) {
  array
      .def_static(
          "from_dlpack", &fromDlpack, "source"_a, "device"_a = nb::none(),
          nb::kw_only(), "grad"_a = false, "dual"_a = false,
          "announced"_a = false,
          "An array over the memory of an object with the DLPack or buffer "
          "protocol (numpy.ndarray, torch.Tensor, ...), which is not copied "
          "and lives as long as the array. BadArgument if it is not "
          "contiguous, read-only, of another dtype than ours, or not in the "
          "memory of `device` (the best one by default).\n\n"
          "Others may write the memory at any time: gradients that look at "
          "what it held before raise CannotReplay, unless with `announced` "
          "you call `written_outside` after each such write.")
      .def_static(
          "adopt", &adopt, "device"_a, "dtype"_a, "shape"_a, "address"_a,
          "owner"_a.none(), nb::kw_only(), "grad_address"_a = 0,
          "grad_owner"_a.none() = nb::none(), "grad"_a = false,
          "dual"_a = false, "announced"_a = false, "stream_ordered"_a = false,
          "The same for an address, which stays valid as long as `owner` "
          "lives; and for its gradient at `grad_address`.")
      .def(
          "written_outside",
          [](AnyArray &array) { array.written_outside(callerLoc()); },
          "Somebody else has written the memory of this array.")
      .def("numpy", &view, nb::kw_only(), "writable"_a = false,
           "A numpy.ndarray over the memory of this array, without a copy; "
           "BadArgument on a GPU. While one that is `writable` lives, it may "
           "be written at any time: gradients that look at what the array "
           "held before raise CannotReplay.")
      .def(
          "lend",
          [](AnyArray &array) {
            LentMemory memory = lend(array, true);
            return nb::make_tuple(reinterpret_cast<uintptr_t>(memory.address),
                                  capsuleOf(memory));
          },
          "The address on the device, after all that it was asked to do, and "
          "what holds the memory. While that lives, the array counts as "
          "written by others at any time.")
      .def("__dlpack__", &toDlpack, "kwargs"_a,
           "After all that the device was asked to do: on `cuda` the "
           "consumer's `stream` waits for that. While it is in use, the array "
           "counts as written by others at any time, unless the consumer has "
           "promised with `read_only` not to. BufferError on `vulkan`.")
      .def("__dlpack_device__", [](const AnyArray &array) {
        return nb::make_tuple(deviceType(array), 0);
      });
}

} // namespace costate::python
