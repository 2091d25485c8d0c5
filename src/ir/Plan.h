#pragma once
/// What the plan of a gradient says of a block or a loop.

#include "ir/Tape.h"

namespace costate::tape {

/// Whether the reverse sweep may recompute `value` from its operands: the
/// operation is pure or a load from memory that the sweeps do not change, has
/// no regions, and does not make a float something that steers control or
/// addresses.
bool isRecomputable(mlir::Value value);

/// The plan of a block, and the schedule of a loop; null if there is none.
PlanOp planOf(mlir::Block *block);
ScheduleOp scheduleOf(mlir::Operation *loop);
/// The loop that a schedule is about: the next one.
mlir::Operation *loopOf(ScheduleOp schedule);

/// Whether the plans below `root` are right, and all loops of pairs have a
/// schedule.
mlir::LogicalResult verifyPlans(mlir::Operation *root);

/// Erases them: the sweeps have been made by them.
void erasePlans(mlir::Operation *root);

} // namespace costate::tape
