#include "autodiff/gather/Forms.h"

#include "autodiff/gather/Conditions.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

Value least(Builder &b, ArrayRef<Affine> forms, int sign) {
  std::vector<Affine> open; // which of these it is only numbers can tell
  for (const Affine &form : forms) {
    auto isComparable = [&](const Affine &other) {
      return constantDifference(other, form).has_value();
    };
    auto other = llvm::find_if(open, isComparable);
    if (other == open.end())
      open.push_back(form);
    else if (sign * *constantDifference(*other, form) > 0)
      *other = form;
  }
  Value result;
  for (const Affine &form : open) {
    Value next = emit(b, form);
    result = !result    ? next
             : sign > 0 ? b.createOrFold<arith::MinSIOp>(result, next)
                        : b.createOrFold<arith::MaxSIOp>(result, next);
  }
  return result;
}

Value compare(Builder &b, arith::CmpIPredicate predicate, Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(predicate, x, y);
}

Value ofType(Builder &b, Value value, Type type) {
  if (type.isInteger(64))
    return value;
  return b.createOrFold<arith::TruncIOp>(type, value);
}

Value both(Builder &builder, Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return builder.createOrFold<arith::AndIOp>(a, b);
}

static bool isOfHost(Value value) {
  return isa<BlockArgument>(value) || value.getDefiningOp<ir::ExtentOp>();
}

bool isKnownToHost(const Affine &form) {
  return llvm::all_of(form.terms,
                      [](auto &term) { return isOfHost(term.first); });
}

} // namespace costate::autodiff
