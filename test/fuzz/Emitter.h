#pragma once
/// What a random kernel is written with: typed values that are visible where
/// the builder stands, arrays and variables.

#include "fuzz/Memory.h"
#include "fuzz/Random.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <functional>

namespace costate::fuzz {

enum class Kind { F64, F32, I64, I32, Bool };
constexpr unsigned kindCount = 5;

inline bool isFloat(Kind kind) {
  return kind == Kind::F64 || kind == Kind::F32;
}

/// What the range, or the serial code, that is being written may do with an
/// array.
enum class Role {
  Own,   ///< load, store and update the elements that belong to a work item
  Write, ///< the same without loads
  Read,  ///< load any element
  Sum,   ///< add to any element
  Most,  ///< take minima, or maxima, or combine bits, of any element
  Common ///< store a value that all work items have in common, in one place
};

using Values = llvm::SmallVector<mlir::Value>;

struct Array {
  Kind kind; ///< of a value
  std::vector<int64_t> extents;
  mlir::Type element; ///< a narrow one of that kind; null: that of a value
  mlir::Value argument;
  bool isPermutation = false; ///< of 0 to extent - 1, never written
  bool isConstant = false;    ///< not written any more
  Role role = Role::Read;
  bool takesMaxima = false; ///< Most
  std::string bits;         ///< Most: takes no extrema, but and, or or xor
  /// Emits the indices of an element that belongs to the work item.
  std::function<Values()> own;
  mlir::Value column; ///< of an array of rank 2, if the work item owns it all
};

/// A value that statements assign; regions that assign it carry it.
struct Variable {
  Kind kind;
  mlir::Value current;
  bool isAssignable = true;
  bool isFlag = false; ///< assigned by jumps only
};

/// A private array that is visible.
struct Local {
  Kind kind;
  int64_t size;
  mlir::Value array;
};

class Emitter {
protected:
  Emitter(mlir::MLIRContext &context, uint64_t seed);

  mlir::Type typeOf(Kind kind);
  Kind kindOf(mlir::Value value);
  /// A place of its own for every operation, so that diagnostics have one.
  mlir::Location here();

  template <class Op, class... Arguments>
  mlir::Value make(Arguments &&...arguments) {
    return Op::create(b, here(), std::forward<Arguments>(arguments)...);
  }
  /// An operation with one result of the type of its first operand.
  mlir::Value named(llvm::StringRef name, mlir::ValueRange operands);

  mlir::Value integer(int64_t value, Kind kind = Kind::I64);
  mlir::Value real(double value, Kind kind = Kind::F64);
  mlir::Value boolean(bool value);
  /// A small number of few bits, so that equal constants are common.
  mlir::Value literal(Kind kind);

  /// Makes `value` an operand of later expressions.
  mlir::Value offer(mlir::Value value);
  /// Says that 0 <= value < bound.
  mlir::Value within(mlir::Value value, int64_t bound);
  /// What `within` has said, or 0.
  int64_t boundOf(mlir::Value value) const { return bounds.lookup(value); }
  /// A visible value or variable of `kind`; null if there is none.
  mlir::Value visible(Kind kind);
  /// A visible i64 that is certainly an index of an extent; null if there is
  /// none.
  mlir::Value visibleIndex(int64_t extent);

  unsigned declare(Kind kind, mlir::Value value);
  /// Restores, when it ends, what was visible when it began.
  class Scope {
  public:
    explicit Scope(Emitter &emitter);
    ~Scope();

  private:
    Emitter &emitter;
    std::array<size_t, kindCount> sizes;
    size_t variables, locals;
  };

  /// While it lives, nothing is visible.
  class Fresh {
  public:
    explicit Fresh(Emitter &emitter) : emitter(emitter) { swap(); }
    ~Fresh() { swap(); }

  private:
    void swap();

    Emitter &emitter;
    std::array<std::vector<mlir::Value>, kindCount> pools;
    std::vector<Array> arrays;
    std::vector<Variable> variables;
    std::vector<Local> locals;
  };

  /// Whether the kernel is as large as it should become.
  bool isFull() const { return line >= most; }

  mlir::OpBuilder b;
  Random random;
  unsigned most = 0; ///< operations, roughly
  std::vector<Array> arrays;
  std::vector<Variable> variables;
  std::vector<Local> locals;

private:
  std::array<std::vector<mlir::Value>, kindCount> pools;
  llvm::DenseMap<mlir::Value, int64_t> bounds;
  mlir::StringAttr file;
  unsigned line = 0;
};

} // namespace costate::fuzz
