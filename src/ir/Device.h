#pragma once
/// Functions of a device; the op is documented in DeviceOps.td.

#include "ir/Kernel.h"

#define GET_OP_CLASSES
#include "ir/DeviceOps.h.inc"
