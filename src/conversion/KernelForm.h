#pragma once
/// What kernels are like on GPUs whose code is not NVIDIA's.

namespace llvm {
class Function;
}

namespace costate::conversion {

/// The address space of private memory.
constexpr unsigned privateSpace = 5;

/// A kernel with all that it calls in it ends, for a thread, where
/// `costate_device_exit` was called, or where nothing is to be reached.
void endThreadsByReturning(llvm::Function &kernel);

/// So that the passes of LLVM follow where private pointers go.
void markPrivate(llvm::Function &function);

} // namespace costate::conversion
