#pragma once
/// Diagnostics as text for the user.

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace costate::compiler {

/// While it lives, collects the diagnostics of a context as lines
/// `file:line:column: error: ...`, notes below their error.
class DiagnosticText {
public:
  explicit DiagnosticText(mlir::MLIRContext *context);

  /// What was collected, without a final line break; `otherwise` if nothing.
  std::string take(const char *otherwise);

private:
  void append(mlir::Diagnostic &diagnostic);

  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace costate::compiler
