#include "bindings/Bindings.h"

#include <cxxabi.h>
#include <unistd.h>

namespace costate::python {

/// Before 3.14, Python ends threads that want to run when it has ended.
template <class F> static void orStay(F take) {
  try {
    take();
  } catch (const abi::__forced_unwind &) {
    for (;;)
      pause();
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
  module.attr("__version__") = COSTATE_VERSION;
  bindErrors(module);
  bindTypes(module);
  bindDevices(module);
  bindArrays(module);
  bindKernels(module);
  bindTrace(module);
  bindTape(module);
}
