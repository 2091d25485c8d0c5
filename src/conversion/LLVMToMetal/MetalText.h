#pragma once
/// A program in the Metal Shading Language while it is being written: what its
/// functions share.

#include "conversion/LLVMToSPIRV/Imported.h"

#include <string>

namespace costate::conversion {

class MetalText {
public:
  explicit MetalText(const SharedLayout &shared) : shared(shared) {}

  /// Where a table of constants starts among all of them.
  uint64_t placeTable(llvm::StringRef name, llvm::StringRef bytes);
  void addFunction(const std::string &head, const std::string &body);
  void addKernel(const std::string &name, const std::string &body);
  /// f64 is computed, of integers.
  void needDoubles() { hasDoubles = true; }

  /// After the last function. `blockBytes`: of shared memory that is not up to
  /// launches.
  std::string finish(uint64_t blockBytes) const;

  const SharedLayout &shared;

private:
  std::string tables() const;

  llvm::StringMap<uint64_t> tableStarts;
  std::string tableContents, heads, bodies;
  bool hasDoubles = false;
};

} // namespace costate::conversion
