#include "bindings/Bindings.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>

namespace costate::python {

/// Then states of threads are not there either.
static std::atomic<bool> pythonHasEnded = false;

[[noreturn]] static void stay() {
  for (;;)
    pause();
}

/// Before 3.14, Python ends threads that want to run while it ends.
template <class F> static void orStay(F take) {
  if (pythonHasEnded)
    stay();
  try {
    take();
  } catch (const abi::__forced_unwind &) {
    stay();
  }
}

GilRelease::~GilRelease() {
  orStay([this] { PyEval_RestoreThread(state); });
}

GilAcquire::GilAcquire() {
  orStay([this] { state = PyGILState_Ensure(); });
}

} // namespace costate::python

NB_MODULE(_core, module) {
  using namespace costate::python;
  nanobind::set_leak_warnings(false); // at exit, modules keep what they like
  Py_AtExit([] { pythonHasEnded = true; });
  module.attr("__version__") = COSTATE_VERSION;
  bindErrors(module);
  bindTypes(module);
  bindDevices(module);
  bindArrays(module);
  bindKernels(module);
  bindTrace(module);
  bindTape(module);
  bindTensors(module);
  bindDistributed(module);
  bindXla(module);
}
