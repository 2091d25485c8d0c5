/// Runs any pass on any text of kernel IR.

#include "compiler/Registration.h"
#include "ir/Text.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// Reads a file of which the parser can be given the whole.
static std::unique_ptr<llvm::MemoryBuffer> read(StringRef name) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(name, &error);
  if (!file) {
    llvm::errs() << error << "\n";
    return nullptr;
  }
  auto fault = costate::ir::faultOf(file->getBuffer());
  if (!fault)
    return file;
  llvm::errs() << name << ":" << fault->line << ": error: " << fault->text
               << "\n";
  return nullptr;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  costate::compiler::registerAllDialects(registry);
  costate::compiler::registerAllPasses();
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "costate-opt\n", registry);
  std::unique_ptr<llvm::MemoryBuffer> text = read(input);
  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> result =
      text ? openOutputFile(output, &error) : nullptr;
  if (!error.empty())
    llvm::errs() << error << "\n";
  if (!result)
    return EXIT_FAILURE;
  if (failed(MlirOptMain(result->os(), std::move(text), registry,
                         MlirOptMainConfig::createFromCLOptions())))
    return EXIT_FAILURE;
  result->keep();
  return EXIT_SUCCESS;
}
