#pragma once
/// What the compiler asks a target. Everything that differs from one to another
/// is an answer here, so that nobody compares their names.

#include "base/GpuShape.h"
#include "base/Result.h"
#include "compiler/Compiler.h"
#include "compiler/targets/Targets.h"

#include "mlir/IR/Operation.h"
#include "llvm/IR/Module.h"

#include <memory>
#include <optional>
#include <string>

namespace mlir {
class OpPassManager;
}

namespace costate::compiler {

/// Those of each folder.
namespace targets {
#define COSTATE_TARGET(name) const TargetKind &name();
#include "compiler/targets/Targets.def"
} // namespace targets

/// Code of a device.
struct Image {
  std::string bytes;
  const char *extension = ""; ///< of files that hold it
};

/// Why an operation cannot be part of a kernel, and what can.
struct Fault {
  std::string text, wayOut;
};

class TargetBackend {
public:
  virtual ~TargetBackend() = default;

  /// How threads run together; null: the host runs ranges in loops.
  virtual const GpuShape *gpu() const { return nullptr; }
  /// From kernel IR to the LLVM dialect.
  virtual void addPasses(mlir::OpPassManager &passes,
                         const Options &options) const = 0;
  /// What `op` asks for that the target does not have.
  virtual std::optional<Fault> faultOf(mlir::Operation *) const {
    return std::nullopt;
  }
  /// Whether device functions are code of another processor than the host's.
  virtual bool hasImage() const { return false; }
  /// That code; `device` has these functions, and what they call, optimised for
  /// nobody. Only if it has an image.
  virtual Result<Image> emit(std::unique_ptr<llvm::Module> device) const;
  /// The last change to code of the host.
  virtual void finish(llvm::Module &) const {}
};

} // namespace costate::compiler
