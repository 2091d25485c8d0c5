#pragma once
/// Masked accesses to eight bytes, around a defect of LLVM.

#include "llvm/IR/Function.h"

namespace costate::compiler {

/// With AVX-512, eight bytes are loaded and stored under a mask of sixteen
/// bits, whose upper half must be 0. LLVM 22 clears it by KMOVB, and takes that
/// for a copy of the register where either value is spilled
/// (X86InstrInfo::isCopyInstr), so that eight more bytes are stored. Masks of
/// sixteen bits come from a general register here.
void widenByteMasks(llvm::Function &function);

} // namespace costate::compiler
