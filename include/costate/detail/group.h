#pragma once
/// The border between the embedded language and the tracer, for blocks of work
/// items: see record.h.

#include "costate/detail/record.h"

namespace costate::syntax {

/// What work items of a block or lanes of a warp do together.
enum class GroupOp : uint8_t {
#define COSTATE_GROUP(Name, ...) Name,
#include "costate/detail/group_operations.def"
};

} // namespace costate::syntax

namespace costate::detail {

using syntax::GroupOp;

/// An array that the work items of a block share, and an update of an element
/// of it, which tells what it was; loads and stores are those of a private
/// array.
Handle declareShared(DType type, int64_t size, Loc loc);
Handle updateShared(Op op, Handle shared, Handle index, Handle value, Loc loc);
/// `type`: of the result, if there is one.
Handle group(GroupOp op, DType type, std::initializer_list<Handle> operands,
             Loc loc);
/// Blocks of the range just begun have so many work items.
void setBlockDim(int64_t workItems, Loc loc);

} // namespace costate::detail
