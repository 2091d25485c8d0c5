#pragma once
/// Forward values as the reverse sweep sees them.

#include "sizing/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <functional>
#include <memory>

namespace costate::autodiff {

class Scope;

/// What a gradient has of records so far.
struct Records {
  sizing::Planner planner;
  int64_t count = 0;
};

/// All scopes of a work item or of the serial code. What they are given is
/// decided when all that they need is known.
class Scopes {
public:
  explicit Scopes(Records &records) : records(records) {}

  template <class... Arguments> Scope &open(Arguments &&...arguments) {
    all.push_back(std::make_unique<Scope>(*this, arguments...));
    return enter(*all.back());
  }
  /// Runs `give` in the end, after that of all blocks in it.
  void atEnd(std::function<void()> give) { endings.push_back(std::move(give)); }
  /// Says that iterations run again in the reverse sweep, as copies.
  void addCopies(const mlir::IRMapping &copies);
  /// Makes the plan, and gives everybody what it says.
  void finish();

  Records &records;

private:
  friend Scope;
  Scope &enter(Scope &scope);
  double timesOf(mlir::Value value) const;
  bool hasTwin(mlir::Operation *op) const;
  void tellBehind() const;

  std::vector<std::unique_ptr<Scope>> all;
  std::vector<std::function<void()>> endings;
  llvm::DenseMap<mlir::Block *, Scope *> byBlock;
  llvm::DenseMap<mlir::Value, mlir::Value> originals; ///< of what runs again
  sizing::SavePlan plan;
};

/// The reverse of one execution of a forward block. It hands out the values of
/// that block and of the enclosing ones; how it gets its own (from the record
/// that the forward block pushes, or recomputed from it) is decided in the end.
class Scope {
public:
  /// The outermost block of a work item or of the serial code: its values are
  /// still in scope.
  Scope(Scopes &scopes, mlir::Block &forward)
      : forward(forward), scopes(scopes) {}
  Scope(Scopes &scopes, mlir::Block &forward, Scope &parent,
        mlir::OpBuilder &builder);
  Scope(Scopes &scopes, mlir::Block &copy, Scope &parent)
      : forward(copy), scopes(scopes), parent(&parent) {}

  /// A nested block, whose reverse starts where `builder` stands.
  Scope &nested(mlir::Block &block, mlir::OpBuilder &builder) {
    return scopes.open(block, *this, builder);
  }
  /// A block of the reverse sweep into which what this reverses has been
  /// copied, to be run again: values of the copy are in scope.
  Scope &ofCopy(mlir::Block &copy, const mlir::IRMapping &copies) {
    scopes.addCopies(copies);
    return scopes.open(copy, *this);
  }

  /// The forward value `value`, visible in the reverse of this block.
  mlir::Value use(mlir::Value value);

  /// Whether `value` itself is visible there.
  bool sees(mlir::Value value) const {
    const Scope *owner = ownerOf(value);
    return !owner || owner->isOutermost();
  }

  /// Says that `value` is available as `known`, without a tape.
  void provide(mlir::Value value, mlir::Value known) {
    provided[value] = known;
  }

  /// Says that `to` takes the place of the value `from` of this block.
  void rename(mlir::Value from, mlir::Value to);

  /// Whether values of this block reach the reverse sweep without a tape: of
  /// the outermost block, and of branches that no loop encloses.
  bool isDirect() const { return direct; }

  /// After all uses: its reverse is given what it needs by one record, a pop
  /// here, a push at the end of the forward block.
  void endWithRecord() {
    scopes.atEnd([this] { finishWithRecord(); });
  }
  /// Or by `give`, which has finishWith called.
  void atEnd(std::function<void()> give) { scopes.atEnd(std::move(give)); }

  /// The values of the block that its reverse has to be given.
  llvm::ArrayRef<mlir::Value> plan();
  /// By `known`, one value for each that plan() has returned.
  void finishWith(mlir::ValueRange known);

private:
  friend Scopes;
  bool isOutermost() const { return !head; }
  bool owns(mlir::Value value) const {
    return value.getParentBlock() == &forward;
  }
  /// Null of serial values and arguments of the kernel.
  const Scope *ownerOf(mlir::Value value) const {
    const Scope *owner = this;
    while (owner && !owner->owns(value))
      owner = owner->parent;
    return owner;
  }
  llvm::SmallVector<mlir::Value> needed() const;
  double times() const;
  bool hasTwin(mlir::Operation *op) const;
  mlir::Value placeholderFor(mlir::Value value);
  mlir::Value materialize(mlir::OpBuilder &builder, mlir::Value value);
  void finishWithRecord();
  void tellPlan() const;

  mlir::Block &forward;
  Scopes &scopes;
  Scope *parent = nullptr;
  bool direct = true;
  mlir::Operation *head = nullptr; ///< pop and recomputations stand before it
  llvm::SmallVector<mlir::Value> saved, recomputed; ///< in program order
  llvm::SetVector<mlir::Value> used; ///< of values that are in scope
  llvm::DenseMap<mlir::Value, mlir::Value> provided;
  llvm::MapVector<mlir::Value, mlir::Operation *> placeholders;
};

} // namespace costate::autodiff
