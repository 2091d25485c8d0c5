#pragma once
/// What the files of this folder share. They say how C++ looks from Python and
/// nothing else.

#include "costate/costate.h"

#include <nanobind/nanobind.h>

namespace costate::python {

namespace nb = nanobind;

void bindErrors(nb::module_ &module);
void bindTypes(nb::module_ &module);
void bindTrace(nb::module_ &module);
void bindArrays(nb::module_ &module);
void bindInterop(nb::class_<AnyArray> &array);
void bindDevices(nb::module_ &module);
void bindKernels(nb::module_ &module);
void bindTape(nb::module_ &module);
void bindTensors(nb::module_ &module);
void bindDistributed(nb::module_ &module);
void bindXla(nb::module_ &module);

/// Lets other threads run Python. A thread that comes back when the interpreter
/// has ended stays here, instead of being unwound through frames of C++.
class GilRelease {
public:
  GilRelease() : state(PyEval_SaveThread()) {}
  ~GilRelease();
  GilRelease(const GilRelease &) = delete;

private:
  PyThreadState *state;
};

/// The opposite, with the same end.
class GilAcquire {
public:
  GilAcquire();
  ~GilAcquire() { PyGILState_Release(state); }
  GilAcquire(const GilAcquire &) = delete;

private:
  PyGILState_STATE state;
};

/// Whether the interpreter is about to end.
bool pythonEnds();

/// Sets the Python error that `failure` stands for.
void setError(const std::exception_ptr &failure) noexcept;

/// A copy of `text` for the life of the process.
const char *interned(std::string_view text);

/// Where the code stands that has called this package.
Loc callerLoc();

} // namespace costate::python
