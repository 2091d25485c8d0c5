#include "lowering/Overflow.h"

#include "lowering/Operations.h"

#include "base/Message.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <fstream>

using namespace mlir;
using SyntaxOp = costate::syntax::Op;

namespace costate::lowering {

namespace {

/// Whether one operation has left its type.
struct Overflow {
  OpBuilder &b;
  Location loc;
  SyntaxOp op;
  DType type;
  ValueRange operands;
  Value result;

  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value differs(Value x, Value y) {
    return compare(arith::CmpIPredicate::ne, x, y);
  }
  Value zero() { return emitConstant(b, loc, type, 0); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }

  Value happens();
  Value wide();
  Value sum();
  Value difference();
  Value product();
  Value shift();
};

/// Of types with less than 64 bits: computed with 64.
Value Overflow::wide() {
  auto widen = [&](Value value) {
    return emitPure(b, loc, SyntaxOp::Cast, type, DType::I64, value);
  };
  SmallVector<Value> widened = {widen(operands[0]), widen(operands[1])};
  Value exact = emitPure(b, loc, op, DType::I64, DType::I64, widened);
  return differs(exact, widen(result));
}

Value Overflow::sum() {
  if (isUnsigned(type))
    return compare(arith::CmpIPredicate::ult, result, operands[0]);
  Value x = arith::XOrIOp::create(b, loc, operands[0], result);
  Value y = arith::XOrIOp::create(b, loc, operands[1], result);
  return compare(arith::CmpIPredicate::slt, both(x, y), zero());
}

Value Overflow::difference() {
  if (isUnsigned(type))
    return compare(arith::CmpIPredicate::ult, operands[0], operands[1]);
  Value x = arith::XOrIOp::create(b, loc, operands[0], operands[1]);
  Value y = arith::XOrIOp::create(b, loc, operands[0], result);
  return compare(arith::CmpIPredicate::slt, both(x, y), zero());
}

/// Division by 0 gives 0. -1 times the least number is the least number, whose
/// quotient by -1 is itself.
Value Overflow::product() {
  Value quotient =
      emitPure(b, loc, SyntaxOp::Div, type, type, {result, operands[0]});
  Value wrong =
      both(differs(operands[0], zero()), differs(quotient, operands[1]));
  if (isUnsigned(type))
    return wrong;
  Value least = emitConstant(b, loc, type, uint64_t(1) << 63);
  Value ones = emitConstant(b, loc, type, ~uint64_t(0));
  Value wraps = both(compare(arith::CmpIPredicate::eq, operands[0], ones),
                     compare(arith::CmpIPredicate::eq, operands[1], least));
  return arith::OrIOp::create(b, loc, wrong, wraps);
}

Value Overflow::shift() {
  Value back =
      emitPure(b, loc, SyntaxOp::Shr, type, type, {result, operands[1]});
  return differs(back, operands[0]);
}

Value Overflow::happens() {
  if (op == SyntaxOp::Shl)
    return shift();
  if (sizeOf(type) < 8)
    return wide();
  return op == SyntaxOp::Add   ? sum()
         : op == SyntaxOp::Sub ? difference()
                               : product();
}

/// Null if nothing can.
const char *whatOverflows(SyntaxOp op) {
  return op == SyntaxOp::Add   ? "Addition"
         : op == SyntaxOp::Sub ? "Subtraction"
         : op == SyntaxOp::Mul ? "Multiplication"
         : op == SyntaxOp::Shl ? "Shift left"
                               : nullptr;
}

} // namespace

/// `File "a.py", line 3, in f:`, the line, and a caret below the column.
std::string SourceLines::place(Loc loc, const std::string &function) {
  auto [found, isNew] = files.try_emplace(loc.file);
  std::vector<std::string> &lines = found->second;
  if (isNew) {
    std::ifstream file(loc.file);
    for (std::string line; std::getline(file, line);)
      lines.push_back(line);
  }
  std::string text = "File \"" + std::string(loc.file) + "\", line " +
                     std::to_string(loc.line) + ", in " + function + ":\n";
  if (loc.line == 0 || loc.line > lines.size())
    return text;
  text += lines[loc.line - 1] + "\n";
  return loc.column ? text + std::string(loc.column - 1, ' ') + "^\n" : text;
}

/// In a text of `print`, where braces stand for values.
static std::string withoutValues(const std::string &text) {
  std::string result;
  for (char c : text)
    result.append(c == '{' || c == '}' ? 2 : 1, c);
  return result;
}

void reportOverflow(OpBuilder &b, Location loc, SyntaxOp op, DType type,
                    ValueRange operands, Value result,
                    llvm::function_ref<std::string()> place) {
  const char *name = whatOverflows(op);
  if (!name || !isInteger(type))
    return;
  Overflow overflow{b, loc, op, type, operands, result};
  auto branch = scf::IfOp::create(b, loc, overflow.happens(),
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  std::string text =
      plainText +
      (name + (" overflow detected in " + withoutValues(place()) + "\n"));
  ir::PrintOp::create(b, loc, text, ValueRange());
}

} // namespace costate::lowering
