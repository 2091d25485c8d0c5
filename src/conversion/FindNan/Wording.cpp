#include "conversion/FindNan/Wording.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace costate::conversion {

static Wording infix(StringRef sign) {
  return {sign.str(), ("% " + sign + " %").str()};
}

static Wording function(StringRef name, unsigned operands) {
  std::string formula = name.str() + "(%";
  for (unsigned k = 1; k < operands; ++k)
    formula += ", %";
  return {name.str(), formula + ")"};
}

static bool staysFinite(Operation *op) {
  enum { Unbounded, Finite };
  static const llvm::StringMap<bool> functions = {
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, library, domain,      \
                         range, doc)                                           \
  {"costate." #mnemonic, range == Finite},
#include "costate/detail/operations.def"
  };
  return functions.lookup(op->getName().getStringRef()) ||
         isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::RoundOp,
             math::RoundEvenOp, math::TruncOp, math::CopySignOp>(op);
}

static std::optional<Wording> wordingOfMath(Operation *op) {
  StringRef name = op->getName().getStringRef();
  bool isFunction =
      name.consume_front("math.") || (op->hasTrait<ir::OpTrait::IsFunction>() &&
                                      name.consume_front("costate."));
  if (!isFunction || staysFinite(op))
    return std::nullopt;
  return function(name, op->getNumOperands());
}

std::optional<Wording> wordingOf(Operation *op) {
  using Found = std::optional<Wording>;
  if (op->getNumResults() != 1 || !isa<FloatType>(op->getResultTypes()[0]))
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Found>(op)
      .Case<arith::AddFOp>([](auto) { return infix("+"); })
      .Case<arith::SubFOp>([](auto) { return infix("-"); })
      .Case<arith::MulFOp, ir::StrongMulOp>([](auto) { return infix("*"); })
      .Case<arith::DivFOp>([](auto) { return infix("/"); })
      .Case<arith::RemFOp>([](auto) { return function("fmod", 2); })
      .Case<arith::TruncFOp>([](auto) { return function("cast<float>", 1); })
      .Case<ir::NarrowOp>([](auto) { return function("cast<f16>", 1); })
      .Case<ir::PowOp>([](auto) { return function("pow", 2); })
      .Case<math::FmaOp>([](auto) { return Wording{"fma", "% * % + %"}; })
      .Default(wordingOfMath);
}

StringRef userNameOf(Location loc) {
  StringRef name;
  loc->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (named)
      name = named.getName();
    return named ? WalkResult::interrupt() : WalkResult::advance();
  });
  return name;
}

} // namespace costate::conversion
