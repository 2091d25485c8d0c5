#pragma once
/// What MLIR's parser cannot be given.

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace costate::ir {

/// A place in a text, and what is wrong there.
struct TextFault {
  unsigned line; ///< from 1
  std::string text;
};

/// The first of what would make the parser or walks over its result crash:
/// bytecode, too many open brackets, or a name that is used in front of the
/// region that defines it. (If that region does not parse, MLIR frees it while
/// the operation with the use is alive.) Everything else is left to the parser.
std::optional<TextFault> faultOf(llvm::StringRef text);

} // namespace costate::ir
