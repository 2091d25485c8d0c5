#pragma once
/// Walks over the operations of one level: straight code, branches that are
/// taken apart, and loops on the tape.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

class LevelWalk {
public:
  virtual ~LevelWalk() = default;
  /// Emits [first, last), where `pred` holds.
  void walk(mlir::Block::iterator first, mlir::Block::iterator last,
            mlir::Value pred);
  /// All of `body` but its terminator.
  void walk(mlir::Block &body, mlir::Value pred);

protected:
  /// `isWorkItem`: the values of its records are in scope.
  LevelWalk(WorkItem &item, const TapeLevel &level, mlir::IRMapping &at,
            bool isWorkItem)
      : item(item), level(level), at(at), isWorkItem(isWorkItem) {}

  virtual Place place() const = 0;
  virtual void visitLoop(mlir::Operation *loop, mlir::Value pred) = 0;
  virtual bool elseFirst(mlir::scf::IfOp branch) const = 0;
  virtual void visitRecord(mlir::Operation *op, mlir::Value pred) = 0;

  WorkItem &item;
  const TapeLevel &level;
  mlir::IRMapping &at;
  bool isWorkItem;

private:
  bool isTakenApart(mlir::Operation *op) const;
  void takeApart(mlir::scf::IfOp branch, mlir::Value pred);
};

/// Forward: `place.row` moves from group to group.
class ForwardWalk final : public LevelWalk {
public:
  ForwardWalk(WorkItem &item, const TapeLevel &level, mlir::IRMapping &at,
              Place start, bool isWorkItem)
      : LevelWalk(item, level, at, isWorkItem), current(start) {}

  /// After the last record.
  mlir::Value end() { return afterGroup(); }

private:
  Place place() const override { return current; }
  bool elseFirst(mlir::scf::IfOp) const override { return false; }
  void visitLoop(mlir::Operation *loop, mlir::Value pred) override;
  void visitRecord(mlir::Operation *op, mlir::Value pred) override;
  mlir::Value afterGroup();

  Place current;
  unsigned group = 0;
};

/// Backward, from the row after the last record.
class ReverseWalk final : public LevelWalk {
public:
  ReverseWalk(WorkItem &item, const TapeLevel &level, mlir::IRMapping &at,
              mlir::Value end, bool isWorkItem);

  /// The first record.
  mlir::Value start() const { return row; }

private:
  Place place() const override { return {Keep::Nothing, row, {}}; }
  bool elseFirst(mlir::scf::IfOp branch) const override;
  void visitLoop(mlir::Operation *loop, mlir::Value pred) override;
  void visitRecord(mlir::Operation *op, mlir::Value pred) override;
  void enterGroup(unsigned number);
  unsigned lastPlaceIn(mlir::Region &side) const;

  mlir::Value row;
  unsigned group;
};

} // namespace costate::conversion
