// How the threads of the host as a GPU add up.

#include "device/DeviceSums.c"
