#include "bindings/Foreign.h"
#include "bindings/Numbers.h"

#include "costate/detail/bound_arguments.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

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

/// What one argument is given.
struct Given {
  PyObject *tensor = nullptr; ///< or number
  PyObject *adjoint = nullptr;
  View view{}, slopes{}; ///< of both, if they are tensors
  bool isLent = false;   ///< the adjoint has to stay as it is
};
using AllGiven = std::vector<Given>;

/// Up to so many bytes are written by the calling thread, and not by many.
constexpr size_t few = 1 << 16;

/// A launch over tensors of certain shapes, which finds out once what follows
/// from them. By one thread at a time.
struct KeptLaunch {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<bool> hasAdjoint;
  std::vector<std::vector<std::byte>> copies; ///< of adjoints that are lent
  std::unique_ptr<detail::BoundArguments> arguments;
  bool isBusy = false;

  class Use {
  public:
    explicit Use(KeptLaunch &launch) : launch(launch) { launch.isBusy = true; }
    ~Use() { launch.isBusy = false; }
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;

  private:
    KeptLaunch &launch;
  };

  /// The address of a copy of the adjoint of argument `k`.
  void *copied(size_t k, const View &adjoint);
};

/// Launches of a kernel over the memory of tensors.
class TensorLaunch {
public:
  TensorLaunch(const Kernel &kernel, const Device &device, nb::handle exchange,
               nb::tuple types, nb::tuple functions,
               const std::vector<int> &likes, const std::vector<int> &inputs,
               const std::vector<int> &results,
               const std::vector<std::vector<int64_t>> &components);

  int fits(nb::tuple inputs) const;
  bool launch(nb::tuple inputs, nb::tuple results);
  std::optional<nb::tuple> call(nb::tuple inputs);
  bool needsResults() const;
  std::optional<nb::tuple> gradient(nb::tuple inputs, nb::tuple results,
                                    nb::tuple needs, nb::tuple cotangents,
                                    bool initialState);

private:
  bool isTensor(PyObject *object) const {
    return Py_TYPE(object) == types[0] || Py_TYPE(object) == types[1];
  }
  bool see(PyObject *tensor, DType type, View &view) const;
  bool hasShape(const Slot &slot, const View &view) const;
  bool takes(const Slot &slot, PyObject *tensor) const;
  enum class Known : uint8_t { Nothing, Inputs, All };
  bool giveValues(AllGiven &given, nb::tuple inputs, nb::tuple results,
                  Known known) const;
  bool giveAdjoint(const Slot &slot, Given &given, PyObject *adjoint) const;
  nb::object giveCotangent(const Slot &slot, Given &given,
                           PyObject *cotangent) const;
  nb::object zerosLike(PyObject *tensor, const View &view) const;
  AnyArray arrayOf(const Slot &slot, const Given &given, bool isHeld) const;
  void useCurrentStream() const;
  std::shared_ptr<KeptLaunch> keptFor(const AllGiven &given);
  bool needsResults(const AllGiven &given) const;
  void noteNeeds(const KeptLaunch &launch);
  nb::tuple rowMajor(nb::tuple tensors) const;
  std::shared_ptr<KeptLaunch> newKept(const AllGiven &given) const;
  using Numbers = std::vector<detail::ArgumentValue>;
  bool giveNumbers(const AllGiven &given, Numbers &numbers) const;
  bool run(detail::Mode mode, bool initialState, AllGiven &given);
  bool runOfCopies(detail::Mode mode, bool initialState, AllGiven &given) const;
  bool runOnce(detail::Mode mode, bool initialState,
               const AllGiven &given) const;

  const Kernel kernel;
  const Device device;
  const bool mayKeep; ///< memory needs no more than its address
  const int32_t deviceType;
  const Exchange *exchange;
  PyTypeObject *types[2];
  const nb::object zeros, empty, copy; ///< like a tensor
  const std::vector<int> likes;        ///< inputs that results are like
  std::vector<Slot> slots;
  static constexpr size_t most = 8;
  std::vector<std::shared_ptr<KeptLaunch>> kept;
  size_t next = 0; ///< to be replaced
  /// By gradients, for those that have adjoints.
  std::map<std::vector<bool>, bool> resultsNeeded;
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
                           nb::tuple functions, const std::vector<int> &likes,
                           const std::vector<int> &inputs,
                           const std::vector<int> &results,
                           const std::vector<std::vector<int64_t>> &components)
    : kernel(kernel), device(device), mayKeep(device.name() == "cpu"),
      deviceType(device.name() == "cuda" ? nb::device::cuda::value
                                         : nb::device::cpu::value),
      exchange(exchangeOf(exchange)), zeros(functions[0]), empty(functions[1]),
      copy(functions[2]), likes(likes) {
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
         view.dtype == dlpackType(type) && isRowMajor(view);
}

bool TensorLaunch::hasShape(const Slot &slot, const View &view) const {
  size_t count = slot.components.size();
  return view.ndim == slot.type.rank &&
         std::equal(slot.components.begin(), slot.components.end(),
                    view.shape + view.ndim - count);
}

bool TensorLaunch::takes(const Slot &slot, PyObject *tensor) const {
  View view;
  return see(tensor, slot.type.dtype, view) && hasShape(slot, view) &&
         !isLazilyNegative(tensor);
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

static std::byte *addressOf(const View &view) {
  return static_cast<std::byte *>(view.data) + view.byte_offset;
}

static size_t bytesOf(const View &view) {
  size_t bytes = view.dtype.bits / 8;
  for (int dim = 0; dim < view.ndim; ++dim)
    bytes *= static_cast<size_t>(view.shape[dim]);
  return bytes;
}

/// Memory of `tensor`, which lives as long as an array has it.
static OutsideMemory memoryOf(PyObject *tensor, const View &view) {
  Py_INCREF(tensor);
  return {addressOf(view),
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

void *KeptLaunch::copied(size_t k, const View &adjoint) {
  copies.resize(shapes.size());
  copies[k].resize(bytesOf(adjoint));
  return std::memcpy(copies[k].data(), addressOf(adjoint), copies[k].size());
}

static bool isAligned(const View &view) {
  size_t width = view.dtype.bits / 8;
  return width == 0 ||
         reinterpret_cast<uintptr_t>(addressOf(view)) % width == 0;
}

//===-- What it is given ----------------------------------------------===//

/// False if a tensor is not as it must be. Of `known` ones elements are what
/// memory holds.
bool TensorLaunch::giveValues(AllGiven &given, nb::tuple inputs,
                              nb::tuple results, Known known) const {
  for (size_t k = 0; k < slots.size(); ++k) {
    const Slot &slot = slots[k];
    bool isResult = slot.result >= 0;
    PyObject *tensor = isResult
                           ? results[static_cast<size_t>(slot.result)].ptr()
                           : inputs[static_cast<size_t>(slot.input)].ptr();
    given[k].tensor = tensor;
    if (slot.type.rank < 0)
      continue;
    if (!see(tensor, slot.type.dtype, given[k].view) ||
        !hasShape(slot, given[k].view))
      return false;
    bool isKnown = known == Known::All || (known == Known::Inputs && !isResult);
    if (!isKnown && isLazilyNegative(tensor))
      return false;
  }
  return true;
}

bool TensorLaunch::giveAdjoint(const Slot &slot, Given &given,
                               PyObject *adjoint) const {
  const View &view = given.view;
  bool fits = see(adjoint, derivativeOf(slot.type.dtype), given.slopes) &&
              std::equal(view.shape, view.shape + view.ndim, given.slopes.shape,
                         given.slopes.shape + given.slopes.ndim);
  given.adjoint = fits ? adjoint : nullptr;
  given.isLent = false;
  return fits;
}

/// Lends it, if it is small, or gives a copy, which is returned.
nb::object TensorLaunch::giveCotangent(const Slot &slot, Given &given,
                                       PyObject *cotangent) const {
  bool isLent = mayKeep && slot.input < 0 &&
                giveAdjoint(slot, given, cotangent) &&
                bytesOf(given.slopes) <= few && isAligned(given.slopes) &&
                !isLazilyNegative(cotangent);
  if (isLent) {
    given.isLent = true;
    return {};
  }
  nb::object own = copy(nb::handle(cotangent));
  giveAdjoint(slot, given, own.ptr());
  return own;
}

nb::object TensorLaunch::zerosLike(PyObject *tensor, const View &view) const {
  View made;
  size_t bytes = bytesOf(view);
  if (!mayKeep || bytes > few)
    return zeros(nb::handle(tensor));
  nb::object result = empty(nb::handle(tensor));
  if (exchange->view(result.ptr(), &made) != 0)
    nb::raise_python_error();
  std::memset(addressOf(made), 0, bytes);
  return result;
}

//===-- Running it ----------------------------------------------------===//

AnyArray TensorLaunch::arrayOf(const Slot &slot, const Given &given,
                               bool isHeld) const {
  auto memory = [&](PyObject *tensor, const View &view) {
    return isHeld ? memoryOf(tensor, view)
                  : OutsideMemory{addressOf(view), {}, true, true};
  };
  OutsideMemory gradient;
  if (given.adjoint)
    gradient = memory(given.adjoint, given.slopes);
  const View &view = given.view;
  std::vector<int64_t> shape(view.shape, view.shape + view.ndim);
  return device.adopt(slot.type.dtype, std::move(shape),
                      memory(given.tensor, view), given.adjoint ? grad : none,
                      std::move(gradient));
}

bool TensorLaunch::runOnce(detail::Mode mode, bool initialState,
                           const AllGiven &given) const {
  std::vector<AnyArray> arrays(slots.size());
  std::vector<detail::ArgumentValue> arguments;
  arguments.reserve(slots.size());
  for (size_t k = 0; k < slots.size(); ++k) {
    if (slots[k].type.rank >= 0) {
      arrays[k] = arrayOf(slots[k], given[k], /*isHeld=*/true);
      arguments.emplace_back(arrays[k]);
    } else if (std::optional<detail::ArgumentValue> number =
                   numberOf(given[k].tensor)) {
      arguments.push_back(*number);
    } else {
      return false;
    }
  }
  useCurrentStream();
  GilRelease release;
  if (initialState)
    kernel.launch_with(initial_state, mode, arguments);
  else
    kernel.launch_with(mode, arguments);
  return true;
}

static std::vector<bool> adjointsOf(const AllGiven &given) {
  std::vector<bool> has;
  for (const Given &one : given)
    has.push_back(one.adjoint != nullptr);
  return has;
}

static bool isLike(const KeptLaunch &one, const AllGiven &given) {
  for (size_t k = 0; k < given.size(); ++k) {
    const View &view = given[k].view;
    if (one.hasAdjoint[k] != (given[k].adjoint != nullptr) ||
        !std::equal(one.shapes[k].begin(), one.shapes[k].end(), view.shape,
                    view.shape + view.ndim))
      return false;
  }
  return true;
}

std::shared_ptr<KeptLaunch> TensorLaunch::newKept(const AllGiven &given) const {
  auto made = std::make_shared<KeptLaunch>();
  std::vector<AnyArray> arrays(slots.size());
  std::vector<detail::ArgumentValue> arguments;
  for (size_t k = 0; k < slots.size(); ++k) {
    const View &view = given[k].view;
    made->shapes.emplace_back(view.shape, view.shape + view.ndim);
    made->hasAdjoint.push_back(given[k].adjoint != nullptr);
    if (slots[k].type.rank >= 0) {
      arrays[k] = arrayOf(slots[k], given[k], /*isHeld=*/false);
      arguments.emplace_back(arrays[k]);
    } else {
      arguments.push_back(numberOf(given[k].tensor).value());
    }
  }
  made->arguments = std::make_unique<detail::BoundArguments>(kernel, arguments);
  return made;
}

/// Null where tensors are not like that, or such a launch is running.
std::shared_ptr<KeptLaunch> TensorLaunch::keptFor(const AllGiven &given) {
  auto isAddressed = [](const Given &one) {
    return isAligned(one.view) && isAligned(one.slopes);
  };
  if (!mayKeep || !std::ranges::all_of(given, isAddressed))
    return nullptr;
  for (const std::shared_ptr<KeptLaunch> &one : kept)
    if (isLike(*one, given))
      return one->isBusy ? nullptr : one;
  if (kept.size() < most)
    return kept.emplace_back(newKept(given));
  next = (next + 1) % most;
  return kept[next] = newKept(given);
}

/// False if a number is not as it must be.
bool TensorLaunch::giveNumbers(const AllGiven &given, Numbers &numbers) const {
  for (size_t k = 0; k < slots.size(); ++k) {
    if (slots[k].type.rank >= 0)
      continue;
    std::optional<detail::ArgumentValue> number = numberOf(given[k].tensor);
    if (!number)
      return false;
    numbers.push_back(*number);
  }
  return true;
}

/// Of a launch that is not kept.
bool TensorLaunch::runOfCopies(detail::Mode mode, bool initialState,
                               AllGiven &given) const {
  std::vector<nb::object> copies;
  for (size_t k = 0; k < slots.size(); ++k)
    if (given[k].isLent) {
      copies.push_back(copy(nb::handle(given[k].adjoint)));
      if (!giveAdjoint(slots[k], given[k], copies.back().ptr()))
        return false;
    }
  return runOnce(mode, initialState, given);
}

bool TensorLaunch::run(detail::Mode mode, bool initialState, AllGiven &given) {
  Numbers numbers;
  if (!giveNumbers(given, numbers))
    return false;
  std::shared_ptr<KeptLaunch> one = keptFor(given);
  if (!one)
    return runOfCopies(mode, initialState, given);
  KeptLaunch::Use use(*one);
  std::vector<void *> memory, gradients;
  memory.reserve(given.size());
  gradients.reserve(given.size());
  for (size_t k = 0; k < given.size(); ++k) {
    memory.push_back(addressOf(given[k].view));
    gradients.push_back(given[k].isLent ? one->copied(k, given[k].slopes)
                                        : addressOf(given[k].slopes));
  }
  {
    GilRelease release;
    one->arguments->move(memory, gradients);
    if (initialState)
      one->arguments->launch(initial_state, mode, numbers);
    else
      one->arguments->launch(mode, numbers);
  }
  if (mode == detail::Mode::Gradient && !initialState && needsResults(given))
    noteNeeds(*one);
  return true;
}

bool TensorLaunch::launch(nb::tuple inputs, nb::tuple results) {
  AllGiven given(slots.size());
  return giveValues(given, inputs, results, Known::Inputs) &&
         run(detail::Mode::Primal, false, given);
}

/// True where that is not known.
bool TensorLaunch::needsResults(const AllGiven &given) const {
  auto found = resultsNeeded.find(adjointsOf(given));
  return found == resultsNeeded.end() || found->second;
}

bool TensorLaunch::needsResults() const {
  auto isNeeded = [](auto &one) { return one.second; };
  return resultsNeeded.empty() || std::ranges::any_of(resultsNeeded, isNeeded);
}

void TensorLaunch::noteNeeds(const KeptLaunch &launch) {
  bool &isNeeded = resultsNeeded[launch.hasAdjoint];
  for (size_t k = 0; k < slots.size(); ++k)
    isNeeded |= slots[k].result >= 0 && (!isFloat(slots[k].type.dtype) ||
                                         launch.arguments->gradientNeeds(k));
}

nb::tuple TensorLaunch::rowMajor(nb::tuple tensors) const {
  nb::list all;
  for (nb::handle one : tensors) {
    View view;
    bool isReady = isTensor(one.ptr()) &&
                   exchange->view(one.ptr(), &view) == 0 && isRowMajor(view);
    PyErr_Clear();
    all.append(isReady ? nb::borrow(one) : copy(one));
  }
  return nb::tuple(all);
}

std::optional<nb::tuple> TensorLaunch::call(nb::tuple inputs) {
  nb::tuple results =
      nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(likes.size())));
  for (size_t k = 0; k < likes.size(); ++k) {
    View like;
    PyObject *input = inputs[static_cast<size_t>(likes[k])].ptr();
    if (!isTensor(input))
      return std::nullopt;
    if (exchange->view(input, &like) != 0)
      nb::raise_python_error();
    PyTuple_SetItem(results.ptr(), static_cast<Py_ssize_t>(k),
                    zerosLike(input, like).release().ptr());
  }
  AllGiven given(slots.size());
  return giveValues(given, inputs, results, Known::All) &&
                 run(detail::Mode::Primal, false, given)
             ? std::optional(results)
             : std::nullopt;
}

std::optional<nb::tuple>
TensorLaunch::gradient(nb::tuple inputs, nb::tuple results, nb::tuple needs,
                       nb::tuple cotangents, bool initialState) {
  AllGiven given(slots.size());
  bool haveShapesOnly = results.size() == 0;
  if (haveShapesOnly)
    results = cotangents = rowMajor(cotangents);
  if (!giveValues(given, inputs, results, Known::Nothing))
    return std::nullopt;
  size_t first = needs.size() - inputs.size();
  std::vector<nb::object> made(slots.size());
  for (size_t k = 0; k < slots.size(); ++k) {
    const Slot &slot = slots[k];
    if (slot.result >= 0 && isFloat(slot.type.dtype)) {
      made[k] = giveCotangent(
          slot, given[k], cotangents[static_cast<size_t>(slot.result)].ptr());
    } else if (slot.type.rank >= 0 && slot.result < 0 &&
               needs[first + static_cast<size_t>(slot.input)].ptr() ==
                   Py_True) {
      made[k] = zerosLike(given[k].tensor, given[k].view);
      giveAdjoint(slot, given[k], made[k].ptr());
    } else {
      continue;
    }
    if (!given[k].adjoint)
      return std::nullopt;
  }
  if (haveShapesOnly && needsResults(given))
    return std::nullopt;
  if (!run(detail::Mode::Gradient, initialState, given))
    return std::nullopt;
  nb::tuple found =
      nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(needs.size())));
  for (size_t k = 0; k < needs.size(); ++k)
    PyTuple_SetItem(found.ptr(), static_cast<Py_ssize_t>(k),
                    nb::none().release().ptr());
  for (size_t k = 0; k < slots.size(); ++k) {
    if (slots[k].input < 0 || !made[k].is_valid())
      continue;
    size_t at = first + static_cast<size_t>(slots[k].input);
    if (needs[at].ptr() == Py_True)
      PyTuple_SetItem(found.ptr(), static_cast<Py_ssize_t>(at),
                      made[k].release().ptr());
  }
  return found;
}

void bindTensors(nb::module_ &module) {
  nb::class_<TensorLaunch>(
      module, "TensorLaunch",
      "Launches of a kernel over the memory of tensors of another library, "
      "which hands it out by the C functions of DLPack. Arguments of the "
      "kernel are inputs or results, by their numbers; -1: it is none.")
      .def(
          nb::init<const Kernel &, const Device &, nb::handle, nb::tuple,
                   nb::tuple, const std::vector<int> &,
                   const std::vector<int> &, const std::vector<int> &,
                   const std::vector<std::vector<int64_t>> &>(),
          "kernel"_a, "device"_a, "exchange"_a, "types"_a, "functions"_a,
          "likes"_a, "inputs"_a, "results"_a, "components"_a,
          "`functions` make a tensor like another one: of zeros, of anything, "
          "and a contiguous copy. `likes`: the input that each result is zeros "
          "like, if `call` is to make them.")
      .def("fits", &TensorLaunch::fits, "inputs"_a,
           "Whether launches take these inputs as they are: 0 if not, 2 if one "
           "of them requires a gradient, else 1. Says nothing of numbers.")
      .def("launch", &TensorLaunch::launch, "inputs"_a, "results"_a,
           "On the current stream of the library, of inputs that fit. False, "
           "and nothing has happened, if the results are not as they must be.")
      .def("call", &TensorLaunch::call, "inputs"_a,
           "The results of a launch; None, and nothing has happened, if the "
           "inputs are not as they must be.")
      .def_prop_ro(
          "needs_results",
          [](const TensorLaunch &launch) { return launch.needsResults(); },
          "Whether gradients have to be given results, as far as is "
          "known.")
      .def("gradient", &TensorLaunch::gradient, "inputs"_a, "results"_a,
           "needs"_a, "cotangents"_a, "initial_state"_a,
           "The gradients of the inputs that need one, for cotangents of the "
           "results, which stay as they are. None, and nothing has happened, "
           "if tensors are not as they must be, or `results` is empty and they "
           "are needed.");
}

} // namespace costate::python
