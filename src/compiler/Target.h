#pragma once
/// LLVM IR to an object file for the processor that this process runs on.

#include "base/Result.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate::compiler {

/// What compiled code may use of this machine.
struct Host {
  std::string triple, cpu, features;
  /// Of functions without vectors: where two selections ask for one comparison,
  /// AVX-512 takes flags and several bytes for it, AVX2 one instruction.
  std::string scalarFeatures;
  std::string maths; ///< see convert-kernel-to-llvm
  bool hasFma = false;
  unsigned vectorBits = 128; ///< preferred width of vectors
  bool isQuick = false;      ///< LLVM takes little time, and its code more
};

const Host &host();

using TargetMachinePointer =
    std::unique_ptr<llvm::TargetMachine, void (*)(llvm::TargetMachine *)>;

/// For one compilation at a time; the next one gets what it knows of the
/// processor.
TargetMachinePointer borrowTargetMachine();

/// Makes the functions of `module` functions for this machine.
void setAttributes(llvm::Module &module);

/// Optimises `module` for `machine`.
Result<> optimise(llvm::Module &module, llvm::TargetMachine &machine);

/// The bytes of an object file.
Result<std::string> emitObject(llvm::Module &module,
                               llvm::TargetMachine &machine);

} // namespace costate::compiler
