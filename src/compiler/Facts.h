#pragma once
/// What the runtime has to know about a kernel, read off its kernel IR.

#include "code/KernelCode.h"
#include "ir/Kernel.h"
#include "ir/Tape.h"
#include "syntax/Syntax.h"

namespace costate::compiler {

/// The arguments of `kernel` as a front end would declare them.
std::vector<syntax::Argument> argumentsOf(ir::KernelOp kernel);

/// The parameters of `kernel`, derived or not, in order.
std::vector<runtime::Parameter> parametersOf(ir::KernelOp kernel);

/// How `primal` uses its arguments. `active` as for compile(); if empty, every
/// float array counts as active.
std::vector<runtime::Access> accessesOf(ir::KernelOp primal,
                                        const std::vector<bool> &active);

/// Adds what another form of the primal reads and writes.
void addAccesses(ir::KernelOp primal, std::vector<runtime::Access> &accesses);

/// Whether a tape of `kernel` can grow large: it pushes in a loop whose trip
/// count is no constant, or too often for a few kilobytes.
bool growsTape(ir::KernelOp kernel);

/// Bytes of a record, and of all records of `kernel`, each counted once.
int64_t recordBytes(tape::PushOp push);
int64_t recordBytes(ir::KernelOp kernel);

/// Whether ranges of `kernel` look at elements that other work items update.
bool leftToChance(ir::KernelOp kernel);

/// Whether it saves what its tape has room for.
bool fitsBudget(ir::KernelOp kernel);

} // namespace costate::compiler
