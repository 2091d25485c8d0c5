#include "bindings/Foreign.h"
#include "bindings/Numbers.h"

#include <nanobind/stl/vector.h>

#include <algorithm>

namespace costate::python {

using nb::literals::operator""_a;
using View = nb::dlpack::dltensor;

namespace {

/// The functions of a library for its tensors: DLPackExchangeAPI of DLPack 1.2.
struct Exchange {
  uint32_t major, minor;
  void *older;
  void *allocate, *take, *give; ///< not in use
  int (*view)(void *tensor, View *view);
  int (*currentStream)(int32_t deviceType, int32_t device, void **stream);
};

/// What an argument of the kernel is, and where it comes from.
struct Slot {
  ArgumentType type;
  int input;                       ///< among the inputs, or -1
  int result;                      ///< among the results, or -1
  std::vector<int64_t> components; ///< the last extents, if they are fixed
};

/// One for each input, and for each result.
struct Tensors {
  nb::tuple inputs, results;

  PyObject *at(const Slot &slot) const {
    return slot.result >= 0 ? results[static_cast<size_t>(slot.result)].ptr()
                            : inputs[static_cast<size_t>(slot.input)].ptr();
  }
};

/// Launches of a kernel over the memory of tensors.
class TensorLaunch {
public:
  TensorLaunch(const Kernel &kernel, const Device &device, nb::handle exchange,
               nb::tuple types, const std::vector<int> &inputs,
               const std::vector<int> &results,
               const std::vector<std::vector<int64_t>> &components);

  int fits(nb::tuple inputs) const;
  bool run(detail::Mode mode, bool initialState, const Tensors &values,
           const Tensors *adjoints) const;

private:
  bool isTensor(PyObject *object) const {
    return Py_TYPE(object) == types[0] || Py_TYPE(object) == types[1];
  }
  bool see(PyObject *tensor, DType type, View &view) const;
  bool hasShape(const Slot &slot, const View &view) const;
  bool takes(const Slot &slot, PyObject *tensor) const;
  AnyArray arrayOf(const Slot &slot, PyObject *tensor, PyObject *adjoint) const;
  void useCurrentStream() const;

  const Kernel kernel;
  const Device device;
  const int32_t deviceType;
  const Exchange *exchange;
  PyTypeObject *types[2];
  std::vector<Slot> slots;
};

} // namespace

static const Exchange *exchangeOf(nb::handle capsule) {
  void *found = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
  if (!found)
    nb::raise_python_error();
  auto *exchange = static_cast<const Exchange *>(found);
  if (exchange->major != 1 || !exchange->view)
    reject("the tensors have another version of DLPack than 1");
  return exchange;
}

TensorLaunch::TensorLaunch(const Kernel &kernel, const Device &device,
                           nb::handle exchange, nb::tuple types,
                           const std::vector<int> &inputs,
                           const std::vector<int> &results,
                           const std::vector<std::vector<int64_t>> &components)
    : kernel(kernel), device(device),
      deviceType(device.name() == "cuda" ? nb::device::cuda::value
                                         : nb::device::cpu::value),
      exchange(exchangeOf(exchange)) {
  for (size_t k = 0; k < 2; ++k)
    this->types[k] = reinterpret_cast<PyTypeObject *>(types[k].ptr());
  std::vector<ArgumentType> arguments = kernel.arguments();
  if (inputs.size() != arguments.size() || results.size() != arguments.size() ||
      components.size() != arguments.size())
    reject("kernel `" + kernel.name() + "` has another number of arguments");
  for (size_t k = 0; k < arguments.size(); ++k)
    slots.push_back({arguments[k], inputs[k], results[k], components[k]});
}

/// Whether the elements are not what memory holds, but its negative.
static bool isLazilyNegative(PyObject *tensor) {
  static PyObject *name = PyUnicode_InternFromString("is_neg");
  PyObject *answer = PyObject_VectorcallMethod(name, &tensor, 1, nullptr);
  if (!answer)
    nb::raise_python_error();
  Py_DECREF(answer);
  return answer == Py_True;
}

static bool isRowMajor(const View &view) {
  int64_t stride = 1;
  bool isEmpty = false;
  for (int dim = 0; dim < view.ndim; ++dim)
    isEmpty |= view.shape[dim] == 0;
  for (int dim = view.ndim; dim-- > 0;) {
    if (view.shape[dim] != 1 && view.strides[dim] != stride)
      return isEmpty;
    stride *= view.shape[dim];
  }
  return true;
}

/// Whether it is a tensor with such elements, as they are in memory that the
/// device uses, row-major.
bool TensorLaunch::see(PyObject *tensor, DType type, View &view) const {
  if (!isTensor(tensor))
    return false;
  if (exchange->view(tensor, &view) != 0) {
    PyErr_Clear(); // there is no memory: the caller says why
    return false;
  }
  return view.device.device_type == deviceType && view.device.device_id == 0 &&
         view.dtype == dlpackType(type) && isRowMajor(view) &&
         !isLazilyNegative(tensor);
}

bool TensorLaunch::hasShape(const Slot &slot, const View &view) const {
  size_t count = slot.components.size();
  return view.ndim == slot.type.rank &&
         std::equal(slot.components.begin(), slot.components.end(),
                    view.shape + view.ndim - count);
}

bool TensorLaunch::takes(const Slot &slot, PyObject *tensor) const {
  View view;
  return see(tensor, slot.type.dtype, view) && hasShape(slot, view);
}

static bool requiresGradient(PyObject *tensor) {
  static PyObject *name = PyUnicode_InternFromString("requires_grad");
  PyObject *answer = PyObject_GetAttr(tensor, name);
  if (!answer)
    nb::raise_python_error();
  Py_DECREF(answer);
  return answer == Py_True;
}

int TensorLaunch::fits(nb::tuple inputs) const {
  int fit = 1;
  for (const Slot &slot : slots) {
    if (slot.type.rank < 0 || slot.input < 0)
      continue;
    PyObject *tensor = inputs[static_cast<size_t>(slot.input)].ptr();
    if (!takes(slot, tensor))
      return 0;
    if (requiresGradient(tensor))
      fit = 2;
  }
  return fit;
}

/// Memory of `tensor`, which lives as long as an array has it.
static OutsideMemory memoryOf(PyObject *tensor, const View &view) {
  Py_INCREF(tensor);
  auto *address = static_cast<std::byte *>(view.data) + view.byte_offset;
  return {address,
          [tensor] {
            if (!Py_IsInitialized())
              return;
            GilAcquire acquire;
            Py_DECREF(tensor);
          },
          /*announced=*/true, /*stream_ordered=*/true};
}

void TensorLaunch::useCurrentStream() const {
  if (deviceType != nb::device::cuda::value)
    return;
  void *stream = nullptr;
  if (exchange->currentStream(deviceType, 0, &stream) != 0)
    nb::raise_python_error();
  GilRelease release;
  device.use_stream(stream);
}

AnyArray TensorLaunch::arrayOf(const Slot &slot, PyObject *tensor,
                               PyObject *adjoint) const {
  View view, slopes;
  if (!see(tensor, slot.type.dtype, view) || !hasShape(slot, view))
    return {};
  std::vector<int64_t> shape(view.shape, view.shape + view.ndim);
  OutsideMemory gradient;
  if (adjoint != Py_None) {
    if (!see(adjoint, derivativeOf(slot.type.dtype), slopes) ||
        !std::equal(shape.begin(), shape.end(), slopes.shape,
                    slopes.shape + slopes.ndim))
      return {};
    gradient = memoryOf(adjoint, slopes);
  }
  return device.adopt(slot.type.dtype, std::move(shape), memoryOf(tensor, view),
                      adjoint == Py_None ? none : grad, std::move(gradient));
}

bool TensorLaunch::run(detail::Mode mode, bool initialState,
                       const Tensors &values, const Tensors *adjoints) const {
  std::vector<AnyArray> arrays(slots.size());
  std::vector<detail::ArgumentValue> arguments;
  arguments.reserve(slots.size());
  for (size_t k = 0; k < slots.size(); ++k) {
    PyObject *given = values.at(slots[k]);
    if (slots[k].type.rank < 0) {
      std::optional<detail::ArgumentValue> number = numberOf(given);
      if (!number)
        return false;
      arguments.push_back(*number);
      continue;
    }
    arrays[k] =
        arrayOf(slots[k], given, adjoints ? adjoints->at(slots[k]) : Py_None);
    if (!arrays[k])
      return false;
    arguments.emplace_back(arrays[k]);
  }
  useCurrentStream();
  GilRelease release;
  if (initialState)
    kernel.launch_with(initial_state, mode, arguments);
  else
    kernel.launch_with(mode, arguments);
  return true;
}

void bindTensors(nb::module_ &module) {
  nb::class_<TensorLaunch>(
      module, "TensorLaunch",
      "Launches of a kernel over the memory of tensors of another library, "
      "which hands it out by the C functions of DLPack. Arguments of the "
      "kernel are inputs or results, by their numbers; -1: it is none.")
      .def(nb::init<const Kernel &, const Device &, nb::handle, nb::tuple,
                    const std::vector<int> &, const std::vector<int> &,
                    const std::vector<std::vector<int64_t>> &>(),
           "kernel"_a, "device"_a, "exchange"_a, "types"_a, "inputs"_a,
           "results"_a, "components"_a)
      .def("fits", &TensorLaunch::fits, "inputs"_a,
           "Whether launches take these inputs as they are: 0 if not, 2 if one "
           "of them requires a gradient, else 1. Says nothing of numbers.")
      .def(
          "launch",
          [](const TensorLaunch &launch, nb::tuple inputs, nb::tuple results) {
            return launch.run(detail::Mode::Primal, false, {inputs, results},
                              nullptr);
          },
          "inputs"_a, "results"_a,
          "On the current stream of the library. False, and nothing has "
          "happened, if the tensors are not as they must be.")
      .def(
          "gradient",
          [](const TensorLaunch &launch, nb::tuple inputs, nb::tuple results,
             nb::tuple inputAdjoints, nb::tuple resultAdjoints,
             bool initialState) {
            Tensors adjoints{inputAdjoints, resultAdjoints};
            return launch.run(detail::Mode::Gradient, initialState,
                              {inputs, results}, &adjoints);
          },
          "inputs"_a, "results"_a, "input_adjoints"_a, "result_adjoints"_a,
          "initial_state"_a,
          "The same of the gradient. Where an adjoint is None, there is none.");
}

} // namespace costate::python
