#pragma once
/// Devices that cut loops (VulkanFeatures::endsLongLoops): a thread counts its
/// passes through loops, and a kernel tells the host once one has been cut.

#include "conversion/LLVMToSPIRV/Translation.h"

namespace costate::conversion {

/// At the start of a kernel.
void startPasses(Translation &t);
/// Counts a pass through `code`.
void countPass(Translation &t, mlir::Operation *code);
/// At the end of a function: whether a loop of the thread has been cut; null:
/// nobody asks.
mlir::Value isCut(Translation &t);
/// Where a loop has been cut.
void tellCut(Translation &t);

} // namespace costate::conversion
