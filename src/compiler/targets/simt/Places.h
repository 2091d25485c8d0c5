#pragma once
/// Where lanes of a warp wait for each other, for the host as a GPU.

namespace llvm {
class Module;
} // namespace llvm

namespace costate::compiler {

/// Makes calls of `costate_device_warp_max` tell their place, so that lanes
/// that meet at different ones are found. For optimised code: what comes
/// after it copies calls, and the copies are one place.
void tellPlaces(llvm::Module &module);

} // namespace costate::compiler
