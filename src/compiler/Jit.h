#pragma once
/// Object files become code that runs in this process.

#include "base/Result.h"
#include "runtime/KernelCode.h"

#include <memory>
#include <string>

namespace llvm {
class MemoryBuffer;
}

namespace costate::compiler {

struct LoadedCode {
  runtime::Entry entry;
  std::shared_ptr<void> owner; ///< unloads the code when it dies
};

/// Links `object` and finds `symbol` in it. Safe to call from any thread.
Result<LoadedCode> load(std::unique_ptr<llvm::MemoryBuffer> object,
                        const std::string &symbol);

/// The function that code calls by this name; null if there is none.
void *findFunction(const std::string &name);

} // namespace costate::compiler
