#pragma once
/// One function of the LLVM dialect, with structured control flow, as one of
/// SPIR-V.
///
/// Integers of less than 32 bits, but for i1, are i32 whose other bits are 0;
/// so are the 64 bits of those between. Global pointers are i64. Shared ones
/// are bytes in the memory of the block, private ones in a variable, as i32.

#include "conversion/LLVMToSPIRV/SpirvModule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace costate::conversion {

/// A shared pointer among global ones: these are never as high.
constexpr int64_t sharedTagShift = 48, sharedTag = 0x5afe;

/// `i1 (i1)`: what it is given, and nobody may know.
constexpr const char *opaqueName = "costate_device_opaque";
/// Of compiler/DeviceDivision.c.
constexpr const char *quotientPrefix = "costate_device_div_";

/// Spaces whose addresses are those of the device. Tables of constants are
/// there as well.
constexpr unsigned constantSpace = 4;
inline bool isGlobal(unsigned space) {
  return space <= 1 || space == constantSpace;
}

inline unsigned spaceOf(mlir::Value pointer) {
  return mlir::cast<mlir::LLVM::LLVMPointerType>(pointer.getType())
      .getAddressSpace();
}

/// Of an i32, which local memory is made of.
constexpr unsigned wordBytes = 4;

/// What functions start with that are operations of subgroups.
constexpr const char *subgroupPrefix = "costate_subgroup_";

/// Where global variables in shared memory start.
using SharedLayout = llvm::StringMap<uint64_t>;

class Translator {
public:
  Translator(SpirvModule &module, const SharedLayout &shared,
             mlir::LLVM::LLVMFuncOp from);

  /// Emits an error at what has no counterpart.
  mlir::LogicalResult run();

private:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using Operation = mlir::Operation;

  /// Private memory.
  struct Variable {
    Value pointer;       ///< to an array
    Type element;        ///< of the array
    unsigned bytes = 0;  ///< of an element, as the program counts
    uint64_t offset = 0; ///< of this part of it
  };
  /// Where an address is private memory.
  struct Place {
    const Variable *variable;
    Value bytes; ///< i32
  };
  /// Bits of a word, and a mask of the others.
  struct Part {
    Value own, others;
  };

  // Types and constants.
  Type typeOf(Type type);
  Type wordOf(unsigned bits);
  Value integer(Type type, llvm::APInt value);
  Value i32(int64_t value);
  Value i64(int64_t value);
  Value zeroOf(Type type);
  Value constantOf(Type type, mlir::Attribute value);

  // Numbers.
  static unsigned bitsOf(Value value);
  static bool isNarrow(unsigned bits);
  Value masked(Value word, unsigned bits);
  Value extended(Value word, unsigned bits);
  Value widened(Value number, Type to);
  Value resized(Value word, Type to);
  Value truncated(Value value, unsigned bits);
  Value asBool(Value word);
  Value select(Value condition, Value yes, Value no);
  Value bitcast(Value value, Type to);
  Value unknown(Value half);
  Value exactly(Operation *op);
  Value hiddenExtremum(Value number, Value value, Value other);
  mlir::LogicalResult integerOp(Operation *op);
  mlir::LogicalResult floatOp(Operation *op);
  mlir::LogicalResult boolOp(Operation *op);
  mlir::LogicalResult castOp(Operation *op);
  mlir::LogicalResult compareInts(mlir::LLVM::ICmpOp op);
  mlir::LogicalResult compareFloats(mlir::LLVM::FCmpOp op);
  mlir::LogicalResult mathOp(Operation *op);

  // Threads.
  mlir::LogicalResult gpuIntrinsic(mlir::LLVM::CallIntrinsicOp op);
  mlir::LogicalResult subgroupCall(mlir::LLVM::CallOp op, llvm::StringRef name);
  void needSubgroups(mlir::spirv::Capability capability);
  Value isEmptyGrid();
  Value opaque(Value condition);
  Value laneOrZero(Type type);
  Value perLane(Value number);
  Value builtIn(llvm::StringRef name);
  Value blockThreads();
  void barrier(mlir::spirv::Scope scope);

  // Memory.
  void prepareVariables();
  void addVariable(mlir::LLVM::AllocaOp memory);
  void addStack(llvm::ArrayRef<mlir::LLVM::AllocaOp> parts);
  Variable variableOf(uint64_t bytes, Type element, unsigned elementBytes);
  mlir::FailureOr<Place> placeOf(Value pointer, Operation *user);
  Value at(const Place &place, Value element);
  Value joined(Value low, Value high, Type type);
  std::pair<Value, Value> halves(Value value);
  Value shiftOf(Value bytes);
  Value partOf(Value word, Value bytes, Type type);
  Part placed(Value value, Value bytes, Type type);
  Value loadPrivate(const Place &place, Type type);
  void storePrivate(const Place &place, Value value, Type type);
  Value loadShared(Value bytes, Type type);
  void storeShared(Value bytes, Value value, Type type);
  Value sharedWord(Value bytes, unsigned index);
  Value loadSharedWord(Value bytes, unsigned index);
  void storeSharedWord(Value bytes, unsigned index, Value word);
  Value divided(Value bytes, unsigned log);
  mlir::spirv::MemoryAccessAttr sharedAccess();
  Value loadGlobal(Value address, Type type, mlir::LLVM::LoadOp op);
  Value loadUnaligned(Value address, Type type);
  void storeGlobal(Value address, Value value, Type type,
                   mlir::LLVM::StoreOp op);
  Value globalPointer(Value address, Type type);
  mlir::spirv::MemoryAccessAttr access(bool isVolatile);
  mlir::LogicalResult addressOp(Operation *op);
  mlir::FailureOr<Value> tableOf(mlir::LLVM::AddressOfOp op);
  mlir::LogicalResult offsetOp(mlir::LLVM::GEPOp op);
  mlir::LogicalResult load(mlir::LLVM::LoadOp op);
  mlir::LogicalResult store(mlir::LLVM::StoreOp op);
  Value exchanged(Value number);
  mlir::LogicalResult update(mlir::LLVM::AtomicRMWOp op);
  mlir::LogicalResult exchange(mlir::LLVM::AtomicCmpXchgOp op);
  mlir::LogicalResult fence(mlir::LLVM::FenceOp op);
  mlir::FailureOr<Value> atomicPointer(Value pointer, Type type, Operation *op);
  mlir::spirv::MemorySemantics semantics(mlir::LLVM::AtomicOrdering order);

  // Control flow.
  mlir::LogicalResult block(mlir::Block &from);
  mlir::LogicalResult operation(Operation &op);
  mlir::LogicalResult branch(mlir::scf::IfOp op);
  mlir::LogicalResult branch(mlir::scf::IndexSwitchOp op);
  mlir::LogicalResult choose(Operation *op, Value flag,
                             llvm::ArrayRef<int64_t> cases,
                             llvm::MutableArrayRef<mlir::Region> regions,
                             mlir::Region &rest,
                             llvm::SmallVectorImpl<Value> &results);
  mlir::LogicalResult selection(mlir::Location loc, Value condition,
                                mlir::TypeRange types,
                                llvm::function_ref<mlir::LogicalResult(
                                    bool, llvm::SmallVectorImpl<Value> &)>
                                    side,
                                llvm::SmallVectorImpl<Value> &results);
  mlir::LogicalResult region(mlir::Region &from,
                             llvm::SmallVectorImpl<Value> &results);
  mlir::LogicalResult loop(mlir::scf::WhileOp op);
  Value launchWord(LaunchWord k);
  void countPass(Operation *code);
  mlir::LogicalResult tellCut();
  mlir::LogicalResult call(mlir::LLVM::CallOp op);

  Value get(Value value) { return values.lookup(value); }
  Value operand(Operation *op, unsigned k) { return get(op->getOperand(k)); }
  mlir::LogicalResult set(Operation *op, Value value);
  mlir::LogicalResult none(Operation *op);

  SpirvModule &module;
  const SharedLayout &shared;
  mlir::LLVM::LLVMFuncOp from;
  mlir::ImplicitLocOpBuilder b;
  mlir::DataLayout layout;
  llvm::DenseMap<Value, Value> values;
  /// Results of operations with several, which have no value.
  llvm::DenseMap<Value, llvm::SmallVector<Value, 2>> parts;
  llvm::DenseMap<Operation *, Variable> variables;
  std::optional<Variable> stack;
};

} // namespace costate::conversion
