/// What device code calls for its tapes, on the host as a GPU.

#include "device/DeviceSort.c"
#include "device/DeviceTape.c"
