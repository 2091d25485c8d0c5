/// What device code calls for its tapes, on the host as a GPU.

#include "runtime/gpu/DeviceSort.c"
#include "runtime/gpu/DeviceTape.c"
