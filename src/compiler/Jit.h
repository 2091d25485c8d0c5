#pragma once
/// Object files become code that runs in this process.

#include "base/Result.h"
#include "code/KernelCode.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class MemoryBuffer;
}

namespace costate::compiler {

struct LoadedCode {
  runtime::Entry entry;
  std::map<std::string, void *> addresses; ///< of the other symbols
  std::shared_ptr<void> owner;             ///< unloads the code when it dies
};

/// Links `object` and finds `entry` and `others` in it. Safe to call from any
/// thread.
Result<LoadedCode> load(std::unique_ptr<llvm::MemoryBuffer> object,
                        const std::string &entry,
                        const std::vector<std::string> &others = {});

/// The function that code calls by this name; null if there is none.
void *findFunction(const std::string &name);

} // namespace costate::compiler
