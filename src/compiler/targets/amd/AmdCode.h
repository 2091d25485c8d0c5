#pragma once
/// What tests compile for AMD GPUs, and LLVM's assembler.

#include "compiler/DeviceIr.h"
#include "compiler/targets/amd/CodeObject.h"
#include "compiler/targets/amd/Disassembly.h"

#include <string>

namespace costate::compiler {

/// One of each kind that code is made for.
constexpr const char *amdChips[] = {"gfx90a", "gfx942", "gfx1030", "gfx1100",
                                    "gfx1201"};

/// LLVM IR with device functions.
Result<std::string> emitForAmd(const std::string &ir, const std::string &chip);

/// The bytes of all functions of a code object, one after the other.
std::string instructionsOf(const std::string &codeObject);

/// The bytes of what `text` says for `chip`; what the assembler says if it
/// refuses that.
Result<std::string> assembleForAmd(const std::string &text,
                                   const std::string &chip);

} // namespace costate::compiler
