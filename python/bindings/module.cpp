#include "bindings/Bindings.h"

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
