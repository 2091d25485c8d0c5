/// What the work items of a block do together.

#include "syntax/Print.h"
#include "syntax/Tracer.h"

namespace costate::syntax {

/// How many bytes there are, the device says.
Tracer::Handle Tracer::declareShared(DType type, int64_t size, Loc loc) {
  checkEffect("declares a shared array", loc);
  if (top().range == none)
    fail(loc, "a shared array outside of `parallel`",
         "the serial code has one thread: do this in a work item");
  constexpr int64_t mostBytes = 1 << 24;
  return declareArray({type, size, loc}, true, mostBytes);
}

Tracer::Handle Tracer::updateShared(Op op, Handle shared, Handle index,
                                    Handle value, Loc loc) {
  checkEffect("updates a shared array", loc);
  Statement &statement = append(Kind::UpdateShared, loc);
  statement.op = op;
  statement.argument = useLocal(shared, loc);
  statement.operands = {use(value, loc), use(index, loc)};
  DType type = statement.argument == none
                   ? DType::F64
                   : kernel.locals[statement.argument].type;
  return define(statement, type);
}

Tracer::Handle Tracer::group(GroupOp op, DType type,
                             std::initializer_list<Handle> operands, Loc loc) {
  std::string name = "`" + std::string(nameOf(op)) + "`";
  checkEffect(("calls " + name).c_str(), loc);
  Statement &statement = append(Kind::Group, loc);
  statement.bits = static_cast<uint64_t>(op);
  for (Handle operand : operands)
    statement.operands.push_back(use(operand, loc));
  return hasResult(op) ? define(statement, type) : Handle();
}

void Tracer::setBlockDim(int64_t workItems, Loc loc) {
  Statement &owner = top().owner;
  if (owner.kind != Kind::Range || !top().block.empty())
    return fail(loc, "`block_dim` of no `parallel`",
                "it is an option of a range");
  constexpr int64_t most = 1024;
  if (workItems < 1 || workItems > most)
    return fail(loc, "blocks of " + std::to_string(workItems) + " work items",
                "they have 1 to " + std::to_string(most));
  owner.bits = static_cast<uint64_t>(workItems);
}

} // namespace costate::syntax
