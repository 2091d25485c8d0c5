#include "bindings/Bindings.h"

#include <dlfcn.h>

#include <array>

namespace costate::python {

namespace {
/// One class for each code; never released.
struct Classes {
  PyObject *base = nullptr;
  std::array<PyObject *, static_cast<size_t>(ErrorCode::Internal) + 1> all{};
  std::array<const char *, static_cast<size_t>(ErrorCode::Internal) + 1>
      names{};
};
} // namespace

static Classes classes;

static PyObject *make(nb::module_ &module, const char *name, nb::object bases,
                      const char *text) {
  std::string full = std::string("costate.") + name;
  PyObject *made =
      PyErr_NewExceptionWithDoc(full.c_str(), text, bases.ptr(), nullptr);
  if (!made)
    nb::raise_python_error();
  module.attr(name) = nb::borrow(made);
  return made;
}

/// What a handler of a signal has raised in the middle of a launch.
static thread_local PyObject *raisedMeanwhile = nullptr;

/// By name: the stable ABI lacks it, and its name has changed in 3.13.
bool pythonEnds() {
  static const auto isFinalizing = [] {
    void *found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!found)
      found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return reinterpret_cast<int (*)()>(found);
  }();
  return isFinalizing();
}

/// Handlers of signals run on the main thread; on others nothing happens.
static bool signalsRaise() {
  if (!Py_IsInitialized() || pythonEnds())
    return false;
  GilAcquire acquire;
  if (PyErr_CheckSignals() == 0)
    return false;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value && trace)
    PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  raisedMeanwhile = value;
  return true;
}

/// A bare KeyboardInterrupt gets `text`.
static void raiseInterrupt(const char *text) {
  nb::object raised = nb::steal(std::exchange(raisedMeanwhile, nullptr));
  if (!raised || (raised.type().is(PyExc_KeyboardInterrupt) &&
                  nb::len(nb::object(raised.attr("args"))) == 0))
    PyErr_SetString(PyExc_KeyboardInterrupt, text);
  else
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
}

void setError(const std::exception_ptr &failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (nb::python_error &error) {
    error.restore();
  } catch (const Error &error) {
    if (error.code() == ErrorCode::Interrupted)
      return raiseInterrupt(error.what());
    PyErr_SetString(classes.all[static_cast<size_t>(error.code())],
                    error.what());
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an unknown C++ exception");
  }
}

static void translate(const std::exception_ptr &failure, void *) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error &) {
    setError(failure);
  }
}

void bindErrors(nb::module_ &module) {
  classes.base =
      make(module, "Error", nb::borrow(PyExc_RuntimeError),
           "What every function of Costate raises. Its text states the "
           "situation, the place in the user's source where there is one, and "
           "a way out.");
  auto add = [&](ErrorCode code, const char *name, const char *text,
                 PyObject *builtin = nullptr) {
    nb::handle base = classes.base;
    nb::object bases =
        builtin ? nb::object(nb::make_tuple(base, nb::handle(builtin)))
                : nb::borrow(base);
    classes.all[static_cast<size_t>(code)] = make(module, name, bases, text);
    classes.names[static_cast<size_t>(code)] = name;
  };
  add(ErrorCode::BadArgument, "BadArgument",
      "Wrong number, dtype, rank, shape or device of arguments, a negative or "
      "too large extent, overlapping written arguments.",
      PyExc_ValueError);
  add(ErrorCode::BadKernel, "BadKernel",
      "The kernel's source breaks a rule of the language.");
  add(ErrorCode::MissingGradient, "MissingGradient",
      "`.grad` or `.dual` of an array that has none, or a derivative launch "
      "that would have to drop a derivative for want of one.");
  add(ErrorCode::NotDifferentiable, "NotDifferentiable",
      "An operation on the way from input to output has no derivative.");
  add(ErrorCode::CannotReplay, "CannotReplay",
      "The gradient would have to run on memory that is no longer there.");
  add(ErrorCode::CannotCapture, "CannotCapture",
      "What a graph cannot repeat: copies between device and host, or a "
      "launch that has to wait for the device.");
  add(ErrorCode::OutOfRange, "OutOfRange",
      "An index outside an array, in a kernel with `debug`.", PyExc_IndexError);
  add(ErrorCode::Race, "Race",
      "One work item of a range stores an element that another one uses, in "
      "a kernel with `debug`.");
  add(ErrorCode::AssertionFailed, "AssertionFailed",
      "An assert of a kernel with `debug` does not hold.",
      PyExc_AssertionError);
  add(ErrorCode::NotFinite, "NotFinite",
      "An operation has given inf or NaN, in a kernel with `find_nan`.",
      PyExc_ArithmeticError);
  add(ErrorCode::OutOfMemory, "OutOfMemory",
      "Host or device memory is exhausted, or a limit that was set is "
      "reached.",
      PyExc_MemoryError);
  add(ErrorCode::NoDevice, "NoDevice",
      "A device, driver or feature is missing.");
  add(ErrorCode::KernelFailed, "KernelFailed",
      "Something else went wrong while a kernel ran (step 0 in a loop).");
  add(ErrorCode::BadFile, "BadFile",
      "A file cannot be read or written, or has wrong contents.");
  add(ErrorCode::RankLost, "RankLost",
      "A rank of a distributed program has ended or left, or has not answered "
      "within the timeout.");
  add(ErrorCode::Internal, "Internal", "A defect of Costate itself.");
  nb::register_exception_translator(translate);
  set_interrupt_check(signalsRaise);
  module.def(
      "_set_error_classes",
      [](const nb::dict &chosen) {
        for (size_t code = 0; code < classes.all.size(); ++code)
          if (classes.names[code] && chosen.contains(classes.names[code]))
            classes.all[code] =
                nb::object(chosen[classes.names[code]]).release().ptr();
      },
      nb::arg("classes"),
      "From here on raises these, by the names of the codes.");
}

} // namespace costate::python
