#pragma once
/// A SPIR-V module while it is being made: what its functions share.

#include "base/VulkanChip.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace costate::conversion {

/// Specialisation constants: what a launch decides.
enum SpirvConstant : unsigned {
  BlockThreadsConstant, ///< x of the size of a block; the others are 1
  BlockWordsConstant,   ///< i32 of block memory, besides what the code needs
};

/// Stands for a length of the array of block memory that specialisation
/// decides.
constexpr unsigned unknownLength = 0x7ff5ec1d;

/// What a launch pushes.
enum LaunchWord : unsigned { WordsOfLaunch, CutLoops, Tables };

class SpirvModule {
public:
  SpirvModule(mlir::MLIRContext *context, const VulkanFeatures &features);

  const VulkanFeatures &features() const { return has; }
  mlir::OpBuilder atEnd();
  mlir::spirv::ModuleOp op() { return *module; }

  void need(mlir::spirv::Capability capability);
  void need(mlir::spirv::Extension extension);
  /// What values of `type` need.
  void needType(mlir::Type type);
  /// Of memory of somebody else.
  void needStorage(mlir::Type type);

  /// A vector of three i32.
  mlir::spirv::GlobalVariableOp builtIn(llvm::StringRef name);
  /// The addresses of the words of a launch, of a u32 that is not 0 once loops
  /// were cut, and of the tables, as i64.
  mlir::spirv::GlobalVariableOp launch();
  /// Passes through loops that the thread has counted, an i32 of its own.
  mlir::spirv::GlobalVariableOp passes();
  /// Threads of a block, an i32.
  mlir::spirv::SpecConstantOp blockThreads();
  /// Where a table of constants starts among all of them.
  uint64_t placeTable(llvm::StringRef name, llvm::StringRef bytes);
  /// What shall be at the address of the tables.
  llvm::StringRef tables() const { return tableBytes; }
  /// An array of i32 in the memory of a block.
  mlir::spirv::GlobalVariableOp blockMemory();

  /// A function that a launch starts, by its name.
  void addEntryPoint(mlir::spirv::FuncOp function) {
    entries.push_back(function);
  }

  /// What the code needs and the device does not have; empty: it has all.
  std::string lacking() const;
  /// After the last function.
  mlir::OwningOpRef<mlir::spirv::ModuleOp> finish();

private:
  mlir::spirv::GlobalVariableOp global(llvm::StringRef name, mlir::Type type,
                                       mlir::spirv::StorageClass storage);
  mlir::spirv::SpecConstantOp constant(llvm::StringRef name,
                                       SpirvConstant number);
  void addEmptyFunction();
  void addModes(mlir::spirv::FuncOp function);

  VulkanFeatures has;
  mlir::OwningOpRef<mlir::spirv::ModuleOp> module;
  llvm::SetVector<mlir::spirv::Capability> capabilities;
  llvm::SetVector<mlir::spirv::Extension> extensions;
  llvm::MapVector<llvm::StringRef, mlir::spirv::GlobalVariableOp> globals;
  llvm::SmallVector<mlir::spirv::FuncOp> entries;
  llvm::StringMap<uint64_t> tableStarts;
  std::string tableBytes;
  mlir::spirv::SpecConstantOp threads;
};

} // namespace costate::conversion
