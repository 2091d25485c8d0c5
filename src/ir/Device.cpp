/// Functions of a device.

#include "ir/Device.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "ir/DeviceOps.cpp.inc"
