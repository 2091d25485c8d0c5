#include "conversion/LLVMToMetal/Emission.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace costate::conversion {
namespace {

struct Conversion {
  Emission &e;
  std::string x;
  Type from, to;

  unsigned fromBits() const { return bitsOf(from); }
  unsigned toBits() const { return bitsOf(to); }
  std::string of(const std::string &value) const {
    return metalType(to).str() + "(" + value + ")";
  }
};
using Convert = std::string (*)(const Conversion &);

template <class Op, Convert convert> EmittedOperation conversion() {
  return {Op::getOperationName(), [](Emission &e, Operation *op) {
            Type to = op->getResult(0).getType();
            if (metalType(to).empty())
              return e.none(op);
            return e.set(op, convert({e, e.operand(op, 0),
                                      op->getOperand(0).getType(), to}));
          }};
}

//===-- Integers ----------------------------------------------------------===//

std::string truncate(const Conversion &c) {
  if (c.toBits() == 1)
    return "(" + c.x + " & 1) != 0";
  return masked(c.of(c.x), c.toBits());
}

std::string extendByZero(const Conversion &c) { return c.of(c.x); }

std::string extendBySign(const Conversion &c) {
  return masked(c.of(withSign(c.x, c.fromBits())), c.toBits());
}

std::string address(const Conversion &c) {
  return masked(c.of(c.x), c.toBits());
}

std::string same(const Conversion &c) { return c.x; }

//===-- Floats ------------------------------------------------------------===//

std::string ofDoubles(const Conversion &c, const char *name,
                      const std::string &x) {
  c.e.module.needDoubles();
  return call(Twine("costate_f64_") + name, {x});
}

std::string fromSigned(const Conversion &c) {
  std::string number = withSign(c.x, c.fromBits());
  return c.to.isF64() ? ofDoubles(c, "from_long", "long(" + number + ")")
                      : c.of(number);
}

std::string fromUnsigned(const Conversion &c) {
  return c.to.isF64() ? ofDoubles(c, "from_ulong", "ulong(" + c.x + ")")
                      : c.of(c.x);
}

/// `unsigned`: of a number without a sign.
std::string toInteger(const Conversion &c, bool isSigned) {
  bool isWide = c.toBits() > metalWordBits;
  std::string type =
      isSigned ? (isWide ? "long" : "int") : (isWide ? "ulong" : "uint");
  std::string number =
      c.from.isF64() ? ofDoubles(c, isSigned ? "to_long" : "to_ulong", c.x)
                     : type + "(" + c.x + ")";
  if (c.toBits() == 1)
    return number + " != 0";
  return masked(c.of(number), c.toBits());
}

std::string toSigned(const Conversion &c) { return toInteger(c, true); }
std::string toUnsigned(const Conversion &c) { return toInteger(c, false); }

std::string wider(const Conversion &c) {
  return c.to.isF64() ? ofDoubles(c, "from_float", "float(" + c.x + ")")
                      : c.of(c.x);
}

std::string narrower(const Conversion &c) {
  if (!c.from.isF64())
    return c.of(c.x);
  return ofDoubles(c, c.to.isF16() ? "to_half" : "to_float", c.x);
}

std::string bits(const Conversion &c) {
  return fromBits(toBits(c.x, c.from), c.to);
}

} // namespace

llvm::ArrayRef<EmittedOperation> emittedConversions() {
  static const EmittedOperation all[] = {
      conversion<LLVM::TruncOp, truncate>(),
      conversion<arith::TruncIOp, truncate>(),
      conversion<LLVM::ZExtOp, extendByZero>(),
      conversion<LLVM::SExtOp, extendBySign>(),
      conversion<LLVM::SIToFPOp, fromSigned>(),
      conversion<LLVM::UIToFPOp, fromUnsigned>(),
      conversion<LLVM::FPToSIOp, toSigned>(),
      conversion<LLVM::FPToUIOp, toUnsigned>(),
      conversion<LLVM::FPExtOp, wider>(),
      conversion<LLVM::FPTruncOp, narrower>(),
      conversion<LLVM::BitcastOp, bits>(),
      conversion<LLVM::PtrToIntOp, address>(),
      conversion<LLVM::IntToPtrOp, address>(),
      conversion<LLVM::FreezeOp, same>(),
      conversion<arith::IndexCastUIOp, same>(),
  };
  return all;
}

} // namespace costate::conversion
