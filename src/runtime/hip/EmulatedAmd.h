#pragma once
/// An emulator of AMD's instruction set: code objects run in a process of their
/// own, on memory of this one. For tests.

#include "base/Result.h"
#include "runtime/gpu/Driver.h"

#include <memory>
#include <string>

namespace costate::runtime::hip {

/// `chip` as `gfx942`. NoDevice: there is no such chip, or COSTATE_AMD_EMULATOR
/// names no command that starts the emulator (test/emulator).
Result<std::shared_ptr<gpu::Driver>> createEmulatedAmd(const std::string &chip);

} // namespace costate::runtime::hip
