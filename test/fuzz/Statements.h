#pragma once
/// Random statements: assignments, accesses, branches, loops and jumps.

#include "fuzz/Expressions.h"

#include <functional>

namespace costate::fuzz {

class Statements : protected Expressions {
protected:
  using Expressions::Expressions;

  /// `count` statements; what follows one that may jump is guarded.
  void statements(int count, int depth);
  void assign();
  void declareSome(int count);
  void declareLocal();
  /// Lets the values of variables reach memory.
  void sink();

  /// The flag of each jump that is allowed here, as a number of `variables`.
  struct Flags {
    int breaks = -1, continues = -1, returns = -1;
  };
  Flags flags;
  /// Flags that the statements of the current list may have raised.
  llvm::SmallVector<int> raised;

  int declareFlag();
  mlir::Value noneRaised(llvm::ArrayRef<int> among);
  /// An `if` around what `then` and `otherwise` emit, which may assign.
  void branch(mlir::Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);

  /// Emits a range, where serial code may; `rangePercent`: how often.
  std::function<void(int depth)> rangeHere;
  int rangePercent = 0;

  llvm::SmallVector<mlir::Value> counters; ///< indices of loops, i64
  mlir::Value common; ///< to be stored in a range; null: not any more

  using Carried = llvm::SmallVector<unsigned>;
  /// Makes constants of the variables that are not carried; returns which were
  /// assignable.
  std::vector<bool> freeze(const Carried &carried);
  void restore(const std::vector<bool> &assignable);

  /// A loop around `iteration`, which finds the index in `counters`.
  struct Bounds {
    mlir::Value lo, hi, step;
    int64_t bound = 0; ///< the index is less, and not negative; 0: not known
    bool isUnsigned = false;
  };
  Bounds normalBounds();
  /// Of a loop over the times of `array`; in an iteration, the time and the one
  /// that it makes.
  Bounds timeBounds(const Array &array);
  std::pair<mlir::Value, mlir::Value> timesOfIteration(const Array &array,
                                                       bool runsDown);
  void counted(const Bounds &bounds, llvm::function_ref<void()> iteration);

private:
  void statement(int depth);
  void body(int depth, int most);
  void count();
  void useWrapped(const Array &array, const Values &indices);
  void storeCommon(const Array &array);
  void write();
  void update(const Array &array);
  mlir::Value fetch(const Array &array, llvm::StringRef kind);
  void fetchOwn(const Array &array);
  void writeLocal();
  void storeLocal(const Local &local);
  void fillLocal(const Local &local);
  void shiftLocal(const Local &local);

  void inPlace();
  void readThenOverwrite();
  void ifStatement(int depth);
  void ifWithoutResults(int depth);
  void jump(int depth);
  void guarded(int count, int depth);

  Carried chooseCarried(int percent);
  Values currentOf(const Carried &carried);
  void setCurrent(const Carried &carried, mlir::ValueRange values);

  // Loops.
  void loop(int depth);
  void forLoop(int depth);
  void timeLoop(int depth);
  void longLoop();
  void leavableLoop(int depth);
  void whileLoop(int depth);
  Bounds anyBounds();
  mlir::Value smallCount();
  mlir::Value asCounter(mlir::Value induction);
  Array *timeIndexed();

  struct While;
  void before(While &loop, int depth);
  void after(While &loop, int depth);
  mlir::Value goesOn(While &loop);
  void chooseForwarded(While &loop);
  void emit(While &loop, int depth);
};

} // namespace costate::fuzz
