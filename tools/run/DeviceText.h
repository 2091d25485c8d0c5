#pragma once
/// The code of a kernel for a GPU, as text.

#include "compiler/Compiler.h"

#include <string>
#include <vector>

namespace costate::run {

/// What device code can be shown in: `ptx`, ...
std::vector<std::string> deviceLanguages();
/// For `ptx` sm_90, for `spirv` a device of Vulkan with most that SPIRV-Tools
/// know, for `metal` the only one.
std::string usualChip(const std::string &language);

/// Of `program` for `chip` (DeviceInfo::target): PTX, what SPIR-V
/// disassembles to, or Metal's language. BadFile: the chip is not one of
/// `language`.
Result<std::string> deviceText(compiler::Program &program,
                               compiler::Derivation derivation,
                               const std::string &language,
                               const std::string &chip);

} // namespace costate::run
