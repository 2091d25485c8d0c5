#include "bindings/Numbers.h"
#include "costate/detail/bound_arguments.h"

#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <sstream>

namespace costate::python {

using nb::literals::operator""_a;
using detail::ArgumentValue;
using detail::BoundArguments;
using detail::Mode;

/// Of arrays; kept for launches, which are to be fast.
static PyTypeObject *arrayType;

static bool isArray(PyObject *object) {
  return Py_TYPE(object) == arrayType ||
         PyType_IsSubtype(Py_TYPE(object), arrayType);
}

static ArgumentValue argumentOf(PyObject *object, size_t index,
                                const Kernel &kernel) {
  if (isArray(object) && nb::inst_ready(object))
    return ArgumentValue(*nb::inst_ptr<AnyArray>(object));
  if (std::optional<ArgumentValue> number = numberOf(object))
    return *number;
  std::string text = isArray(object) ? "an Array that was never made"
                                     : nb::repr(object).c_str();
  throw Error(ErrorCode::BadArgument,
              "kernel `" + kernel.name() + "`: argument " +
                  std::to_string(index + 1) + " is " + text +
                  "; pass an Array, or a number of at most 64 bits");
}

static std::vector<PyObject *> itemsOf(PyObject *tuple) {
  std::vector<PyObject *> items(static_cast<size_t>(PyTuple_Size(tuple)));
  for (size_t i = 0; i < items.size(); ++i)
    items[i] = PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i));
  return items;
}

namespace {
/// The arguments of one launch.
class Arguments {
public:
  Arguments(const Kernel &kernel, PyObject *const *objects, size_t count) {
    values.reserve(count);
    for (size_t i = 0; i < count; ++i)
      values.push_back(argumentOf(objects[i], i, kernel));
  }
  Arguments(const Kernel &kernel, const nb::args &objects)
      : Arguments(kernel, itemsOf(objects.ptr()).data(), objects.size()) {}
  operator std::span<const ArgumentValue>() const { return values; }

private:
  std::vector<ArgumentValue> values;
};
} // namespace

static void launch(const Kernel &kernel, Mode mode, bool initialState,
                   PyObject *const *objects, size_t count) {
  Arguments arguments(kernel, objects, count);
  GilRelease release;
  if (initialState)
    kernel.launch_with(initial_state, mode, arguments);
  else
    kernel.launch_with(mode, arguments);
}

static void launch(BoundArguments &bound, Mode mode, bool initialState,
                   PyObject *const *objects, size_t count) {
  Arguments scalars(bound.kernel, objects, count);
  GilRelease release;
  if (initialState)
    bound.launch(initial_state, mode, scalars);
  else
    bound.launch(mode, scalars);
}

/// The value of `initial_state`, the one keyword of launches.
static bool initialStateOf(PyObject *const *values, PyObject *names) {
  bool found = false;
  for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); ++i) {
    PyObject *name = PyTuple_GetItem(names, i);
    if (PyUnicode_CompareWithASCIIString(name, "initial_state") != 0) {
      PyErr_SetString(PyExc_TypeError,
                      "a launch has one keyword, `initial_state`");
      nb::raise_python_error();
    }
    found = PyObject_IsTrue(values[i]) == 1;
  }
  return found;
}

/// A method of its own kind: those of nanobind make a tuple of their arguments.
template <class Launched, Mode mode>
static PyObject *launchMethod(PyObject *self, PyObject *const *objects,
                              Py_ssize_t count, PyObject *names) noexcept {
  try {
    bool initialState = initialStateOf(objects + count, names);
    if (!nb::inst_ready(self))
      throw Error(ErrorCode::BadArgument, "this kernel was never made");
    launch(*nb::inst_ptr<Launched>(self), mode, initialState, objects,
           static_cast<size_t>(count));
  } catch (...) {
    setError(std::current_exception());
    return nullptr;
  }
  Py_RETURN_NONE;
}

template <class Launched, Mode mode>
static PyMethodDef methodOf(const char *name, const char *text) {
  auto *function = launchMethod<Launched, mode>;
  return {name,
          reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(function)),
          METH_FASTCALL | METH_KEYWORDS, text};
}

static PyMethodDef methods[] = {
    methodOf<Kernel, Mode::Primal>(
        "launch", "launch($self, /, *args, initial_state=False)\n--\n\n"
                  "Runs the kernel. Arguments are Arrays, and numbers for "
                  "scalars, which must be exact in the declared type, except "
                  "that a real number is rounded to it. BadArgument, "
                  "OutOfMemory, OutOfRange, Race, NotFinite, KernelFailed."),
    methodOf<Kernel, Mode::Gradient>(
        "grad", "grad($self, /, *args, initial_state=False)\n--\n\n"
                "Reverse mode, at the current contents of the arguments: adds "
                "to `.grad` of the arrays that the kernel reads, consumes "
                "`.grad` of those that it writes. With `initial_state` the "
                "arrays hold what they held before the launch. "
                "MissingGradient, NotDifferentiable, CannotReplay, and what "
                "`launch` raises."),
    methodOf<Kernel, Mode::Tangent>(
        "jvp", "jvp($self, /, *args, initial_state=False)\n--\n\n"
               "Forward mode: runs the kernel and pushes `.dual` through "
               "it."),
    {nullptr, nullptr, 0, nullptr}};

static PyObject *call(PyObject *self, PyObject *tuple,
                      PyObject *words) noexcept {
  if (words && PyDict_Size(words)) {
    PyErr_SetString(PyExc_TypeError, "a launch takes no keywords");
    return nullptr;
  }
  std::vector<PyObject *> items = itemsOf(tuple);
  return launchMethod<Kernel, Mode::Primal>(
      self, items.data(), static_cast<Py_ssize_t>(items.size()), nullptr);
}

static PyType_Slot slots[] = {{Py_tp_methods, methods},
                              {Py_tp_call, reinterpret_cast<void *>(call)},
                              {0, nullptr}};

static PyMethodDef boundMethods[] = {
    methodOf<BoundArguments, Mode::Primal>(
        "launch", "launch($self, /, *scalars, initial_state=False)\n--\n\n"
                  "Kernel.launch with these scalars, all of them in their "
                  "order."),
    methodOf<BoundArguments, Mode::Gradient>(
        "grad", "grad($self, /, *scalars, initial_state=False)\n--\n\n"
                "Kernel.grad, likewise."),
    {nullptr, nullptr, 0, nullptr}};

static PyType_Slot boundSlots[] = {{Py_tp_methods, boundMethods}, {0, nullptr}};

static Mode modeOf(const std::string &name) {
  if (name == "primal")
    return Mode::Primal;
  if (name == "gradient")
    return Mode::Gradient;
  if (name == "tangent")
    return Mode::Tangent;
  throw Error(ErrorCode::BadArgument, "there is no mode `" + name +
                                          "`; there are primal, gradient "
                                          "and tangent");
}

/// Seconds of `count` launches from C++, for benchmarks.
static double timeLaunches(const Kernel &kernel, size_t count,
                           nb::args objects) {
  Arguments arguments(kernel, objects);
  GilRelease release;
  auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < count; ++i)
    kernel.launch_with(Mode::Primal, arguments);
  std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - start;
  return passed.count();
}

static void bindOptions(nb::module_ &module) {
  nb::enum_<Gradients>(module, "Gradients")
      .value("Checked", Gradients::Checked,
             "Runs the launch again beside, and compares.")
      .value("Unchecked", Gradients::Unchecked, "Takes memory as it is.");
  nb::class_<KernelOptions>(module, "KernelOptions")
      .def(
          "__init__",
          [](KernelOptions *self, bool debug, bool deterministic, bool fastMath,
             bool findNan, int lanes, size_t tapeBudget, Gradients gradients) {
            new (self) KernelOptions{debug, deterministic, fastMath, findNan,
                                     lanes, tapeBudget,    gradients};
          },
          nb::kw_only(), "debug"_a = false, "deterministic"_a = false,
          "fast_math"_a = false, "find_nan"_a = false, "lanes"_a = 0,
          "tape_budget"_a = 0, "gradients"_a = Gradients::Checked)
      .def_rw("debug", &KernelOptions::debug,
              "Checks every index, asserts, and races.")
      .def_rw("deterministic", &KernelOptions::deterministic,
              "Results are the same to the last bit for any number of threads.")
      .def_rw("fast_math", &KernelOptions::fast_math)
      .def_rw("find_nan", &KernelOptions::find_nan,
              "Stops at the first operation that gives inf or NaN.")
      .def_rw("lanes", &KernelOptions::lanes,
              "Work items of a range that a CPU runs as lanes of a vector: a "
              "power of 2 up to 64; 0 is what pays.")
      .def_rw("tape_budget", &KernelOptions::tape_budget,
              "Bytes that the tapes of a gradient may take on a CPU; 0: as the "
              "device says.")
      .def_rw("gradients", &KernelOptions::gradients,
              "What `grad` does where it is not certain that memory still "
              "holds what the launch has read and written.");
  nb::class_<ArgumentType>(module, "ArgumentType")
      .def_ro("dtype", &ArgumentType::dtype)
      .def_ro("rank", &ArgumentType::rank, "-1 for a scalar");
}

static void bindCheck(nb::module_ &module) {
  nb::class_<GradientCheck>(
      module, "GradientCheck",
      "One directional derivative of a kernel, computed by reverse mode, by "
      "forward mode and by differences.")
      .def_ro("ok", &GradientCheck::ok)
      .def_ro("reverse", &GradientCheck::reverse)
      .def_ro("forward", &GradientCheck::forward)
      .def_ro("difference", &GradientCheck::difference)
      .def_ro("forward_error", &GradientCheck::forward_error)
      .def_ro("difference_error", &GradientCheck::difference_error)
      .def_ro("differences_tell", &GradientCheck::differences_tell)
      .def_prop_rw(
          "array", [](const GradientCheck &check) { return check.worst.array; },
          [](GradientCheck &check, const std::string &array) {
            check.worst.array = array;
          },
          "that the entry with the largest error is of")
      .def("__bool__", [](const GradientCheck &check) { return check.ok; })
      .def("__str__", [](const GradientCheck &check) {
        std::ostringstream text;
        text << check;
        return text.str();
      });
  module.def(
      "check_gradient",
      [](const Kernel &kernel, nb::args objects) {
        Arguments arguments(kernel, objects);
        GilRelease release;
        return detail::check_gradient(kernel, arguments);
      },
      "kernel"_a, "args"_a,
      "Checks the gradient at the contents of the arguments, on copies.");
}

static std::unique_ptr<BoundArguments> boundTo(const Kernel &kernel,
                                               nb::args objects) {
  return std::make_unique<BoundArguments>(kernel, Arguments(kernel, objects));
}

void bindKernels(nb::module_ &module) {
  arrayType = reinterpret_cast<PyTypeObject *>(nb::type<AnyArray>().ptr());
  bindOptions(module);
  nb::class_<BoundArguments>(
      module, "BoundArguments", nb::type_slots(boundSlots),
      "Arguments of a kernel that are checked once, for many launches. Keeps "
      "the arrays alive.");
  nb::class_<Kernel>(module, "Kernel", nb::type_slots(slots),
                     "A kernel: compiled on first use, run on the device of "
                     "its arguments. Safe to launch from several threads.")
      .def_static(
          "from_ir",
          [](const std::string &text, const std::string &name,
             KernelOptions options, const std::string &file) {
            GilRelease release;
            return Kernel::from_ir(text, name, options, file);
          },
          "text"_a, "name"_a = "", "options"_a = KernelOptions(),
          "file"_a = "<kernel>",
          "A kernel from kernel IR as text. BadKernel if it does not parse or "
          "verify.")
      .def("gradient", &Kernel::gradient,
           "`grad` as a kernel with the same arguments, which has a `jvp`.")
      .def("tangent", &Kernel::tangent,
           "`jvp` as a kernel with the same arguments.")
      .def("bound", &boundTo, "args"_a,
           "These arguments, checked as `launch` does.")
      .def_prop_ro("name", &Kernel::name)
      .def_prop_ro("arguments", &Kernel::arguments)
      .def("report", &Kernel::report, nb::call_guard<GilRelease>(),
           "For people: signature, what has been compiled and how long that "
           "took, what each line saves and what is computed again.")
      .def(
          "ir",
          [](const Kernel &kernel, const std::string &mode, bool llvm) {
            Mode wanted = modeOf(mode);
            GilRelease release;
            return kernel.ir(wanted, llvm);
          },
          "mode"_a = "primal", "llvm"_a = false,
          "Kernel IR or LLVM IR of `primal`, `gradient` or `tangent`.")
      .def("_time_launches", &timeLaunches, "count"_a, "args"_a,
           "Seconds that so many launches take without Python.")
      .def("__repr__", [](const Kernel &kernel) {
        return "<costate.Kernel " + kernel.name() + ">";
      });
  bindCheck(module);
}

} // namespace costate::python
