#include "syntax/Linear.h"

namespace costate::syntax {

static void define(const Block &block, Definitions &definitions) {
  for (const Statement &statement : block) {
    for (size_t k = 0; k < statement.defines(); ++k)
      definitions[statement.value + k] = &statement;
    if (statement.kind == Kind::Range)
      for (ValueId index : statement.indices)
        definitions[index] = &statement;
    for (const Block &inner : statement.blocks)
      define(inner, definitions);
  }
}

Definitions definitionsOf(const Kernel &kernel) {
  Definitions definitions(kernel.values.size());
  define(kernel.body, definitions);
  return definitions;
}

/// a + b * c, wrapping around.
static int64_t plus(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b) *
                                  static_cast<uint64_t>(c));
}

void Linear::add(const Linear &other, int64_t factor) {
  constant = plus(constant, factor, other.constant);
  for (auto [value, times] : other.terms)
    if (int64_t &mine = terms[value]; (mine = plus(mine, factor, times)) == 0)
      terms.erase(value);
}

ValueId Linear::root() const {
  bool isOne = terms.size() == 1 && terms.begin()->second == 1;
  return isOne ? terms.begin()->first : none;
}

static int64_t numberOf(const Statement &constant) {
  return constant.type == DType::I32 ? static_cast<int32_t>(constant.bits)
                                     : static_cast<int64_t>(constant.bits);
}

namespace {

/// Sums in sums, up to a number of them.
struct Reading {
  const Definitions &definitions;
  int left = 64;

  Linear read(ValueId value) {
    const Statement *defined = definitions[value];
    if (defined && defined->kind == Kind::Const && isInteger(defined->type))
      return {{}, numberOf(*defined)};
    Linear result;
    bool isOperation = defined && defined->kind == Kind::Pure &&
                       isInteger(defined->type) && --left > 0;
    return isOperation && sum(*defined, result) ? result
                                                : Linear{{{value, 1}}, 0};
  }

private:
  /// Whether `pure` is a sum, a multiple or the same number.
  bool sum(const Statement &pure, Linear &result) {
    if (pure.op == Op::Mul)
      return product(pure, result);
    if (pure.op == Op::Cast)
      if (const Statement *from = definitions[pure.operands[0]];
          from && !isInteger(from->type))
        return false;
    bool isKnown = pure.op == Op::Add || pure.op == Op::Sub ||
                   pure.op == Op::Neg || pure.op == Op::Cast;
    if (!isKnown)
      return false;
    result.add(read(pure.operands[0]), pure.op == Op::Neg ? -1 : 1);
    if (pure.operands.size() == 2)
      result.add(read(pure.operands[1]), pure.op == Op::Sub ? -1 : 1);
    return true;
  }

  bool product(const Statement &pure, Linear &result) {
    Linear a = read(pure.operands[0]), b = read(pure.operands[1]);
    if (!a.isConstant())
      std::swap(a, b);
    if (!a.isConstant())
      return false;
    if (a.constant != 0)
      result.add(b, a.constant);
    return true;
  }
};

} // namespace

Linear linearOf(ValueId value, const Definitions &definitions) {
  return Reading{definitions}.read(value);
}

} // namespace costate::syntax
