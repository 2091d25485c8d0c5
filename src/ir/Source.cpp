#include "ir/Source.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace costate::ir {

FileLineColLoc sourceOf(Location loc) {
  FileLineColLoc place;
  loc->walk([&](Location part) {
    place = dyn_cast<FileLineColLoc>(part);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

static constexpr llvm::StringLiteral mark = "recomputed";

Location recomputed(Location loc) {
  if (isRecomputed(loc))
    return loc;
  MLIRContext *context = loc.getContext();
  return FusedLoc::get({loc}, StringAttr::get(context, mark), context);
}

bool isRecomputed(Location loc) {
  auto marked = dyn_cast<FusedLocWith<StringAttr>>(loc);
  return marked && marked.getMetadata().getValue() == mark;
}

} // namespace costate::ir
