#include "syntax/Diagnostic.h"

namespace costate::syntax {

std::string toString(Loc loc) {
  std::string text = std::string(loc.file) + ":" + std::to_string(loc.line);
  return loc.column ? text + ":" + std::to_string(loc.column) : text;
}

Failure badKernel(Loc loc, const std::string &text, const std::string &note) {
  return {ErrorCode::BadKernel,
          toString(loc) + ": error: " + text + "\nnote: " + note};
}

} // namespace costate::syntax
