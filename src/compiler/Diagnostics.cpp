#include "compiler/Diagnostics.h"

#include "ir/Source.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace costate::compiler {

DiagnosticText::DiagnosticText(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        append(diagnostic);
        return success();
      }) {}

static const char *nameOf(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note: ";
  case DiagnosticSeverity::Warning:
    return "warning: ";
  case DiagnosticSeverity::Remark:
    return "remark: ";
  case DiagnosticSeverity::Error:
    return "error: ";
  }
  llvm_unreachable("unknown severity");
}

void DiagnosticText::append(Diagnostic &diagnostic) {
  llvm::raw_string_ostream stream(text);
  if (!text.empty())
    stream << '\n';
  if (FileLineColLoc place = ir::sourceOf(diagnostic.getLocation()))
    stream << place.getFilename().getValue() << ':' << place.getLine() << ':'
           << place.getColumn() << ": ";
  stream << nameOf(diagnostic.getSeverity()) << diagnostic.str();
  for (Diagnostic &note : diagnostic.getNotes())
    append(note);
}

std::string DiagnosticText::take(const char *otherwise) {
  return text.empty() ? otherwise : std::exchange(text, "");
}

} // namespace costate::compiler
