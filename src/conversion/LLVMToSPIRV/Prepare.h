#pragma once
/// LLVM IR of kernels to LLVM IR that has a counterpart in SPIR-V.

#include "conversion/KernelForm.h"

namespace llvm {
class Function;
class Module;
class TargetMachine;
} // namespace llvm

namespace costate {
struct VulkanFeatures;
}

namespace costate::conversion {

/// Expects kernels that everything with pointers is inlined into, optimised for
/// `machine`. Gives each pointer the address space of what it points to, where
/// all that is left in none is global, and replaces switches, vectors, copies
/// of memory, the ends of threads and what atomics a device lacks.
void prepareForSpirv(llvm::Module &module, llvm::TargetMachine &machine,
                     const VulkanFeatures &features);

/// Replaces intrinsics by what SPIR-V has, and takes hints out. Whether it has
/// changed anything: what replaces one may have others.
bool expandIntrinsics(llvm::Function &function);

/// Quotients and roots of f32 are rounded correctly where a device does not do
/// so, unless they may be approximate.
void roundFloats(llvm::Function &function, const VulkanFeatures &features);

/// The same for atomics alone: those that are left are of 32 and 64 bits.
void expandAtomics(llvm::Module &module, const VulkanFeatures &features);

} // namespace costate::conversion
