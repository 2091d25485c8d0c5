#pragma once
/// Lowering of one kernel: control flow and variables to SSA form.

#include "lowering/Analysis.h"
#include "lowering/Guards.h"
#include "lowering/Overflow.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace costate::lowering {

class Lowering {
public:
  /// `functions`: those that it calls. `debug`: integers that overflow are
  /// reported.
  Lowering(const Kernel &kernel, mlir::ModuleOp module,
           llvm::ArrayRef<mlir::func::FuncOp> functions, bool debug = false);
  ir::KernelOp run();
  mlir::func::FuncOp runFunction(llvm::StringRef name);

private:
  using Body = llvm::function_ref<void()>;

  /// A block and what its operators guard.
  struct Run {
    const Block &block;
    Guards guards;
  };
  /// The flags that jumps set here.
  struct Flags {
    VarId breakFlag = syntax::none;
    VarId continueFlag = syntax::none;
    VarId returnFlag = syntax::none;
  };

  // Blocks.cpp
  Run prepare(const Block &block);
  void lower(const Block &block);
  void lower(const Run &run, size_t begin, size_t end);
  void lowerRest(const Run &run, size_t at, size_t end);
  void lowerGuarded(const Run &run, size_t at);
  void emitGuarded(const Run &run, size_t at);
  void lower(const Statement &statement);
  void jump(const Statement &statement);
  void define(const Statement &statement, mlir::Value value);
  void assign(const Statement &statement);
  mlir::Value extent(const Statement &statement);
  mlir::Value result(const Statement &statement);
  void store(const Statement &statement);
  void message(const Statement &statement);
  void update(const Statement &statement);
  void updateOnly(const Statement &statement);
  mlir::Value fetch(const Statement &statement);
  mlir::Value load(const Statement &statement);
  mlir::Value loadLocal(const Statement &statement);
  void declareLocal(const Statement &statement);
  void storeLocal(const Statement &statement);
  mlir::Value updateShared(const Statement &statement);
  void group(const Statement &statement);
  mlir::Value call(const Statement &statement);
  mlir::Value custom(const Statement &statement);
  void fill(mlir::Region &region, const Block &block,
            llvm::ArrayRef<ValueId> arguments, llvm::ArrayRef<ValueId> results,
            mlir::Location loc);
  mlir::Value pure(const Statement &statement);

  // Control.cpp
  void lowerIf(const Statement &statement);
  /// What the user asks of a loop.
  void mark(mlir::Operation *loop, const Statement &statement);
  void lowerFor(const Statement &statement);
  void lowerWhile(const Statement &statement);
  void lowerRange(const Statement &statement, mlir::Value skipped = {});
  llvm::SmallVector<mlir::Type> foldedBy(const Statement &range);
  void lowerCountedFor(const Statement &statement, mlir::Value count);
  void lowerLeavableFor(const Statement &statement, mlir::Value count);
  void iteration(const Statement &statement, mlir::Value k);
  Jumps leaving(const Statement &statement);
  void enterIteration(const Statement &statement);
  mlir::Value condition(const Statement &statement);
  std::vector<VarId> carriedBy(const Statement &statement);
  Flags enterLoop(const Statement &statement);
  void branch(mlir::Location loc, mlir::Value condition,
              llvm::ArrayRef<VarId> assigned, Body then, Body otherwise);

  // Serial.cpp
  void lowerSerial(const Block &block);
  void lowerAfterReturn(const Run &run, size_t first);
  void lowerSegment(const Run &run, size_t begin, size_t end);
  void findLastUses(const Statement &statement, uint32_t part);
  std::vector<VarId> variablesAfter(const Run &run, size_t begin, size_t end);
  std::vector<ValueId> valuesAfter(const Run &run, size_t begin, size_t end);

  // Values.cpp
  mlir::Location at(Loc loc);
  mlir::Location at(const Statement &statement) { return at(statement.loc); }
  mlir::Value i64(mlir::Location loc, int64_t value);
  mlir::Value boolean(mlir::Location loc, bool value);
  mlir::Value negate(mlir::Location loc, mlir::Value value);
  /// Whether none of the flags that `jumps` sets is set.
  mlir::Value goesOn(mlir::Location loc, Jumps jumps);
  void clear(VarId flag, mlir::Location loc);
  DType typeOfVariable(VarId variable) const;
  llvm::SmallVector<mlir::Value> valuesOf(llvm::ArrayRef<ValueId> ids,
                                          size_t first = 0);
  llvm::SmallVector<mlir::Value> currentOf(llvm::ArrayRef<VarId> ids,
                                           mlir::Location loc);
  void setCurrent(llvm::ArrayRef<VarId> ids, mlir::ValueRange values);

  const Kernel &kernel;
  mlir::ModuleOp module;
  llvm::ArrayRef<mlir::func::FuncOp> functions;
  bool debug; ///< and may print here
  SourceLines lines;
  Analysis analysis;
  mlir::OpBuilder b;
  llvm::SmallVector<mlir::Value> arguments;
  std::vector<mlir::Value> values; ///< of each ValueId
  std::vector<mlir::Value> locals; ///< private arrays
  /// Of each variable and flag here; after them, of the slots of Serial.cpp.
  std::vector<mlir::Value> current;
  std::vector<DType> slotTypes;
  std::vector<uint32_t> position; ///< scratch space of Guards
  Flags flags;
  /// The last statement of the body that uses a value or variable, if the
  /// kernel has a serial RETURN.
  std::vector<uint32_t> lastUseOfValue, lastUseOfVariable;
};

} // namespace costate::lowering
