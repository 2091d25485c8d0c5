#pragma once
/// What code for GPUs is made of, whatever its form: a kernel for each device
/// function, and all that they call.

#include "base/GpuShape.h"
#include "base/Result.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate::compiler {

/// A function with this attribute, a number N, and the signature
/// `void (ptr words, i64 thread, i64 threads, ptr memory)` is called by every
/// thread of a launch, with the N words of the launch, which are global
/// addresses or plain numbers, and the memory of its block.
constexpr const char *deviceWordsAttr = "costate-words";
/// On one that runs in tiles (base/DeviceTape.h): a second kernel,
/// SYMBOL.shared, has its tapes in shared memory.
constexpr const char *deviceTilesAttr = "costate-tiles";

/// The same for arrays that the work items of a block share, and a number: how
/// many work items these are.
constexpr const char *deviceSharedAttr = "costate-shared";
constexpr const char *deviceBlockDimAttr = "costate-block-dim";

/// Memory that the threads of a block share, in the address spaces of NVPTX,
/// which all GPUs have here.
constexpr unsigned sharedSpace = 3;

/// What a launch gives each block; without a size.
constexpr const char *blockMemoryName = "costate_block_memory";

/// What differs from one form of code to another.
struct GpuForm {
  std::string gpus; ///< `NVIDIA GPUs`
  unsigned largestWords;
  llvm::StringRef library; ///< bitcode of what kernels call
  GpuShape shape;
  /// Of the Vulkan library: which lanes run together follows from the code.
  bool reconverges = false;
  /// The intrinsic `fma` is one operation.
  bool fusesFloats = true, fusesDoubles = true;
  /// Integers of 64 bits are divided by operations.
  bool dividesLongs = true;
  /// Functions of anything but numbers are inlined; those are by the driver, so
  /// loops that call some are not unrolled.
  bool callsScalarOnly = false;
  /// The assembler unrolls loops that LLVM has unrolled, unless it is told not
  /// to.
  bool unrollsAgain = false;
};

/// Of the device functions of `module`.
unsigned mostWords(const llvm::Module &module);

/// Makes a module for the host one for a GPU, with an optimised kernel
/// `deviceSymbol(name)` per device function `name`. Kernels take their words by
/// value. Bits depend neither on the machine nor on what is inlined.
Result<> makeKernels(llvm::Module &module, llvm::TargetMachine &machine,
                     const GpuForm &form);

} // namespace costate::compiler
