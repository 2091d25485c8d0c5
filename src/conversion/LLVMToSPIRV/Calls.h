#pragma once
/// Functions that become operations of SPIR-V when they are called.

#include "conversion/LLVMToSPIRV/Translation.h"

namespace costate::conversion {

/// `i1 (i1)`: what it is given, and nobody may know.
constexpr const char *opaqueName = "costate_device_opaque";
/// Of device/DeviceDivision.c.
constexpr const char *quotientPrefix = "costate_device_div_";
/// What functions start with that are operations of subgroups.
constexpr const char *subgroupPrefix = "costate_subgroup_";

/// `name`: after the prefix.
mlir::LogicalResult subgroupCall(Translation &t, mlir::Operation *op,
                                 llvm::StringRef name);

} // namespace costate::conversion
